//! `GET` and `POST /{region}/account/verify-bank-account`: the secured page of `privateUrls` on which
//! a user adds a bank account. `token` and `uuid` of a login token open it once; from then on the
//! browser's cookie does, as long as such a token lives.

use http::{Method, StatusCode};
use maud::{Markup, html};

use super::bank_account::{act, fields, form, kind_of, redeem};
use super::invitation::Invitation;
use crate::Core;
use crate::auth::caller::{Anyone, Client};
use crate::auth::tokens::opaque;
use crate::endpoint::{Body, Endpoint};
use crate::http::cookie::{self, SameSite, is_tls};
use crate::http::fields::Fields;
use crate::http::form::Form;
use crate::http::html::components::{Tone, toast};
use crate::http::html::form_errors::{FormErrors, TypedForm};
use crate::http::html::{PAGE_SCRIPT, Page, PageScripts, dead_link};
use crate::http::language::Texts;
use crate::http::reply::Reply;
use crate::http::request::{Head, Input};
use crate::platform::db::Transaction;
use crate::platform::error::Result;
use crate::users::accounts::AccountType;
use crate::users::one_time_token::{self, Purpose};
use rampart_types::{UserId, UserKey};

const PATH: &str = "/{region}/account/verify-bank-account";

/// Shows the form, which has a token of its own.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;
    type Caller = Anyone;
    type Request = Link;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<Link> {
        Ok(Link::read(input))
    }

    async fn call(core: &Core, _: Anyone, link: Link) -> Result<Reply> {
        let Some(mut opened) = link.open(core).await? else {
            return Ok(link.unopened(core, "bank-title"));
        };
        let (tx, key) = (&mut opened.tx, opened.key);
        let token = one_time_token::issue_for_pages(tx, core, Purpose::Form, key).await?;
        let (empty, errors) = (Form::default(), FormErrors::default());
        let typed = TypedForm { form: &empty, errors: &errors };
        let mut reply =
            link.page(core, &opened.client, StatusCode::OK, &form(link.texts, &token, typed));
        opened.keep(core, &mut reply).await?;
        Ok(reply)
    }
}

/// Adds the account of the form.
pub struct Submit;

impl Endpoint for Submit {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const BODY: Body = Body::Form;
    type Caller = Anyone;
    type Request = (Link, Form);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(Link, Form)> {
        Ok((Link::read(input), Form::read(&input.body)))
    }

    /// A refusal leaves the token valid, because nothing is committed.
    async fn call(core: &Core, _: Anyone, (link, form): (Link, Form)) -> Result<Reply> {
        if !link.is_served(core) {
            return Ok(link.not_found(core));
        }
        // The transaction begins as its client's.
        if opaque::parse_client(form.get("token")).is_none() {
            return Ok(link.not_found(core));
        }
        let mut tx = core.db.begin().await?;
        let Some(UserKey { client, user }) = redeem(&mut tx, &form).await? else {
            return Ok(link.form_ended(core, &form));
        };
        let is_offered = kind_of(&form) != Some(AccountType::CreditCard);
        if link.user != Some(user) || !is_offered {
            return Ok(link.not_found(core));
        }
        let Some(client) = Client::for_page(core, client, &link.head.request_id) else {
            return Ok(link.not_found(core));
        };
        let kinds = [AccountType::BankTransfer];
        let (status, body) = act(tx, core, &client, user, link.texts, &kinds, &form).await?;
        Ok(link.page(core, &client, status, &body))
    }
}

/// A secured page that is open to its user.
pub(crate) struct Opened {
    pub(crate) client: Client,
    pub(crate) key: UserKey,
    /// The transaction of all that the page does: should any of it fail, the login token stays
    /// valid.
    pub(crate) tx: Transaction<'static>,
    /// Token of the visit that has begun; `None` when it goes on.
    visit: Option<String>,
}

impl Opened {
    /// Commits, and leaves the token of a visit that has begun in the browser.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub(crate) async fn keep(self, core: &Core, reply: &mut Reply) -> Result<()> {
        self.tx.commit().await?;
        let Some(visit) = &self.visit else { return Ok(()) };
        let seconds = core.settings.lifetimes.login_token_seconds.into();
        // A shop's page leads here, and a reload may count as its request.
        cookie::set(core, reply, visit_cookie(core), visit, seconds, SameSite::Lax)
    }
}

/// The name of the cookie with the token of a visit.
fn visit_cookie(core: &Core) -> &'static str {
    if is_tls(core) { "__Host-rampart_account" } else { "rampart_account" }
}

/// The URL parameters of a secured page, and the request's head.
#[derive(Debug)]
pub struct Link {
    region: String,
    token: String,
    user: Option<UserId>,
    /// The sealed invitation of the account's page that has led here; empty without one.
    back: String,
    head: Head,
    pub(crate) texts: Texts,
}

impl Link {
    pub(crate) fn read(input: &Input) -> Self {
        let query = Fields::of_query(input.head.query.as_deref());
        let text = |name| query.value(name).and_then(|value| value.as_str()).unwrap_or_default();
        Self {
            region: input.param("region").to_owned(),
            token: text("token").to_owned(),
            user: text("uuid").parse().ok(),
            back: text("back").to_owned(),
            head: input.head.clone(),
            texts: Texts::of(input),
        }
    }

    /// Opens the page to its user: the token in the address, once, or the visit that it has begun.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub(crate) async fn open(&self, core: &Core) -> Result<Option<Opened>> {
        // The transaction begins as its client's.
        if !self.is_served(core) || opaque::parse_client(&self.token).is_none() {
            return Ok(None);
        }
        if self.head.method == Method::HEAD {
            // It shows nothing, and must not spend the token.
            return self.resume_visit(core).await;
        }
        match self.begin_visit(core).await? {
            Some(opened) => Ok(Some(opened)),
            None => self.resume_visit(core).await,
        }
    }

    /// Redeems the token for that of a visit, if it opens the page.
    async fn begin_visit(&self, core: &Core) -> Result<Option<Opened>> {
        let mut tx = core.db.begin().await?;
        let key = one_time_token::redeem(&mut tx, Purpose::Login, &self.token).await?;
        let Some(key) = key.filter(|key| self.user == Some(key.user)) else { return Ok(None) };
        let Some(client) = Client::for_page(core, key.client, &self.head.request_id) else {
            return Ok(None);
        };
        let visit = one_time_token::issue_for_pages(&mut tx, core, Purpose::Visit, key).await?;
        Ok(Some(Opened { client, key, tx, visit: Some(visit) }))
    }

    /// Goes on with the visit of the browser's cookie.
    async fn resume_visit(&self, core: &Core) -> Result<Option<Opened>> {
        let Some(visit) = self.head.cookie(visit_cookie(core)) else { return Ok(None) };
        let mut tx = core.db.begin().await?;
        let key = one_time_token::lock_holder(&mut tx, Purpose::Visit, visit).await?;
        let Some(key) = key.filter(|key| self.user == Some(key.user)) else { return Ok(None) };
        let Some(client) = Client::for_page(core, key.client, &self.head.request_id) else {
            return Ok(None);
        };
        Ok(Some(Opened { client, key, tx, visit: None }))
    }

    /// The page of a link that opens nothing.
    pub(crate) fn not_found(&self, core: &Core) -> Reply {
        match self.account_link(core) {
            Some(back) => {
                let title = self.texts.get("dead-link-title");
                let page = Page::new(self.texts, &core.settings.pages, &title);
                page.render(StatusCode::NOT_FOUND, &back)
            }
            None => dead_link(self.texts, &core.settings.pages),
        }
    }

    /// The page of a link that opens nothing; of the address alone, as `privateUrls` names it, the page
    /// that says how it is opened.
    pub(crate) fn unopened(&self, core: &Core, title: &'static str) -> Reply {
        let is_address_alone = self.token.is_empty() && self.user.is_none();
        if !is_address_alone || !self.is_served(core) {
            return self.not_found(core);
        }
        let title = self.texts.get(title);
        let body = html! { p { (self.texts.get("dead-link-shop")) } };
        Page::new(self.texts, &core.settings.pages, &title).render(StatusCode::OK, &body)
    }

    /// The page after a form whose token is used or expired, with what was typed and the way to another
    /// form. It is the same for who never had a token.
    fn form_ended(&self, core: &Core, form: &Form) -> Reply {
        let (texts, back) = (self.texts, self.account_link(core));
        let typed = TypedForm { form, errors: &FormErrors::default() };
        let body = html! {
            (toast(Tone::Bad, &texts.get("bank-form-ended")))
            @if back.is_none() { p { (texts.get("dead-link-shop")) } }
            (fields(texts, typed))
            @if let Some(back) = back { (back) }
        };
        let title = texts.get("bank-title");
        Page::new(texts, &core.settings.pages, &title).render(StatusCode::NOT_FOUND, &body)
    }

    /// The way back to the account's page, if that has led here.
    pub(crate) fn account_link(&self, core: &Core) -> Option<Markup> {
        Invitation::open(core, &self.back, &self.head.request_id)
            .filter(|_| self.is_served(core))?;
        Some(html! {
            p {
                a href={ "/" (self.region) "/dashboard/" (self.back) } {
                    (self.texts.get("check-account-page"))
                }
            }
        })
    }

    fn page(&self, core: &Core, client: &Client, status: StatusCode, body: &Markup) -> Reply {
        let (title, tenant) = (self.texts.get("bank-title"), &client.tenant);
        let body = html! {
            (body)
            @if let Some(back) = self.account_link(core) { (back) }
        };
        let page = Page::new(self.texts, &core.settings.pages, &title)
            .branded(&tenant.name, &tenant.brand);
        let scripts = Some(PageScripts::Own(PAGE_SCRIPT));
        Page { scripts, ..page }.render(status, &body)
    }

    fn is_served(&self, core: &Core) -> bool {
        core.snapshots.current().catalogue.page_regions.contains(&self.region)
    }
}
