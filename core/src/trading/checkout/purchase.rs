//! The purchase on a checkout's page: the quote and the confirm of the API, with the checkout's
//! terms and what the shopper has typed.

use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::shopper::Shopper;
use super::stored::Checkout;
use crate::Core;
use crate::auth::caller::{ClientMaybeUser, Confirmer};
use crate::http::form::Form;
use crate::http::language::{Language, Texts};
use crate::platform::error::{Code, Error, Result};
use crate::trading::orders::confirm::{self, checks};
use crate::trading::quotes::Side;
use crate::trading::quotes::create::{self, Request, View};

/// Input that names the language in which the amount was typed, by whose marks it is read.
pub(super) const LANGUAGE: &str = "language";

/// The language in which the amount of a form was typed; the page's if the form names none.
fn typed_in(form: &Form, page: Texts) -> Texts {
    Language::from_tag(form.get(LANGUAGE)).map_or(page, Language::texts)
}

/// The next step.
pub(super) enum Outcome {
    /// A quote to look at.
    Quoted { quote: Box<View>, why: Why },
    /// The order stands; its payment follows.
    Bought { payment_url: String },
}

/// The reason for which a quote is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It was asked for.
    Asked,
    /// The box of the consent is not ticked.
    ConsentMissing,
    /// The one that was confirmed has expired.
    NewPrice,
}

/// A purchase of a shopper, with what is typed.
#[derive(Clone, Copy)]
pub(super) struct Purchase<'a> {
    pub(super) checkout: &'a Checkout,
    pub(super) shopper: Shopper,
    pub(super) texts: Texts,
    pub(super) form: &'a Form,
}

impl<'a> Purchase<'a> {
    /// Quotes, or confirms the quote of the form. A quote that has expired is made anew, to be looked
    /// at again; a shopper whom the partner knows buys at once where the partner asks for it, at the
    /// price that was shown if one was.
    ///
    /// # Errors
    /// Those of the quote and of the confirm.
    pub(super) async fn step(self, core: &Core) -> Result<Outcome> {
        let form = self.form;
        let consents = form.get("consent") == "yes";
        if form.get("action") == "confirm" {
            if consents {
                return self.buy_as_shown(core).await;
            }
            let quote = self.quote(core).await?;
            return Ok(Outcome::Quoted { quote, why: Why::ConsentMissing });
        }
        let at_once = consents && self.is_at_once();
        let was_shown = !form.get("quote").is_empty();
        if at_once && was_shown && self.is_of_shown_amount() {
            return self.buy_as_shown(core).await;
        }
        let quote = self.quote(core).await?;
        match at_once && !was_shown {
            true => self.buy(core, quote.token()).await,
            false => Ok(Outcome::Quoted { quote, why: Why::Asked }),
        }
    }

    /// Confirms the quote of the form; one that has expired is made anew, to be looked at.
    async fn buy_as_shown(self, core: &Core) -> Result<Outcome> {
        match self.buy(core, self.form.get("quote")).await {
            Err(error) if error.is(Code::QuoteExpired) => {
                let quote = self.quote(core).await?;
                Ok(Outcome::Quoted { quote, why: Why::NewPrice })
            }
            outcome => outcome,
        }
    }

    /// True if the form's quote is of the amount that is typed now.
    fn is_of_shown_amount(self) -> bool {
        let typed = self.amount().parse::<Decimal>();
        typed.is_ok_and(|typed| self.form.get("quoted").parse() == Ok(typed))
    }

    /// True if the shopper is a user, signed in or named by the partner, and the partner wants no
    /// confirmation of the quote.
    pub(super) fn is_at_once(self) -> bool {
        self.checkout.attempt_direct_confirm && self.shopper.user().is_some()
    }

    /// True if the partner wants the shopper checked before the payment, and a check is open.
    pub(super) async fn waits_for_checks(self, core: &Core) -> Result<bool> {
        let Some(user) = self.shopper.user() else { return Ok(false) };
        let Checkout { client, method, .. } = self.checkout;
        let method = method.as_deref().unwrap_or_default();
        let open = checks::open_before_payment(core, client, user, method).await?;
        Ok(!open.is_empty())
    }

    /// The amount whose price is shown before the wallet is known: the one that is typed, or else
    /// proposed.
    pub(super) fn shown_amount(self) -> String {
        match self.checkout.amount() {
            Some(proposed) if self.form.get("amount").is_empty() => proposed.to_string(),
            _ => self.amount(),
        }
    }

    /// The price of [`Self::shown_amount`]; `None` without an amount that has one.
    ///
    /// # Errors
    /// Those of the quote that no input is to blame for.
    pub(super) async fn preview(self, core: &Core) -> Result<Option<Box<View>>> {
        let amount = self.shown_amount();
        if amount.is_empty() {
            return Ok(None);
        }
        match self.quote_of(core, self.terms(amount)).await {
            Ok(quote) => Ok(Some(quote)),
            Err(Error::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn quote(self, core: &Core) -> Result<Box<View>> {
        let (address, tag) = self.wallet();
        let mut document = self.terms(self.amount());
        document["walletAddress"] = json!(address);
        if let Some(tag) = tag {
            document["destinationTag"] = tag;
        }
        let quote = self.quote_of(core, document).await?;
        core.quote_counts.record(Side::Buy);
        Ok(quote)
    }

    /// The checkout's amount if it is fixed, else the one that is typed.
    fn amount(self) -> String {
        match (self.checkout.fixed_amount, self.checkout.amount()) {
            (true, Some(amount)) => amount.to_string(),
            _ => typed_in(self.form, self.texts).plain_number(self.form.get("amount")),
        }
    }

    /// The amount as an input of the page shows it again: as it was typed, or with the marks of the
    /// page's language if it was typed in another one.
    pub(super) fn typed_amount(self) -> String {
        let (typed, texts) = (self.form.get("amount"), typed_in(self.form, self.texts));
        let number = texts.plain_number(typed).parse::<Decimal>().ok();
        match number.filter(|_| texts.language() != self.texts.language()) {
            Some(number) => self.texts.number(number),
            None => typed.to_owned(),
        }
    }

    /// The members of a quote's request that are the checkout's, and the amount.
    fn terms(self, amount: String) -> Value {
        let checkout = self.checkout;
        let amount_member =
            if checkout.is_amount_in_base() { "cryptoAmount" } else { "fiatAmount" };
        let mut document = json!({
            "currencyPair": format!("{}-{}", checkout.base, checkout.quote),
            "paymentMethod": checkout.method,
            amount_member: amount,
        });
        if let Some(fee) = checkout.fee_percentage {
            document["fee"] = json!(fee.to_string());
        }
        document
    }

    async fn quote_of(self, core: &Core, document: Value) -> Result<Box<View>> {
        let client = &self.checkout.client;
        let request = Request::read(Side::Buy, &document, client)?;
        let caller = ClientMaybeUser { client: client.clone(), user: self.shopper.user() };
        Ok(Box::new(create::create(core, &caller, request).await?))
    }

    async fn buy(self, core: &Core, quote: &str) -> Result<Outcome> {
        let (address, tag) = self.wallet();
        let mut document = json!({
            "quote": quote,
            "walletAddress": address,
            "offerId": self.checkout.offer.to_string(),
        });
        if let Some(tag) = tag {
            document["walletAddressTag"] = tag;
        }
        let client = self.checkout.client.clone();
        let caller = Confirmer { client, user: self.shopper.user() };
        let payment_url = confirm::confirm_on_page(core, caller, &document).await?;
        Ok(Outcome::Bought { payment_url })
    }

    /// Address and tag: the partner's, else the shopper's. An empty tag is none.
    fn wallet(self) -> (&'a str, Option<Value>) {
        let (checkout, form) = (self.checkout, self.form);
        let (address, tag) = match checkout.wallet_address.as_deref() {
            Some(address) => (address, checkout.wallet_address_tag.as_deref().unwrap_or_default()),
            None => (form.get("wallet").trim(), form.get("tag").trim()),
        };
        (address, (!tag.is_empty()).then(|| json!(tag)))
    }
}
