//! `GET` and `POST /checkout/{session}`: the page on which a shopper buys. The link is the
//! permission to read the terms and to buy at them; an account is the shopper's own.
//!
//! The steps are account (if the partner wants one), details, confirmation; the payment page
//! follows. A step is the answer to a form, so that each can be reloaded, and the link begins anew.

use http::{Method, StatusCode};
use maud::{Markup, html};

use super::page::{self, Look};
use super::purchase::{self, Outcome};
use super::shopper::Shopper;
use super::stored::Checkout;
use crate::Core;
use crate::auth::caller::Anyone;
use crate::endpoint::{Body, Endpoint};
use crate::http::fields::Fields;
use crate::http::form::Form;
use crate::http::html::components::{Tone, toast};
use crate::http::language::{Language, Texts};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Code, Error, Result};
use crate::users::account_pages::sign_in::{error_page, sign_in_or_register};

const PATH: &str = "/checkout/{session}";

/// Shows the first step.
pub struct Show;

impl Endpoint for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;
    const ERRORS: &'static [Code] = &[];
    type Caller = Anyone;
    type Request = Link;
    type Response = Reply;

    fn read(input: &Input, _: &Anyone) -> Result<Link> {
        Ok(Link::read(input))
    }

    async fn call(core: &Core, _: Anyone, link: Link) -> Result<Reply> {
        let look = Look { texts: link.texts, settings: &core.settings.pages };
        let Some(checkout) = link.checkout(core).await? else { return Ok(page::not_found(look)) };
        let shopper = Shopper::initial(&checkout);
        link.first_step(core, &checkout, shopper, &Form::read(&[]), (StatusCode::OK, &html! {}))
    }
}

/// Takes a step.
pub struct Act;

impl Endpoint for Act {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const ERRORS: &'static [Code] = &[];
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
        if !checkout.is_open {
            return Ok(page::ended(look, StatusCode::CONFLICT, &checkout));
        }
        match form.get("action") {
            "quote" | "confirm" => link.buy(core, &checkout, &form).await,
            "change" => {
                let shopper = Shopper::open(core, &checkout, form.get("shopper"));
                link.first_step(core, &checkout, shopper, &form, (StatusCode::OK, &html! {}))
            }
            _ => link.sign_in(core, &checkout, &form).await,
        }
    }
}

/// The link's parameters, and the reader's language.
#[derive(Debug)]
pub struct Link {
    session: String,
    identifier: Option<String>,
    request_id: String,
    texts: Texts,
}

impl Link {
    fn read(input: &Input) -> Self {
        let query = Fields::of_query(input.head.query.as_deref());
        let identifier = query.value("identifier").and_then(|value| value.as_str());
        Self {
            session: input.param("session").to_owned(),
            identifier: identifier.map(str::to_owned),
            request_id: input.head.request_id.clone(),
            texts: Language::of(input).texts(),
        }
    }

    async fn checkout(&self, core: &Core) -> Result<Option<Checkout>> {
        let link = (self.session.as_str(), self.identifier.as_deref());
        Checkout::find(core, link, &self.request_id).await
    }

    /// The account if it is missing, else the details, as far as the form has them.
    fn first_step(
        &self,
        core: &Core,
        checkout: &Checkout,
        shopper: Shopper,
        form: &Form,
        (status, note): (StatusCode, &Markup),
    ) -> Result<Reply> {
        let look = Look { texts: self.texts, settings: &core.settings.pages };
        if !checkout.is_open {
            return Ok(page::ended(look, status, checkout));
        }
        Ok(match shopper {
            Shopper::Unknown => page::account(look, status, checkout, note),
            _ => {
                let sealed = shopper.seal(core, checkout)?;
                page::details(look, status, (checkout, shopper, &sealed), form, note)
            }
        })
    }

    async fn sign_in(&self, core: &Core, checkout: &Checkout, form: &Form) -> Result<Reply> {
        let to = (checkout.identifier.as_ref(), None);
        match sign_in_or_register(core, &checkout.client, form, to).await {
            Ok(user) => {
                let shopper = Shopper::User(user);
                self.first_step(core, checkout, shopper, form, (StatusCode::OK, &html! {}))
            }
            Err(error) => error_page(self.texts, error, |status, note| {
                let look = Look { texts: self.texts, settings: &core.settings.pages };
                page::account(look, status, checkout, note)
            }),
        }
    }

    async fn buy(&self, core: &Core, checkout: &Checkout, form: &Form) -> Result<Reply> {
        let look = Look { texts: self.texts, settings: &core.settings.pages };
        let shopper = Shopper::open(core, checkout, form.get("shopper"));
        if shopper == Shopper::Unknown {
            let note = toast(Tone::Bad, &self.texts.get("checkout-signed-out"));
            return Ok(page::account(look, StatusCode::BAD_REQUEST, checkout, &note));
        }
        match Box::pin(purchase::step(core, checkout, shopper, form)).await {
            Ok(Outcome::Quoted { quote, note }) => {
                let sealed = shopper.seal(core, checkout)?;
                let note = note.map(|id| toast(Tone::Warning, &self.texts.get(id)));
                let note = note.unwrap_or_else(|| html! {});
                Ok(page::confirmation(look, (checkout, &sealed), form, (&quote, &note)))
            }
            Ok(Outcome::Bought { payment_url }) => Ok(page::to_payment(&payment_url)),
            Err(Error::Refused(refusal)) => {
                let note = page::refusal(self.texts, &refusal);
                let status = StatusCode::BAD_REQUEST;
                let mut reply = self.first_step(core, checkout, shopper, form, (status, &note))?;
                refusal.set_headers(&mut reply);
                Ok(reply)
            }
            Err(error) => Err(error),
        }
    }
}
