//! Confirming a buy quote: the quote becomes an order, and its user gets a place to pay.
//!
//! `POST /api/v1/buy/confirm` confirms a quote on its own, `POST /api/v2/buy/confirm` under an
//! offer. Both are read into one [`Confirm`] and run one [`confirm`], whose only effect is one
//! statement (`orders/insert.rs`): of N confirms of one offer or one quote, on however many edges,
//! one makes an order. The statement decides on the user's limit too; only what it refuses is
//! looked at again, to say why.
//! Confirming a quote again in the same terms answers the same order, so a client that lost the
//! answer just asks again.

pub(crate) mod account;
pub(crate) mod checks;
mod context;
pub(crate) mod order;
pub(crate) mod request;
pub(crate) mod terms;

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use self::account::NamedAccount;
use self::context::{ConfirmContext, UsageCheck};
pub use self::request::Confirm;
use self::request::{MEMBERS, Terms, V1_MEMBERS, V2_MEMBERS};
use self::terms::{Destination, OfferTerms};
use super::payment_link::payment_url;
use crate::Core;
use crate::auth::caller::Confirmer;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, ClaimedKey, Deprecation, Endpoint, Json, Respond};
use crate::http::request::Input;
use crate::platform::error::{Code, Result, concat_codes};
use crate::tenancy::tenants::Scope;
use crate::trading::quotes::{Side, token};
use rampart_types::{OrderId, OrderKey};

const DETAILS: &str = "Send the user to `paymentUrl`. Confirming the quote again in the same terms \
                       answers the same order, so that a lost answer can be asked for again; in \
                       other terms it is ER007. `expiresAt` is the end of the time to pay; a bank \
                       transfer has none.";

/// Error codes of both versions.
const ERRORS: [Code; 19] = [
    Code::QuoteExpired,
    Code::QuoteInvalid,
    Code::CurrencyInMaintenance,
    Code::NotBuyQuote,
    Code::FiatAmountInvalid,
    Code::WalletAddressInvalid,
    Code::DestinationTagInvalid,
    Code::DestinationTagUnsupported,
    Code::QuoteMissing,
    Code::CallbackUrlInvalid,
    Code::ReturnUrlInvalid,
    Code::RequestMalformed,
    Code::PaymentMethodUnavailable,
    Code::UserDisabled,
    Code::AccountTypeUnsupported,
    Code::AccountNotVerified,
    Code::AccountIdentifierInvalid,
    Code::AccountNotFound,
    Code::AccountDisabled,
];

/// Error codes of a confirm under an offer alone.
const OFFER_ERRORS: [Code; 7] = [
    Code::OfferAlreadyConfirmed,
    Code::OfferNotFound,
    Code::OfferExpired,
    Code::OfferAmountFixed,
    Code::OfferCurrencyFixed,
    Code::OfferPaymentMethodFixed,
    Code::OfferFeeFixed,
];

/// Version 1: a quote on its own.
pub struct V1;

impl Endpoint for V1 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v1/buy/confirm";
    const SCOPE: Option<Scope> = Some(Scope::OrdersWrite);
    const ERRORS: &'static [Code] = &ERRORS;
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
    const DEPRECATION: Option<Deprecation> = Some(Deprecation { successor: V2::PATH });
    const DOC: Doc = Doc {
        summary: "Confirm a buy quote",
        details: DETAILS,
        body: Shape::Joined(&[MEMBERS, V1_MEMBERS]),
        request: r#"{
            "quote": "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..c2VhbGVk.dGV4dA.dGFn",
            "walletAddress": "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            "returnUrl": "https://shop.example/thanks"
        }"#,
        answer: r#"{
            "orderId": 1742980455013377,
            "paymentUrl": "https://pay.example.com/pay/AbCdEf0123",
            "expiresAt": "2026-03-01T12:15:00Z"
        }"#,
        ..Doc::NONE
    };
    type Caller = Confirmer;
    type Request = Confirm;
    type Response = Json<ConfirmedV1>;

    fn read(input: &Input, caller: &Confirmer) -> Result<Confirm> {
        Confirm::read_v1(&input.document, &caller.client)
    }

    async fn call(core: &Core, caller: Confirmer, request: Confirm) -> Result<Json<ConfirmedV1>> {
        confirm(core, caller, request, None).await
    }

    async fn call_with_key(
        core: &Core,
        caller: Confirmer,
        request: Confirm,
        key: Option<&ClaimedKey>,
    ) -> Result<Json<ConfirmedV1>> {
        confirm(core, caller, request, key).await
    }
}

/// Version 2: a quote under an offer.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/buy/confirm";
    const SCOPE: Option<Scope> = Some(Scope::OrdersWrite);
    const ERRORS: &'static [Code] =
        &concat_codes::<{ ERRORS.len() + OFFER_ERRORS.len() }>(&[&ERRORS, &OFFER_ERRORS]);
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Confirm a buy quote under an offer",
        details: DETAILS,
        body: Shape::Joined(&[MEMBERS, V2_MEMBERS]),
        request: r#"{
            "quote": "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..c2VhbGVk.dGV4dA.dGFn",
            "walletAddress": "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            "offerId": "019c1f5e-7c0a-7d52-9d3f-2b8a4e6f1c70"
        }"#,
        answer: r#"{
            "orderId": 1742980455013377,
            "paymentUrl": "https://pay.example.com/pay/AbCdEf0123",
            "expiresAt": "2026-03-01T12:15:00Z"
        }"#,
        ..Doc::NONE
    };
    type Caller = Confirmer;
    type Request = Confirm;
    type Response = Json<ConfirmedV2>;

    fn read(input: &Input, caller: &Confirmer) -> Result<Confirm> {
        Confirm::read_v2(&input.document, &caller.client)
    }

    async fn call(core: &Core, caller: Confirmer, request: Confirm) -> Result<Json<ConfirmedV2>> {
        confirm(core, caller, request, None).await
    }

    async fn call_with_key(
        core: &Core,
        caller: Confirmer,
        request: Confirm,
        key: Option<&ClaimedKey>,
    ) -> Result<Json<ConfirmedV2>> {
        confirm(core, caller, request, key).await
    }
}

/// An order that stands, now or since an earlier confirm.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Confirmed {
    order_id: OrderId,
    payment_url: String,
    expires_at: Option<DateTime<Utc>>,
}

impl Confirmed {
    fn new(core: &Core, key: OrderKey, expires_at: Option<DateTime<Utc>>) -> Result<Self> {
        Ok(Self { order_id: key.order, payment_url: payment_url(core, key)?, expires_at })
    }
}

/// The answer of version 1.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConfirmedBuyV1")]
pub struct ConfirmedV1 {
    /// Number of the order.
    order_id: OrderId,
    /// URL of the page on which the user pays.
    payment_url: String,
    /// Null for a bank transfer.
    expires_at: Option<DateTime<Utc>>,
}

impl From<Confirmed> for ConfirmedV1 {
    fn from(Confirmed { order_id, payment_url, expires_at }: Confirmed) -> Self {
        Self { order_id, payment_url, expires_at }
    }
}

/// The answer of version 2.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConfirmedBuy")]
pub struct ConfirmedV2 {
    /// Number of the order.
    order_id: OrderId,
    /// URL of the page on which the user pays.
    payment_url: String,
    /// Absent for a bank transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<DateTime<Utc>>,
}

impl From<Confirmed> for ConfirmedV2 {
    fn from(Confirmed { order_id, payment_url, expires_at }: Confirmed) -> Self {
        Self { order_id, payment_url, expires_at }
    }
}

/// Confirms a quote under an offer on a page of ours, in the members of version 2, and returns the URL
/// of the order's payment page.
///
/// # Errors
/// Those of version 2.
pub(crate) async fn confirm_on_page(
    core: &Core,
    caller: Confirmer,
    document: &Value,
) -> Result<String> {
    let request = Confirm::read_v2(document, &caller.client)?;
    let Json(confirmed): Json<ConfirmedV2> = confirm(core, caller, request, None).await?;
    Ok(confirmed.payment_url)
}

/// Confirms a quote. The answer is saved under the key in the statement that makes the order.
async fn confirm<A>(
    core: &Core,
    caller: Confirmer,
    request: Confirm,
    key: Option<&ClaimedKey>,
) -> Result<Json<A>>
where
    A: From<Confirmed>,
    Json<A>: Respond,
{
    let Confirmer { client, user } = caller;
    let opened = match token::open(core, &client, user, Side::Buy, &request.quote) {
        Err(error) if error.is(Code::QuoteExpired) => {
            token::open_expired(core, &client, user, Side::Buy, &request.quote)
                .map(|quote| (quote, true))
        }
        opened => opened.map(|quote| (quote, false)),
    };
    // A member is refused before the state of the quote.
    let (quote, expired) = opened.or_else(|error| request.check_address().and(Err(error)))?;
    let destination = Destination::read(&request, &quote, &client.catalogue)?;
    quote.check_wallet(&destination.address, destination.tag.as_ref())?;
    let offer = match &request.terms {
        Terms::Offer { id, .. } => OfferTerms::find(core, client.id(), *id).await?,
        Terms::Stated { .. } => None,
    };
    let user = user.or(quote.user).or(offer.as_ref().and_then(OfferTerms::user));
    if let Some((key, user)) = key.zip(user) {
        key.set_user(user);
    }
    let account = NamedAccount::find(core, client.id(), user, request.account.as_deref()).await?;
    let context = ConfirmContext { client, user, account, quote, request, destination };
    // The quote may have become an order before, whatever a new one would be refused for.
    let confirmed = if expired {
        context.existing_order(core).await?.ok_or_else(token::expired)?
    } else {
        let (offer, account) = (offer.as_ref(), &context.account);
        let mut refusal = context.validate(core, offer, account, UsageCheck::Deferred);
        context.check_gate(core, &mut refusal).await?;
        if refusal.is_empty() {
            let answer = |confirmed| Json(A::from(confirmed)).respond();
            context.place(core, offer, key.map(|key| (key, answer))).await?
        } else {
            match context.existing_order(core).await? {
                Some(confirmed) => confirmed,
                None => {
                    let mut refusal = context.refusal(core, offer, account).await?;
                    context.check_gate(core, &mut refusal).await?;
                    return Err(refusal.into());
                }
            }
        }
    };
    Ok(Json(confirmed.into()))
}
