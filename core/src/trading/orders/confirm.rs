//! Confirming a buy quote: the quote becomes an order, and its user gets a place to pay.
//!
//! `POST /api/v1/buy/confirm` confirms a quote on its own, `POST /api/v2/buy/confirm` under an
//! offer. Both are read into one [`Confirm`] and run one [`confirm`], whose only effect is one
//! statement: of N confirms of one offer or one quote, on however many edges, one makes an order.
//! Confirming a quote again in the same terms answers the same order, so a client that lost the
//! answer just asks again.

pub(crate) mod account;
pub(crate) mod checks;
pub(crate) mod placing;
pub(crate) mod request;
pub(crate) mod terms;
mod together;

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use self::account::NamedAccount;
use self::placing::{NewOrder, Outcome, earlier, place};
pub use self::request::Confirm;
use self::request::{MEMBERS, Terms, V1_MEMBERS, V2_MEMBERS};
use self::terms::{Destination, OfferTerms};
pub use self::together::Confirms;
use super::payment_link::payment_url;
use super::status::Cause;
use crate::Core;
use crate::auth::caller::{Client, Reader};
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::request::Input;
use crate::platform::error::{Code, Error, Refusal, Result, joined};
use crate::trading::quotes::{Quote, Side, token};
use rampart_types::{ClientId, OrderId, UserId};

const DETAILS: &str = "Send the user to `paymentUrl`. Confirming the quote again in the same terms \
                       answers the same order, so that a lost answer can be asked for again; in \
                       other terms it is ER007. `expiresAt` is the end of the time to pay; a bank \
                       transfer has none.";

/// What both versions say.
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

/// What only a confirm under an offer says.
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
    const ERRORS: &'static [Code] = &ERRORS;
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
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
    type Caller = Reader;
    type Request = Confirm;
    type Response = Json<ConfirmedV1>;

    fn read(input: &Input, caller: &Reader) -> Result<Confirm> {
        Confirm::read_v1(&input.document, &caller.client)
    }

    async fn call(core: &Core, caller: Reader, request: Confirm) -> Result<Json<ConfirmedV1>> {
        Ok(Json(confirm(core, caller, request).await?.into()))
    }
}

/// Version 2: a quote under an offer.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v2/buy/confirm";
    const ERRORS: &'static [Code] =
        &joined::<{ ERRORS.len() + OFFER_ERRORS.len() }>(&[&ERRORS, &OFFER_ERRORS]);
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
    type Caller = Reader;
    type Request = Confirm;
    type Response = Json<ConfirmedV2>;

    fn read(input: &Input, caller: &Reader) -> Result<Confirm> {
        Confirm::read_v2(&input.document, &caller.client)
    }

    async fn call(core: &Core, caller: Reader, request: Confirm) -> Result<Json<ConfirmedV2>> {
        Ok(Json(confirm(core, caller, request).await?.into()))
    }
}

/// An order that stands, now or since an earlier confirm.
#[derive(Debug, PartialEq, Eq)]
struct Confirmed {
    order_id: OrderId,
    payment_url: String,
    expires_at: Option<DateTime<Utc>>,
}

impl Confirmed {
    fn new(
        core: &Core,
        client: ClientId,
        order_id: OrderId,
        expires_at: Option<DateTime<Utc>>,
    ) -> Result<Self> {
        Ok(Self { order_id, payment_url: payment_url(core, client, order_id)?, expires_at })
    }
}

/// The answer of version 1.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfirmedV1 {
    order_id: OrderId,
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
pub struct ConfirmedV2 {
    order_id: OrderId,
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

async fn confirm(core: &Core, caller: Reader, request: Confirm) -> Result<Confirmed> {
    let Reader { client, user } = caller;
    let opened = token::open(core, &client, user, Side::Buy, &request.quote);
    let (quote, expired) = match opened {
        Err(error) if error.is(Code::QuoteExpired) => {
            (token::open_expired(core, &client, user, Side::Buy, &request.quote)?, true)
        }
        opened => (opened?, false),
    };
    let destination = Destination::read(&request, &quote, &client.catalogue)?;
    quote.check_wallet(&destination.address, destination.tag.as_ref())?;
    let user = match (user.or(quote.user), &request.terms) {
        (None, Terms::Offer { id, .. }) => OfferTerms::user(core, client.id(), *id).await?,
        (user, _) => user,
    };
    let account = NamedAccount::find(core, client.id(), user, request.account.as_deref()).await?;
    let confirming = Confirming { client, user, account, quote, request, destination };
    // Whatever stands against a new order, the quote may have become one before.
    if expired {
        return confirming.repeated(core).await?.ok_or_else(|| Code::QuoteExpired.into());
    }
    let (refusal, offer) = confirming.check(core).await?;
    if !refusal.is_empty() {
        return confirming.repeated(core).await?.ok_or_else(|| refusal.into());
    }
    confirming.place(core, offer).await
}

/// A confirm whose quote is open.
struct Confirming {
    client: Client,
    /// Whose order it becomes.
    user: Option<UserId>,
    /// What it is paid from.
    account: NamedAccount,
    quote: Quote,
    request: Confirm,
    destination: Destination,
}

impl Confirming {
    /// What stands against a new order, and the offer that it is made under.
    async fn check(&self, core: &Core) -> Result<(Refusal, Option<OfferTerms>)> {
        let mut refusal = Refusal::new();
        checks::market(&self.client.catalogue, &self.quote, &mut refusal);
        self.account.check(&self.quote, &mut refusal);
        if let Some(user) = self.user
            && let Some(standing) = checks::user(core, self.client.id(), user, &mut refusal).await?
        {
            checks::limit(&standing, &self.quote, &mut refusal);
        }
        let Terms::Offer { id, .. } = &self.request.terms else { return Ok((refusal, None)) };
        let offer = OfferTerms::find(core, self.client.id(), *id).await?;
        let offer = offer.filter(|offer| offer.is_for(self.user));
        match &offer {
            Some(offer) => {
                offer.check(&self.quote, &self.destination, core.clock.now(), &mut refusal);
            }
            None => refusal.add(Code::OfferNotFound, None),
        }
        Ok((refusal, offer))
    }

    async fn place(self, core: &Core, offer: Option<OfferTerms>) -> Result<Confirmed> {
        let order = NewOrder::of(core, &self, offer.as_ref(), core.clock.now())?;
        match place(core, &order).await? {
            Outcome::Placed(id) => {
                core.metrics.orders.with_label_values(&[Cause::Confirmed.as_str()]).inc();
                Confirmed::new(core, self.client.id(), id, order.expires_at)
            }
            Outcome::QuoteUsed => {
                let repeated = self.repeated(core).await?;
                repeated.ok_or_else(|| Error::broken("find the order of a used quote"))
            }
            Outcome::OfferTaken => self.overtaken(core, (Code::OfferAlreadyConfirmed, None)).await,
            Outcome::Forbidden => {
                self.overtaken(core, (Code::FiatAmountInvalid, Some(checks::LIMIT_REACHED))).await
            }
            // The statement may have been carried out. What it left behind says so, or will when
            // the client asks again; doing it again blindly could not tell.
            Outcome::Unknown(error) => match self.repeated(core).await {
                Ok(Some(confirmed)) => Ok(confirmed),
                _ => Err(error.into()),
            },
        }
    }

    /// The order that this quote became before, in the same terms.
    ///
    /// # Errors
    /// ER007 when it became one in other terms.
    async fn repeated(&self, core: &Core) -> Result<Option<Confirmed>> {
        let client = self.client.id();
        let Some(earlier) = earlier(core, client, self.quote.id).await? else { return Ok(None) };
        if earlier.terms_digest != self.terms_digest() {
            return Err(Code::QuoteInvalid.into());
        }
        Confirmed::new(core, client, earlier.order_id, earlier.expires_at).map(Some)
    }

    /// What stands against the order although nothing did a moment ago: what a second look finds,
    /// or else the code that it was stopped for. Another confirm of the same quote may have been
    /// faster, and is then the answer.
    async fn overtaken(
        &self,
        core: &Core,
        (code, detail): (Code, Option<&'static str>),
    ) -> Result<Confirmed> {
        if let Some(confirmed) = self.repeated(core).await? {
            return Ok(confirmed);
        }
        let (mut refusal, _) = self.check(core).await?;
        if refusal.is_empty() {
            refusal.add(code, detail.map(Into::into));
        }
        Err(refusal.into())
    }

    fn terms_digest(&self) -> [u8; 32] {
        let Confirm { partner_reference, terms, .. } = &self.request;
        let offer = match terms {
            Terms::Offer { id, .. } => Some(*id),
            Terms::Stated { .. } => None,
        };
        let reference = partner_reference.as_ref();
        terms::digest(&self.destination, offer, reference, self.user, &self.account)
    }
}
