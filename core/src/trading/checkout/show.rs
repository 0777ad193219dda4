//! `GET` and `POST /checkout/{session}`: the page on which a shopper buys. The link is the
//! permission to read the terms and to buy at them; an account is the shopper's own.
//!
//! The steps are account (if the partner wants one), details, confirmation; the payment page
//! follows. A step is the answer to a form, so that each can be reloaded, and the link begins anew;
//! one that was mailed goes on at its step, and so does a step that first needs a sign-in. Once the
//! order stands, each leads to its payment.

use std::net::IpAddr;

use http::{Method, StatusCode};
use maud::{Markup, html};
use url::form_urlencoded;

use super::page::{self, Look, Shown};
use super::purchase::{Outcome, Purchase, Why};
use super::resume::{self, Mailed, Resumption, Step};
use super::shopper::Shopper;
use super::stored::Checkout;
use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::{Body, Endpoint};
use crate::http::fields::Fields;
use crate::http::form::Form;
use crate::http::html::components::{Tone, toast};
use crate::http::html::dead_link;
use crate::http::html::form_errors::FormErrors;
use crate::http::language::Texts;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Code, Error, Result};
use crate::trading::orders::payment_link::payment_url;
use crate::users::account::page_texts;
use crate::users::account_pages::sign_in::{error_page, forms, login_form, sign_in_or_register};
use crate::users::account_pages::sign_in_outcome::{SignIn, SignInStep, SignedIn};
use crate::users::account_pages::sign_in_page::SignInPage;
use rampart_types::OrderKey;

const PATH: &str = "/checkout/{session}";
/// Actions of the steps that follow the account's.
const STEPS: [&str; 4] = ["quote", "confirm", "mail-link", "change"];

/// Shows the first step.
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
        let look = Look { texts: link.texts, settings: &core.settings.pages };
        let Some(checkout) = link.checkout(core).await? else { return Ok(page::not_found(look)) };
        // The link proves nobody: only whom the partner named is known already.
        let named = checkout.user.map_or(Shopper::Unknown, Shopper::Named);
        let link = link.read_by(core, &checkout, named).await?;
        match link.resumption(core, &checkout) {
            Some(Some(resumption)) => link.go_on(core, &checkout, named, &resumption).await,
            Some(None) => Ok(dead_link(link.texts, look.settings)),
            None => {
                let (shopper, empty) = (Shopper::initial(&checkout), Form::read(&[]));
                let purchase = link.purchase(&checkout, shopper, &empty);
                link.first_step(core, purchase, &html! {}).await
            }
        }
    }
}

/// Takes a step.
pub struct Act;

impl Endpoint for Act {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const BODY: Body = Body::Form;
    type Caller = Anyone;
    type Request = (Link, Form);
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<(Link, Form)> {
        Ok((Link::read(input), Form::read(&input.body)))
    }

    async fn call(core: &Core, _: Anyone, (link, form): (Link, Form)) -> Result<Reply> {
        let look = Look { texts: link.texts, settings: &core.settings.pages };
        let Some(checkout) = link.checkout(core).await? else { return Ok(page::not_found(look)) };
        let shopper = Shopper::open(core, &checkout, form.get("shopper")).await?;
        let link = link.read_by(core, &checkout, shopper).await?;
        let action = form.get("action");
        let is_step = STEPS.contains(&action);
        let signs_in = !is_step && !["account", "register"].contains(&action);
        if !checkout.is_open && (checkout.bought.is_none() || !signs_in) {
            return link.ended(core, &checkout, shopper, StatusCode::CONFLICT);
        }
        if action == "account" || (is_step && shopper == Shopper::Unknown) {
            return link.lead_to_sign_in(core, &checkout, &form);
        }
        let purchase = link.purchase(&checkout, shopper, &form);
        match action {
            "quote" | "confirm" => link.quote_or_buy(core, purchase, &html! {}).await,
            "mail-link" => link.mail(core, purchase).await,
            "change" => link.first_step(core, purchase, &html! {}).await,
            _ => link.sign_in(core, &checkout, &form).await,
        }
    }
}

/// The link's parameters, and the reader's language.
#[derive(Clone, Debug)]
pub struct Link {
    session: String,
    identifier: Option<String>,
    /// Sealed step to go on with.
    resume: Option<String>,
    request_id: String,
    peer: IpAddr,
    texts: Texts,
}

impl Link {
    fn read(input: &Input) -> Self {
        let query = Fields::of_query(input.head.query.as_deref());
        let member = |name| query.value(name).and_then(|value| value.as_str()).map(str::to_owned);
        Self {
            session: input.param("session").to_owned(),
            identifier: member("identifier"),
            resume: member("resume"),
            request_id: input.head.request_id.clone(),
            peer: input.head.peer,
            texts: Texts::of(input),
        }
    }

    /// The same in the language of the shopper's account, if there is one.
    async fn read_by(self, core: &Core, checkout: &Checkout, shopper: Shopper) -> Result<Self> {
        let Some(user) = shopper.user() else { return Ok(self) };
        let key = checkout.client.key_of(user);
        let texts = page_texts(core, self.texts, key).await?;
        Ok(Self { texts, ..self })
    }

    async fn checkout(&self, core: &Core) -> Result<Option<Checkout>> {
        let sealed = self.identifier.as_deref();
        let found = Checkout::find(core, &self.session, sealed, &self.request_id).await?;
        Ok(found.map(|found| found.visited_from(self.peer)))
    }

    /// The step that the link names; an inner `None` if that cannot be used.
    fn resumption(&self, core: &Core, checkout: &Checkout) -> Option<Option<Resumption>> {
        self.resume.as_deref().map(|text| Resumption::open(core, checkout, text))
    }

    /// The purchase of a shopper, with what is typed.
    fn purchase<'a>(
        &self,
        checkout: &'a Checkout,
        shopper: Shopper,
        form: &'a Form,
    ) -> Purchase<'a> {
        Purchase { checkout, shopper, texts: self.texts, form }
    }

    /// The account if it is missing, else the details, as far as the form has them.
    async fn first_step(
        &self,
        core: &Core,
        purchase: Purchase<'_>,
        note: &Markup,
    ) -> Result<Reply> {
        let Purchase { checkout, shopper, texts, .. } = purchase;
        let look = Look { texts, settings: &core.settings.pages };
        if !checkout.is_open {
            return self.ended(core, checkout, shopper, StatusCode::OK);
        }
        Ok(match shopper {
            Shopper::Unknown => page::account(look, StatusCode::OK, checkout, note, None),
            _ => {
                let quote = Box::pin(purchase.preview(core)).await?;
                let (sealed, errors) = (shopper.seal(core, checkout)?, FormErrors::default());
                let shown = Shown { purchase, sealed: &sealed, errors: &errors, note };
                page::details(look, StatusCode::OK, shown, quote.as_deref())
            }
        })
    }

    /// The way on of a checkout that is over: to the payment for whoever has bought, so that a step
    /// which is repeated or resumed leads there. A guest's order is opened by the link alone.
    fn ended(
        &self,
        core: &Core,
        checkout: &Checkout,
        shopper: Shopper,
        status: StatusCode,
    ) -> Result<Reply> {
        let look = Look { texts: self.texts, settings: &core.settings.pages };
        Ok(match checkout.bought {
            Some(bought) if bought.user.is_none() || bought.user == shopper.user() => {
                let key = OrderKey { client: checkout.client.id(), order: bought.order };
                page::to_payment(&payment_url(core, key)?)
            }
            Some(_) if shopper.user().is_none() => {
                let note = toast(Tone::Info, &self.texts.get("checkout-resume-sign-in"));
                let form = login_form(self.sign_in_page(core, checkout), None);
                page::account(look, status, checkout, &note, Some(&form))
            }
            _ => page::ended(look, status, checkout),
        })
    }

    /// The page as the forms see it that sign in.
    const fn sign_in_page<'a>(&self, core: &'a Core, checkout: &'a Checkout) -> SignInPage<'a> {
        SignInPage::new(&checkout.client, self.texts, &core.settings.pages)
    }

    async fn sign_in(&self, core: &Core, checkout: &Checkout, form: &Form) -> Result<Reply> {
        let client = &checkout.client;
        let region = self.texts.spoken_region(&client.catalogue.page_regions);
        let identifier = checkout.identifier.as_ref();
        match sign_in_or_register(core, client, self.texts, form, identifier, region).await {
            Ok(SignIn::Incomplete(SignInStep { status, note, form: step })) => {
                let look = Look { texts: self.texts, settings: &core.settings.pages };
                let again = || forms(self.sign_in_page(core, checkout).after(Some(form)), None);
                Ok(page::account(look, status, checkout, &note, Some(&step.unwrap_or_else(again))))
            }
            Ok(SignIn::Done(SignedIn { user, began_at, .. })) => {
                let shopper = Shopper::User(user, began_at);
                let link = self.clone().read_by(core, checkout, shopper).await?;
                match link.resumption(core, checkout).flatten() {
                    Some(resumption) => link.go_on(core, checkout, shopper, &resumption).await,
                    None => {
                        let purchase = link.purchase(checkout, shopper, form);
                        link.first_step(core, purchase, &html! {}).await
                    }
                }
            }
            Err(error) => {
                let page = self.sign_in_page(core, checkout);
                error_page(page, error, forms, form, |status, note, form| {
                    let look = Look { texts: self.texts, settings: &core.settings.pages };
                    page::account(look, status, checkout, note, form)
                })
            }
        }
    }

    /// The step that the link names, once it is known who buys.
    async fn go_on(
        &self,
        core: &Core,
        checkout: &Checkout,
        shopper: Shopper,
        resumption: &Resumption,
    ) -> Result<Reply> {
        if shopper == Shopper::Unknown && checkout.is_open {
            let look = Look { texts: self.texts, settings: &core.settings.pages };
            let note = toast(Tone::Info, &self.texts.get("checkout-resume-sign-in"));
            return Ok(page::account(look, StatusCode::OK, checkout, &note, None));
        }
        let purchase = self.purchase(checkout, shopper, &resumption.form);
        match resumption.step {
            Step::Confirm if checkout.is_open => self.quote_or_buy(core, purchase, &html! {}).await,
            _ => self.first_step(core, purchase, &html! {}).await,
        }
    }

    /// Mails the link to this step, and shows the step again.
    async fn mail(&self, core: &Core, purchase: Purchase<'_>) -> Result<Reply> {
        let Purchase { checkout, shopper, form, .. } = purchase;
        let Some(user) = shopper.user() else { return self.lead_to_sign_in(core, checkout, form) };
        let identifier = self.identifier.as_deref();
        let mailed = resume::mail_link(core, purchase, user, identifier).await?;
        let (status, tone, text) = match mailed {
            Mailed::Sent => (StatusCode::OK, Tone::Good, "checkout-mail-sent"),
            Mailed::NoAddress => (StatusCode::CONFLICT, Tone::Bad, "checkout-mail-no-address"),
            Mailed::TooMany => (StatusCode::TOO_MANY_REQUESTS, Tone::Bad, "checkout-mail-too-many"),
        };
        let note = toast(tone, &self.texts.get(text));
        let mut reply = match Step::of(form) {
            Step::Details => self.first_step(core, purchase, &note).await,
            Step::Confirm => self.quote_or_buy(core, purchase, &note).await,
        }?;
        if reply.status == StatusCode::OK {
            reply.status = status;
        }
        Ok(reply)
    }

    /// Leads to the account's step, because the sign-in on the page is over or there was none. The
    /// link has what was typed, so that each way to sign in goes on with it.
    fn lead_to_sign_in(&self, core: &Core, checkout: &Checkout, form: &Form) -> Result<Reply> {
        let step = match form.get("action") {
            "quote" | "confirm" => Step::Confirm,
            "mail-link" => Step::of(form),
            _ => Step::Details,
        };
        let sealed = Resumption::seal(core, checkout, step, form)?;
        let mut query = form_urlencoded::Serializer::new(String::new());
        if let Some(identifier) = &self.identifier {
            query.append_pair("identifier", identifier);
        }
        query.append_pair("resume", &sealed);
        // As a query alone, it leads to this page.
        let mut reply = Reply::see_other(&format!("?{}", query.finish()));
        reply.set("referrer-policy", "no-referrer");
        Ok(reply)
    }

    /// The next step of a shopper who is known, with `said` above it.
    async fn quote_or_buy(
        &self,
        core: &Core,
        purchase: Purchase<'_>,
        said: &Markup,
    ) -> Result<Reply> {
        let Purchase { checkout, shopper, texts, .. } = purchase;
        let look = Look { texts, settings: &core.settings.pages };
        match Box::pin(purchase.step(core)).await {
            Ok(Outcome::Quoted { quote, why }) => {
                let sealed = shopper.seal(core, checkout)?;
                let (mut errors, mut note) = (FormErrors::default(), said.clone());
                match why {
                    Why::Asked => {}
                    Why::ConsentMissing => {
                        errors.add("consent", texts.get("checkout-consent-missing"));
                    }
                    Why::NewPrice => {
                        note = toast(Tone::Warning, &texts.get("checkout-new-price"));
                    }
                }
                let shown = Shown { purchase, sealed: &sealed, errors: &errors, note: &note };
                Ok(page::confirmation(look, shown, &quote))
            }
            Ok(Outcome::Bought { payment_url }) => Ok(page::to_payment(&payment_url)),
            // Another form of the checkout came first, such as the first one of a double click.
            Err(error) if error.is(Code::OfferAlreadyConfirmed) => {
                match self.checkout(core).await? {
                    Some(checkout) => self.ended(core, &checkout, shopper, StatusCode::CONFLICT),
                    None => Ok(page::not_found(look)),
                }
            }
            Err(Error::Refused(refusal)) => {
                let quote = Box::pin(purchase.preview(core)).await?;
                // The code of an amount that is refused is that of open checks too.
                let is_amount_fine = quote.is_some() && refusal.has(Code::FiatAmountInvalid);
                let errors = match is_amount_fine && purchase.waits_for_checks(core).await? {
                    true => FormErrors::one("", texts.get("error-checks-first")),
                    false => page::refusal(texts, checkout, &refusal),
                };
                let sealed = shopper.seal(core, checkout)?;
                let shown = Shown { purchase, sealed: &sealed, errors: &errors, note: said };
                let (status, quote) = (StatusCode::BAD_REQUEST, quote.as_deref());
                let mut reply = page::details(look, status, shown, quote);
                refusal.set_headers(&mut reply);
                Ok(reply)
            }
            Err(error) => Err(error),
        }
    }
}
