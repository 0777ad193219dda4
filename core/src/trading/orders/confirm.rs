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
pub(crate) mod order;
pub(crate) mod request;
pub(crate) mod terms;

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use self::account::NamedAccount;
use self::order::{ExistingOrder, NewOrder};
pub use self::request::Confirm;
use self::request::{MEMBERS, Terms, V1_MEMBERS, V2_MEMBERS};
use self::terms::{Destination, OfferTerms};
use super::insert::{InsertOutcome, ORDER_ID_TRIES_MAX};
use super::payment_link::payment_url;
use super::status::Cause;
use crate::Core;
use crate::auth::caller::{Client, Reader};
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, ClaimedKey, Endpoint, Json, Respond};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Code, Error, Refusal, Result, joined};
use crate::trading::limits;
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
        confirm(core, caller, request, None).await
    }

    async fn call_with_key(
        core: &Core,
        caller: Reader,
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
        confirm(core, caller, request, None).await
    }

    async fn call_with_key(
        core: &Core,
        caller: Reader,
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

/// Confirms a quote. The answer is saved under the key in the statement that makes the order.
async fn confirm<A>(
    core: &Core,
    caller: Reader,
    request: Confirm,
    key: Option<&ClaimedKey>,
) -> Result<Json<A>>
where
    A: From<Confirmed>,
    Json<A>: Respond,
{
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
    let offer = match &request.terms {
        Terms::Offer { id, .. } => OfferTerms::find(core, client.id(), *id).await?,
        Terms::Stated { .. } => None,
    };
    let user = user.or(quote.user).or(offer.as_ref().and_then(OfferTerms::user));
    let account = NamedAccount::find(core, client.id(), user, request.account.as_deref()).await?;
    let context = ConfirmContext { client, user, account, quote, request, destination };
    // The quote may have become an order before, whatever a new one would be refused for.
    let confirmed = if expired {
        context.existing_order(core).await?.ok_or(Code::QuoteExpired)?
    } else if context.validate(core, offer.as_ref(), &Standing::Deferred).is_empty() {
        let answer = |confirmed| Json(A::from(confirmed)).respond();
        context.place(core, offer.as_ref(), key.map(|key| (key, answer))).await?
    } else {
        match context.existing_order(core).await? {
            Some(confirmed) => confirmed,
            None => return Err(context.refusal(core, offer.as_ref()).await?.into()),
        }
    };
    Ok(Json(confirmed.into()))
}

/// A confirm whose quote is open.
struct ConfirmContext {
    client: Client,
    /// Whose order it becomes.
    user: Option<UserId>,
    /// The account that pays.
    account: NamedAccount,
    quote: Quote,
    request: Confirm,
    destination: Destination,
}

/// The order's user as limits know it.
enum Standing {
    /// The statement that makes the order decides.
    Deferred,
    /// As read, for an order of a user.
    Read(Option<checks::UserStanding>),
}

impl ConfirmContext {
    /// Preconditions of a new order that do not hold.
    fn validate(&self, core: &Core, offer: Option<&OfferTerms>, standing: &Standing) -> Refusal {
        let mut refusal = Refusal::new();
        checks::market(&self.client.catalogue, &self.quote, &mut refusal);
        self.account.check(&self.quote, &mut refusal);
        if let Standing::Read(standing) = standing {
            checks::standing(standing.as_ref(), &mut refusal);
            if let Some(standing) = standing {
                checks::limit(standing, &self.quote, &mut refusal);
            }
        }
        if matches!(self.request.terms, Terms::Offer { .. }) {
            match offer.filter(|offer| offer.is_for(self.user)) {
                Some(offer) => {
                    offer.check(&self.quote, &self.destination, core.clock.now(), &mut refusal);
                }
                None => refusal.add(Code::OfferNotFound, None),
            }
        }
        refusal
    }

    /// The same, the user's standing included.
    async fn refusal(&self, core: &Core, offer: Option<&OfferTerms>) -> Result<Refusal> {
        let standing = match self.user {
            Some(user) => Standing::Read(limits::standing(core, self.client.id(), user).await?),
            None => Standing::Deferred,
        };
        Ok(self.validate(core, offer, &standing))
    }

    /// Makes the order, with the answer saved under its key.
    async fn place(
        &self,
        core: &Core,
        offer: Option<&OfferTerms>,
        key: Option<(&ClaimedKey, impl Fn(Confirmed) -> Result<Reply>)>,
    ) -> Result<Confirmed> {
        let order = NewOrder::new(core, self, offer)?;
        for _ in 0..ORDER_ID_TRIES_MAX {
            let id = OrderId::from_entropy(core.clock.random_u64()?);
            let confirmed = Confirmed::new(core, self.client.id(), id, order.expires_at)?;
            let answer = match &key {
                Some((key, answer)) => Some(key.answer(core, &answer(confirmed.clone())?)?),
                None => None,
            };
            match core.order_inserts.submit(order.row(core, id, answer)?).await? {
                InsertOutcome::Placed => {
                    core.metrics.orders.with_label_values(&[Cause::Confirmed.as_str()]).inc();
                    if let Some((key, _)) = &key {
                        key.mark_saved();
                    }
                    return Ok(confirmed);
                }
                InsertOutcome::Conflict => {
                    if let Some(confirmed) = self.existing_order(core).await? {
                        return Ok(confirmed);
                    }
                    // It was the number that was taken.
                }
                InsertOutcome::OfferTaken => {
                    return self.resolve_conflict(core, (Code::OfferAlreadyConfirmed, None)).await;
                }
                InsertOutcome::Forbidden => {
                    let limit_reached = (Code::FiatAmountInvalid, Some(checks::LIMIT_REACHED));
                    return self.resolve_conflict(core, limit_reached).await;
                }
                InsertOutcome::Unavailable => return Err(Error::unavailable("place an order")),
                InsertOutcome::Failed(error) => return Err(error.into()),
                // The statement may have been carried out. The quote's order says so, or will when
                // the client asks again; another statement could not tell.
                InsertOutcome::Unknown => {
                    return match self.existing_order(core).await {
                        Ok(Some(confirmed)) => Ok(confirmed),
                        _ => Err(Error::unavailable("learn whether an order was placed")),
                    };
                }
            }
        }
        Err(Error::broken("find a free order number"))
    }

    /// The order that this quote became before, in the same terms.
    ///
    /// # Errors
    /// ER007 when it became one in other terms.
    async fn existing_order(&self, core: &Core) -> Result<Option<Confirmed>> {
        let client = self.client.id();
        let existing = ExistingOrder::find(core, client, self.quote.id).await?;
        let Some(existing) = existing else { return Ok(None) };
        if existing.terms_digest != self.terms_digest() {
            return Err(Code::QuoteInvalid.into());
        }
        Confirmed::new(core, client, existing.order_id, existing.expires_at).map(Some)
    }

    /// The answer to a confirm that the statement refused: the order of another confirm of the same
    /// quote that was faster, or else the preconditions that do not hold any more, or the code that
    /// the statement stands for.
    async fn resolve_conflict(
        &self,
        core: &Core,
        (code, detail): (Code, Option<&'static str>),
    ) -> Result<Confirmed> {
        if let Some(confirmed) = self.existing_order(core).await? {
            return Ok(confirmed);
        }
        let offer = match &self.request.terms {
            Terms::Offer { id, .. } => OfferTerms::find(core, self.client.id(), *id).await?,
            Terms::Stated { .. } => None,
        };
        let mut refusal = self.refusal(core, offer.as_ref()).await?;
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
