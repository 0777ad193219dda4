//! The pages on which an order's user passes open checks: `GET` and `POST /checks/{token}/{check}`.
//!
//! The token is the permission, as on the payment page: a page takes what clears a check, and shows
//! nothing of what is known of the person.

mod account;
mod address;
mod documents;
mod identity;
mod questions;
mod registration;
mod tax;
mod wallet;

use http::{Method, StatusCode};
use maud::{Markup, html};

use super::Hold;
use super::check_links::{CheckLink, message, still_to_do};
use super::link;
use crate::Core;
use crate::auth::caller::{Anyone, Client};
use crate::endpoint::{Body, Endpoint};
use crate::http::form::{Form, SentForm};
use crate::http::html::form_errors::FormErrors;
use crate::http::html::{PAGE_SCRIPT, Page, PageScripts, back_link, dead_link};
use crate::http::language::{Language, Texts};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::trading::orders::payment_link::payment_url;
use crate::trading::orders::state::OrderStatus;
use crate::trading::quotes::Side;
use crate::users::account_pages::sign_in::refusal_note;
use rampart_types::{OrderId, ReturnUrl, UserId};

const PATH: &str = "/checks/{token}/{check}";
/// Largest form, in bytes: the photos of both sides of a document.
const FORM_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Time after which a page that waits for a provider is loaded again, in seconds.
const WAIT_SECONDS: &str = "2";

/// Shows the check.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;
    const ERRORS: &'static [crate::platform::error::Code] = &[];
    type Caller = Anyone;
    type Request = Link;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<Link> {
        Ok(Link::read(input))
    }

    async fn call(core: &Core, _: Anyone, link: Link) -> Result<Reply> {
        match link.visit(core).await? {
            Some(visit) => {
                let empty = (&Form::default(), &FormErrors::default());
                Box::pin(visit.show(core, StatusCode::OK, &html! {}, empty)).await
            }
            None => Ok(link.not_found(core)),
        }
    }
}

/// Takes what clears the check.
pub struct Submit;

impl Endpoint for Submit {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const ERRORS: &'static [crate::platform::error::Code] = &[];
    const BODY: Body = Body::LargeForm(FORM_BYTES_MAX);
    type Caller = Anyone;
    type Request = (Link, SentForm);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(Link, SentForm)> {
        Ok((Link::read(input), SentForm::new(&input.head.headers, &input.body)))
    }

    async fn call(core: &Core, _: Anyone, (link, form): (Link, SentForm)) -> Result<Reply> {
        let Some(visit) = link.visit(core).await? else {
            return Ok(link.not_found(core));
        };
        let form = form.read();
        match Box::pin(visit.submit(core, &form)).await {
            Ok(errors) if errors.is_empty() => {
                let empty = (&Form::default(), &errors);
                Box::pin(visit.show(core, StatusCode::OK, &html! {}, empty)).await
            }
            Ok(errors) => {
                let status = StatusCode::BAD_REQUEST;
                Box::pin(visit.show(core, status, &html! {}, (&form, &errors))).await
            }
            Err(Error::Refused(refusal)) => {
                let (status, note) = refusal_note(visit.texts, &refusal);
                let typed = (&form, &FormErrors::default());
                let mut reply = Box::pin(visit.show(core, status, &note, typed)).await?;
                refusal.set_headers(&mut reply);
                Ok(reply)
            }
            Err(error) => Err(error),
        }
    }
}

/// The URL parameters of the page.
#[derive(Debug)]
pub struct Link {
    token: String,
    check: String,
    request_id: String,
    texts: Texts,
}

impl Link {
    fn read(input: &Input) -> Self {
        let param = |name| input.param(name).to_owned();
        let request_id = input.head.request_id.clone();
        let texts = Texts::of(input);
        Self { token: param("token"), check: param("check"), request_id, texts }
    }

    /// The page of a forged link, or of a check that nobody passes on a page.
    fn not_found(&self, core: &Core) -> Reply {
        dead_link(self.texts, &core.settings.pages, "dead-link-shop")
    }

    /// The order and the check that the link names; `None` if it is not ours.
    async fn visit(&self, core: &Core) -> Result<Option<Visit>> {
        let hold = Hold::from_name(&self.check).filter(|hold| hold.is_users());
        let opened = link::open(core, &self.token)?;
        let (Some(hold), Some((side, client, order))) = (hold, opened) else {
            return Ok(None);
        };
        let Some(client) = Client::for_page(core, client, &self.request_id) else {
            return Ok(None);
        };
        let row = sqlx::query!(
            r#"
            select status as "status!: OrderStatus", user_id, wallet_address as "wallet_address!",
                crypto_currency as "crypto_currency!", return_url,
                (select region from end_user u
                    where u.client_id = traded.client_id and u.user_id = traded.user_id) as region
            from (
                select client_id, order_id, false as is_sale, status, user_id, wallet_address,
                    crypto_currency, return_url
                from buy_order
                union all
                select client_id, order_id, true, status, user_id, wallet_address,
                    crypto_currency, null
                from sell_order
            ) as traded where client_id = $1 and order_id = $2 and is_sale = $3
            "#,
            client.id().uuid(),
            order.number(),
            side == Side::Sell,
        )
        .fetch_optional(&core.db)
        .await?;
        Ok(row.map(|row| Visit {
            texts: self.texts.of_account(row.region.as_deref()),
            client,
            side,
            order,
            hold,
            is_final: row.status.is_final(),
            user: row.user_id.map(UserId::from),
            wallet_address: row.wallet_address,
            asset: row.crypto_currency,
            // Validated at confirm, and again before it becomes a link on our page.
            return_url: row.return_url.and_then(|url| url.parse().ok()),
        }))
    }
}

/// A visit of the page of one check of one order.
struct Visit {
    texts: Texts,
    client: Client,
    side: Side,
    order: OrderId,
    hold: Hold,
    is_final: bool,
    /// The order's user; `None` for a guest.
    user: Option<UserId>,
    wallet_address: String,
    asset: String,
    return_url: Option<ReturnUrl>,
}

/// Body of a page.
struct Content {
    body: Markup,
    /// True if a provider's answer is awaited.
    waits: bool,
    /// True if its form takes images.
    takes_images: bool,
}

/// A form as it was typed, and the errors in it.
type Typed<'a> = (&'a Form, &'a FormErrors);

impl From<Markup> for Content {
    fn from(body: Markup) -> Self {
        Self { body, waits: false, takes_images: false }
    }
}

impl Visit {
    /// The page, below a note about what was sent; of a check that is passed, the ones that are left.
    async fn show(
        &self,
        core: &Core,
        status: StatusCode,
        note: &Markup,
        typed: Typed<'_>,
    ) -> Result<Reply> {
        let mut tx = core.db.begin().await?;
        let open = self.open_holds(&mut tx).await?;
        let content = match (open.contains(&self.hold), self.user) {
            (false, _) => self.passed(core, &open)?.into(),
            (true, user) => self.content(&mut tx, core, user, typed).await?,
        };
        tx.commit().await?;
        let (tenant, texts) = (&self.client.tenant, self.texts);
        let body = html! {
            (typed.1.summary(texts))
            (note)
            (content.body)
            @if let Some(url) = &self.return_url { (back_link(texts, url, &tenant.name)) }
        };
        let title = texts.get("check-title");
        let page =
            Page::new(texts, &core.settings.pages, &title).branded(&tenant.name, &tenant.brand);
        let mut reply = Page {
            is_test: tenant.is_test(),
            return_url: self.return_url.as_ref(),
            scripts: content.takes_images.then_some(PageScripts::Own(PAGE_SCRIPT)),
            previews_images: content.takes_images,
            ..page
        }
        .render(status, &body);
        if content.waits {
            // Without a script, the page looks again by itself.
            reply.set("refresh", WAIT_SECONDS);
        }
        Ok(reply)
    }

    /// The checks that the order still waits for.
    async fn open_holds(&self, conn: &mut Connection) -> Result<Vec<Hold>> {
        let (client, user) = (self.client.id(), self.user);
        match (self.is_final, self.side, user) {
            (false, Side::Buy, _) => Hold::of_order(conn, (client, self.order)).await,
            (false, Side::Sell, Some(_)) => {
                let sale = self.order.number();
                let mut open = Hold::of_sales(conn, client, &[sale]).await?;
                Ok(open.remove(&sale).unwrap_or_default())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// The URL of the page of another check of the order.
    fn url(&self, core: &Core, hold: Hold) -> Result<Option<String>> {
        link::url(core, (self.side, (self.client.id(), self.order)), hold)
    }

    /// The link to the help page in the reader's language; none where no region speaks it.
    fn support_link(&self, label: &'static str) -> Markup {
        let language = self.texts.language();
        let regions = &self.client.catalogue.regions;
        let region = regions.iter().find(|region| Language::from_tag(region) == Some(language));
        html! {
            @if let Some(region) = region.or(regions.first()) {
                a href={ "/" (region) "/support" } { (self.texts.get(label)) }
            }
        }
    }

    async fn content(
        &self,
        tx: &mut Connection,
        core: &Core,
        user: Option<UserId>,
        typed: Typed<'_>,
    ) -> Result<Content> {
        match (self.hold, user) {
            (Hold::Wallet, _) => wallet::show(tx, core, self, typed).await,
            (Hold::Identity, Some(user)) => identity::show(tx, core, self, user, typed).await,
            (Hold::Amld5, Some(user)) => questions::show(tx, core, self, user, typed).await,
            (Hold::Address, _) => Ok(address::form(self.texts, typed).into()),
            (Hold::Registration, _) => Ok(registration::form(self.texts, typed.1).into()),
            (Hold::Tax, _) => Ok(tax::form(self.texts, typed).into()),
            (Hold::Account, Some(user)) => account::show(tx, core, self, user, typed.1).await,
            _ => Ok(html! { p { (self.texts.get(message(self.hold))) } }.into()),
        }
    }

    /// Takes a form, and commits what it has changed unless something is wrong with it.
    ///
    /// # Errors
    /// A refusal that can be shown, or an internal error.
    async fn submit(&self, core: &Core, form: &Form) -> Result<FormErrors> {
        let mut tx = core.db.begin().await?;
        if !self.open_holds(&mut tx).await?.contains(&self.hold) {
            return Ok(FormErrors::default());
        }
        let errors = match (self.hold, self.user) {
            (Hold::Wallet, _) => wallet::submit(&mut tx, core, self, form).await?,
            (Hold::Identity, Some(user)) => {
                // Images are stored in a transaction of their own.
                drop(tx);
                return identity::submit(core, self, user, form).await;
            }
            (Hold::Amld5, Some(user)) => questions::submit(&mut tx, core, self, user, form).await?,
            (Hold::Address, Some(user)) => address::submit(&mut tx, core, self, user, form).await?,
            (Hold::Registration, Some(user)) => {
                registration::submit(&mut tx, core, self, user, form).await?
            }
            (Hold::Tax, Some(user)) => tax::submit(&mut tx, core, self, user, form).await?,
            (Hold::Account, Some(user)) => {
                // A card's verification and a proof have transactions of their own.
                drop(tx);
                return account::submit(core, self, user, form).await;
            }
            _ => FormErrors::default(),
        };
        if errors.is_empty() {
            tx.commit().await?;
        }
        Ok(errors)
    }

    fn passed(&self, core: &Core, open: &[Hold]) -> Result<Markup> {
        let order = (self.side, (self.client.id(), self.order));
        let links = CheckLink::all(core, order, open)?;
        let page = match self.side {
            Side::Buy => Some(payment_url(core, self.client.id(), self.order)?),
            Side::Sell => None,
        };
        Ok(html! {
            p { (self.texts.get("check-passed")) }
            (still_to_do(self.texts, &links))
            @if let Some(page) = page {
                p { a href=(page) { (self.texts.get("check-order")) } }
            }
        })
    }
}
