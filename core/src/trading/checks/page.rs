//! The pages on which users pass open checks, and meet the other requirements of the verification:
//! `GET` and `POST /checks/{token}/{check}`.
//!
//! The token is the permission: an order's, as on the payment page, or that of a user who has signed in
//! on the account's page. A page takes what meets its requirement, and shows nothing of what is known of
//! the person.

mod account;
mod address;
mod address_proof;
mod documents;
mod email_code;
mod identity;
mod nationality;
mod person;
mod questions;
mod registration;
mod tax;
mod visit;
mod wallet;

use http::{Method, StatusCode};
use maud::{Markup, html};

use self::visit::{Link, Visit};
use super::Hold;
use super::check_links::{CheckLink, still_to_do};
use super::requirement::{Requirement, RequirementState, message};
use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::{Body, Endpoint};
use crate::http::form::{Form, SentForm};
use crate::http::html::components::{self, Tone};
use crate::http::html::form_errors::{FormErrors, TypedForm};
use crate::http::html::{PAGE_SCRIPT, Page, PageScripts, back_link};
use crate::http::reply::Reply;
use crate::http::request::{FORM_BYTES_MAX, Input};
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use crate::trading::orders::payment_link::payment_url;
use crate::trading::quotes::Side;
use crate::users::account_pages::sign_in::refusal_note;
use rampart_types::{OrderKey, UserId};

const PATH: &str = "/checks/{token}/{check}";
/// Time after which a page that waits for a provider is loaded again, in seconds.
const WAIT_SECONDS: &str = "2";

/// Shows the check.
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
        match link.visit(core).await? {
            Some(visit) => {
                let empty = TypedForm { form: &Form::default(), errors: &FormErrors::default() };
                let note = visit.note(link.has_mailed_code());
                let shown = Box::pin(visit.show(core, StatusCode::OK, &note, empty)).await;
                link.unless_ended(core, shown)
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
        let taken = Box::pin(visit.take(core, &form.read())).await;
        link.unless_ended(core, taken)
    }
}

/// Body of a page.
struct Content {
    body: Markup,
    /// True if a provider's answer is awaited.
    waits: bool,
    /// True if its form takes images.
    takes_images: bool,
    /// True if all that is asked for has come, and nothing can be sent again.
    is_complete: bool,
}

impl From<Markup> for Content {
    fn from(body: Markup) -> Self {
        Self { body, waits: false, takes_images: false, is_complete: false }
    }
}

impl Visit {
    /// The page, below a note about what was sent; of a requirement that is met, the ones that are left.
    async fn show(
        &self,
        core: &Core,
        status: StatusCode,
        note: &Markup,
        typed: TypedForm<'_>,
    ) -> Result<Reply> {
        let mut tx = core.db.begin().await?;
        let open = self.open(&mut tx, core).await?;
        let state = open.iter().find(|(one, _)| *one == self.requirement).map(|(_, state)| *state);
        let content = match state {
            None => self.passed(core, &open)?.into(),
            Some(_) => self.content(&mut tx, core, typed).await?,
        };
        tx.commit().await?;
        // What waits for a provider is another attempt.
        let is_refused = state == Some(RequirementState::Rejected) && !content.waits;
        let needs_support = is_refused && content.is_complete;
        let (tenant, texts) = (&self.client.tenant, self.texts);
        let body = html! {
            (typed.errors.summary(texts))
            (note)
            @if needs_support {
                (self.refused("check-refused-complete"))
                p { (self.support_link("support-link")) }
            } @else {
                @if is_refused && typed.errors.is_empty() { (self.refused("check-refused")) }
                (content.body)
            }
            @if let Some(path) = self.account_path() {
                p { a href=(path) { (texts.get("check-account-page")) } }
            }
            @if let Some(url) = &self.return_url { (back_link(texts, url, &tenant.name)) }
        };
        let title = match self.order {
            Some(_) if needs_support => texts.get("check-refused-title"),
            Some(_) => texts.get("check-title"),
            None => texts.get("verification-title"),
        };
        let topic = texts.get(self.requirement.message());
        let page =
            Page::new(texts, &core.settings.pages, &title).branded(&tenant.name, &tenant.brand);
        let mut reply = Page {
            topic: Some(&topic),
            is_test: tenant.is_test(),
            return_url: self.return_url.as_ref(),
            scripts: Some(PageScripts::Own(PAGE_SCRIPT)),
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

    /// The note above the page, after a code was mailed.
    fn note(&self, has_mailed_code: bool) -> Markup {
        match self.requirement {
            Requirement::EmailCode if has_mailed_code => email_code::note(self.texts),
            _ => html! {},
        }
    }

    /// The note above a check that was refused.
    fn refused(&self, message: &'static str) -> Markup {
        components::note(Tone::Warning, &html! { p { (self.texts.get(message)) } })
    }

    /// The link to the help page in the reader's language, with the partner's own help; none without a
    /// region in it.
    fn support_link(&self, label: &'static str) -> Markup {
        html! {
            @if let Some(region) = self.texts.spoken_region(&self.client.catalogue.page_regions) {
                a href={ "/" (region) "/support?client=" (self.client.tenant.slug) } {
                    (self.texts.get(label))
                }
            }
        }
    }

    async fn content(
        &self,
        tx: &mut Connection,
        core: &Core,
        typed: TypedForm<'_>,
    ) -> Result<Content> {
        match (self.requirement, self.user) {
            (Requirement::Check(hold), _) => self.check(tx, core, hold, typed).await,
            (Requirement::EmailCode, _) => Ok(email_code::form(self.texts, typed).into()),
            (Requirement::Person, Some(user)) => person::show(tx, core, self, user, typed).await,
            (Requirement::Nationality, _) => Ok(nationality::form(self, typed).into()),
            (Requirement::AddressProof, Some(user)) => {
                address_proof::show(tx, self, user, typed.errors).await
            }
            (requirement, None) => Ok(self.only_named(requirement.message())),
        }
    }

    async fn check(
        &self,
        tx: &mut Connection,
        core: &Core,
        hold: Hold,
        typed: TypedForm<'_>,
    ) -> Result<Content> {
        match (hold, self.user) {
            (Hold::Wallet, _) => wallet::show(tx, core, self, typed).await,
            (Hold::Identity, Some(user)) => identity::show(tx, core, self, user, typed).await,
            (Hold::Amld5, Some(user)) => questions::show(tx, core, self, user, typed).await,
            (Hold::Address, _) => Ok(address::form(self.texts, typed).into()),
            (Hold::Registration, _) => Ok(registration::form(core, self, typed.errors).into()),
            (Hold::Tax, _) => Ok(tax::form(self.texts, typed).into()),
            (Hold::Account, Some(user)) => account::show(tx, core, self, user, typed.errors).await,
            _ => Ok(self.only_named(message(hold))),
        }
    }

    /// The page of what cannot be met here.
    fn only_named(&self, message: &'static str) -> Content {
        html! { p { (self.texts.get(message)) } }.into()
    }

    /// Takes a form, and leads to the page again; shows it below what is wrong with the form.
    async fn take(&self, core: &Core, form: &Form) -> Result<Reply> {
        match Box::pin(self.submit(core, form)).await {
            Ok(errors) if errors.is_empty() => {
                let is_email_code = self.requirement == Requirement::EmailCode;
                let has_mailed_code = is_email_code && email_code::asks_for_mail(form);
                Ok(Reply::see_other(&self.path_after(has_mailed_code)))
            }
            Ok(errors) => {
                let typed = TypedForm { form, errors: &errors };
                Box::pin(self.show(core, StatusCode::BAD_REQUEST, &html! {}, typed)).await
            }
            Err(Error::Refused(refusal)) if !refusal.has(Code::UserTokenInvalid) => {
                let (status, note) = refusal_note(self.texts, &refusal);
                let typed = TypedForm { form, errors: &FormErrors::default() };
                let mut reply = Box::pin(self.show(core, status, &note, typed)).await?;
                refusal.set_headers(&mut reply);
                Ok(reply)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes a form, and commits what it has changed unless something is wrong with it.
    ///
    /// # Errors
    /// A refusal that can be shown, ER702 when the sign-in has ended, or an internal error.
    async fn submit(&self, core: &Core, form: &Form) -> Result<FormErrors> {
        let mut tx = core.db.begin().await?;
        self.lock_sign_in(&mut tx).await?;
        let open = self.open(&mut tx, core).await?;
        if !open.iter().any(|(one, _)| *one == self.requirement) {
            return Ok(FormErrors::default());
        }
        let errors = match (self.requirement, self.user) {
            (Requirement::Check(Hold::Wallet), _) => {
                wallet::submit(&mut tx, core, self, form).await?
            }
            (_, None) => FormErrors::default(),
            (Requirement::Check(Hold::Amld5), Some(user)) => {
                questions::submit(&mut tx, core, self, user, form).await?
            }
            (Requirement::Check(Hold::Address), Some(user)) => {
                address::submit(&mut tx, core, self, user, form).await?
            }
            (Requirement::Check(Hold::Registration), Some(user)) => {
                registration::submit(&mut tx, core, self, user, form).await?
            }
            (Requirement::Check(Hold::Tax), Some(user)) => {
                tax::submit(&mut tx, core, self, user, form).await?
            }
            (Requirement::Person, Some(user)) => {
                person::submit(&mut tx, core, self, user, form).await?
            }
            (Requirement::Nationality, Some(user)) => {
                nationality::submit(&mut tx, core, self, user, form).await?
            }
            (_, Some(user)) => {
                drop(tx);
                return self.submit_outside(core, user, form).await;
            }
        };
        if errors.is_empty() {
            tx.commit().await?;
        }
        Ok(errors)
    }

    /// Takes a form whose images, codes and calls have transactions of their own.
    async fn submit_outside(&self, core: &Core, user: UserId, form: &Form) -> Result<FormErrors> {
        match self.requirement {
            Requirement::Check(Hold::Identity) => identity::submit(core, self, user, form).await,
            Requirement::Check(Hold::Account) => account::submit(core, self, user, form).await,
            Requirement::EmailCode => email_code::submit(core, self, user, form).await,
            Requirement::AddressProof => address_proof::submit(core, self, user, form).await,
            _ => Ok(FormErrors::default()),
        }
    }

    fn passed(&self, core: &Core, open: &[(Requirement, RequirementState)]) -> Result<Markup> {
        let left = open.iter().filter(|(requirement, state)| {
            requirement.has_page() && *state != RequirementState::Pending
        });
        let link = |(one, _): &(Requirement, RequirementState)| {
            Ok(CheckLink::new(self.url(core, *one)?, one.message()))
        };
        let links = left.map(link).collect::<Result<Vec<_>>>()?;
        let page = match &self.order {
            Some(order) if order.side == Side::Buy => {
                let key = OrderKey { client: self.client.id(), order: order.id };
                Some(payment_url(core, key)?)
            }
            _ => None,
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
