//! The purchase on a checkout's page: the quote and the confirm of the API, with the checkout's
//! terms and what the shopper has typed.

use serde_json::{Value, json};

use super::shopper::Shopper;
use super::stored::Checkout;
use crate::Core;
use crate::auth::caller::{ClientMaybeUser, Reader};
use crate::http::form::Form;
use crate::platform::error::{Code, Error, Result};
use crate::trading::orders::confirm;
use crate::trading::quotes::Side;
use crate::trading::quotes::create::{self, Request, View};

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

/// Quotes, or confirms the quote of the form. A quote that has expired is made anew, to be looked at
/// again; a shopper whom the partner knows buys at once where the partner asks for it.
///
/// # Errors
/// Those of the quote and of the confirm.
pub(super) async fn step(
    core: &Core,
    checkout: &Checkout,
    shopper: Shopper,
    form: &Form,
) -> Result<Outcome> {
    if form.get("action") == "confirm" {
        if form.get("consent") != "yes" {
            let quote = quote(core, checkout, shopper, form).await?;
            return Ok(Outcome::Quoted { quote, why: Why::ConsentMissing });
        }
        return match buy(core, checkout, shopper, form, form.get("quote")).await {
            Err(error) if error.is(Code::QuoteExpired) => {
                let quote = quote(core, checkout, shopper, form).await?;
                Ok(Outcome::Quoted { quote, why: Why::NewPrice })
            }
            outcome => outcome,
        };
    }
    let quote = quote(core, checkout, shopper, form).await?;
    match buys_at_once(checkout, shopper) && form.get("consent") == "yes" {
        true => buy(core, checkout, shopper, form, quote.token()).await,
        false => Ok(Outcome::Quoted { quote, why: Why::Asked }),
    }
}

/// True if the shopper is a user, signed in or named by the partner, and the partner wants no
/// confirmation of the quote.
pub(super) fn buys_at_once(checkout: &Checkout, shopper: Shopper) -> bool {
    checkout.attempt_direct_confirm && shopper.user().is_some()
}

/// The price of the amount that is typed or else proposed, to be shown before the wallet is known;
/// `None` without an amount that has one.
///
/// # Errors
/// Those of the quote that no input is to blame for.
pub(super) async fn preview(
    core: &Core,
    checkout: &Checkout,
    shopper: Shopper,
    form: &Form,
) -> Result<Option<Box<View>>> {
    let amount = match (checkout.fixed_amount || form.get("amount").is_empty(), checkout.amount()) {
        (true, Some(amount)) => amount.to_string(),
        _ => typed_amount(form),
    };
    if amount.is_empty() {
        return Ok(None);
    }
    match quote_of(core, checkout, shopper, terms(checkout, amount)).await {
        Ok(quote) => Ok(Some(quote)),
        Err(Error::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn quote(
    core: &Core,
    checkout: &Checkout,
    shopper: Shopper,
    form: &Form,
) -> Result<Box<View>> {
    let amount = match (checkout.fixed_amount, checkout.amount()) {
        (true, Some(amount)) => amount.to_string(),
        _ => typed_amount(form),
    };
    let (address, tag) = wallet(checkout, form);
    let mut document = terms(checkout, amount);
    document["walletAddress"] = json!(address);
    if let Some(tag) = tag {
        document["destinationTag"] = tag;
    }
    quote_of(core, checkout, shopper, document).await
}

fn typed_amount(form: &Form) -> String {
    form.get("amount").trim().replace(',', ".")
}

/// The members of a quote's request that are the checkout's, and the amount.
fn terms(checkout: &Checkout, amount: String) -> Value {
    let amount_member = if checkout.is_amount_in_base() { "cryptoAmount" } else { "fiatAmount" };
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

async fn quote_of(
    core: &Core,
    checkout: &Checkout,
    shopper: Shopper,
    document: Value,
) -> Result<Box<View>> {
    let request = Request::read(Side::Buy, &document, &checkout.client)?;
    let caller = ClientMaybeUser { client: checkout.client.clone(), user: shopper.user() };
    Ok(Box::new(create::create(core, &caller, Side::Buy, request).await?))
}

async fn buy(
    core: &Core,
    checkout: &Checkout,
    shopper: Shopper,
    form: &Form,
    quote: &str,
) -> Result<Outcome> {
    let (address, tag) = wallet(checkout, form);
    let mut document = json!({
        "quote": quote,
        "walletAddress": address,
        "offerId": checkout.offer.to_string(),
    });
    if let Some(tag) = tag {
        document["walletAddressTag"] = tag;
    }
    let caller = Reader { client: checkout.client.clone(), user: shopper.user() };
    let payment_url = confirm::confirm_on_page(core, caller, &document).await?;
    Ok(Outcome::Bought { payment_url })
}

/// Address and tag: the partner's, else the shopper's. An empty tag is none.
fn wallet<'a>(checkout: &'a Checkout, form: &'a Form) -> (&'a str, Option<Value>) {
    let (address, tag) = match checkout.wallet_address.as_deref() {
        Some(address) => (address, checkout.wallet_address_tag.as_deref().unwrap_or_default()),
        None => (form.get("wallet").trim(), form.get("tag").trim()),
    };
    (address, (!tag.is_empty()).then(|| json!(tag)))
}
