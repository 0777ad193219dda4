//! `POST /api/v1/sell/confirm`: a sell quote becomes a sale, and its user gets a place to send the
//! coins to.
//!
//! A quote is used once. Confirming it again in the same terms answers the same sale.

use chrono::{DateTime, TimeDelta, Utc};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;

use super::deposit;
use super::insert::{ExistingSale, NewSaleRow, insert_sale};
use crate::Core;
use crate::auth::caller::{Client, Confirmer};
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, optional, required};
use crate::endpoint::{Body, ClaimedKey, Endpoint, Json, key_lost};
use crate::http::fields::Fields;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::money::connectors::deposits::DepositAddress;
use crate::notify::events::EventType;
use crate::platform::error::{Code, Error, Refusal, Result};
use crate::platform::telemetry::TraceScope;
use crate::tenancy::tenants::Scope;
use crate::trading::catalogue::PairStatus;
use crate::trading::orders::confirm::account::NamedAccount;
use crate::trading::orders::confirm::{checks, request, terms};
use crate::trading::orders::insert::{InsertOutcome, ORDER_ID_TRIES_MAX, created_payload};
use crate::trading::orders::quoted::QuotedColumns;
use crate::trading::orders::status::{Cause, OrderStatus};
use crate::trading::quotes::{Quote, Side, token};
use crate::trading::routing::{self, Settlement};
use crate::users::accounts::{IDENTIFIER_BYTES_MAX, identifier};
use rampart_types::{
    CallbackUrl, DestinationTag, JsonDecimal, OrderId, OrderKey, PartnerReference, UserId,
};

/// Time that the user has to send the coins.
const TIME_TO_DEPOSIT: TimeDelta = TimeDelta::minutes(30);

/// Version 1, the only one.
pub struct V1;

impl Endpoint for V1 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v1/sell/confirm";
    const SCOPE: Option<Scope> = Some(Scope::OrdersWrite);
    const ERRORS: &'static [Code] = &[
        Code::QuoteExpired,
        Code::QuoteInvalid,
        Code::CurrencyInMaintenance,
        Code::FiatAmountInvalid,
        Code::SellingInMaintenance,
        Code::NotSellQuote,
        Code::QuoteMissing,
        Code::CallbackUrlInvalid,
        Code::RequestMalformed,
        Code::PaymentMethodUnavailable,
        Code::UserDisabled,
        Code::AccountTypeUnsupported,
        Code::AccountNotVerified,
        Code::AccountIdentifierInvalid,
        Code::AccountNotFound,
        Code::AccountDisabled,
    ];
    const BODY: Body = Body::Json;
    const IDEMPOTENT: bool = true;
    const DOC: Doc = Doc {
        summary: "Confirm a sell quote",
        details: "The user sends `cryptoAmount` of the quote to `walletAddress`, with \
                  `destinationTag` where there is one, before `orderExpireTime`. For test clients \
                  the address is valid, but nobody's: never send real coins there.",
        body: Shape::Members(&[
            required("quote", Kind::Text, "The quote of the sell quote endpoint."),
            optional(
                "accountIdentifier",
                Kind::Sized(1, IDENTIFIER_BYTES_MAX),
                "The account of the user to pay out to: verified, and of the quote's type. \
                 Without one, support pays out by hand.",
            ),
            optional("callbackUrl", Kind::Text, "Called once the order is final."),
            optional("partnerOrderIdentifier", Kind::Sized(0, 255), "Your own identifier."),
        ]),
        request: r#"{"quote": "eyJhbGciOiJkaXIi…", "partnerOrderIdentifier": "sale-7"}"#,
        answer: r#"{
            "orderId": 4503599627370496,
            "walletAddress": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
            "destinationTag": null, "orderExpireTime": "2026-03-01T14:30:00Z",
            "transactionFee": 1.5
        }"#,
        ..Doc::NONE
    };
    type Caller = Confirmer;
    type Request = Confirm;
    type Response = Json<Confirmed>;

    fn read(input: &Input, caller: &Confirmer) -> Result<Confirm> {
        Confirm::read(Fields::from_object(&input.document)?, &caller.client)
    }

    async fn call(core: &Core, caller: Confirmer, request: Confirm) -> Result<Json<Confirmed>> {
        confirm(core, caller, request, None).await.map(Json)
    }

    async fn call_with_key(
        core: &Core,
        caller: Confirmer,
        request: Confirm,
        key: Option<&ClaimedKey>,
    ) -> Result<Json<Confirmed>> {
        confirm(core, caller, request, key).await.map(Json)
    }
}

/// The request body of a confirm.
#[derive(Debug)]
pub struct Confirm {
    quote: String,
    /// Identifier of the account to pay out to.
    account: Option<String>,
    callback_url: Option<CallbackUrl>,
    partner_reference: Option<PartnerReference>,
}

impl Confirm {
    fn read(mut fields: Fields<'_>, client: &Client) -> Result<Self> {
        let quote = fields.text("quote", Code::QuoteMissing);
        let account =
            fields.optional("accountIdentifier", Code::AccountIdentifierInvalid, identifier);
        let callback_url = request::callback_url(&mut fields, client);
        let partner_reference = fields
            .optional("partnerOrderIdentifier", Code::RequestMalformed, request::reference)
            .flatten();
        fields.finish(quote.map(|quote| Self { quote, account, callback_url, partner_reference }))
    }
}

/// A sale that stands, now or since an earlier confirm.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ConfirmedSell")]
#[serde(rename_all = "camelCase")]
pub struct Confirmed {
    /// Number of the order.
    order_id: OrderId,
    /// The deposit address that the user sends the coins to.
    wallet_address: String,
    /// Tag or memo that goes with the deposit address.
    destination_tag: Option<DestinationTag>,
    /// Coins that come later are late.
    order_expire_time: DateTime<Utc>,
    /// The network's fee, in the fiat currency; the payout has it deducted already.
    transaction_fee: JsonDecimal,
}

/// Confirms a quote. The answer is saved under the key in the statement that makes the sale.
async fn confirm(
    core: &Core,
    caller: Confirmer,
    request: Confirm,
    key: Option<&ClaimedKey>,
) -> Result<Confirmed> {
    let Confirmer { client, user } = caller;
    let (quote, expired) = match token::open(core, &client, user, Side::Sell, &request.quote) {
        Err(error) if error.is(Code::QuoteExpired) => {
            (token::open_expired(core, &client, user, Side::Sell, &request.quote)?, true)
        }
        opened => (opened?, false),
    };
    let user = user.or(quote.user);
    if let Some((key, user)) = key.zip(user) {
        key.set_user(user);
    }
    let account = NamedAccount::find(core, client.id(), user, request.account.as_deref()).await?;
    let context = ConfirmContext { client, user, account, quote, request };
    // The quote may have become a sale before, whatever a new one would be refused for.
    if expired {
        return context.existing_order(core).await?.ok_or_else(token::expired);
    }
    let refusal = context.validate(core, &context.account).await?;
    if !refusal.is_empty() {
        return context.existing_order(core).await?.ok_or_else(|| refusal.into());
    }
    context.place(core, key).await
}

/// A confirm whose quote is open.
struct ConfirmContext {
    client: Client,
    /// The owner of the sale.
    user: Option<UserId>,
    /// The account that is paid out to.
    account: NamedAccount,
    quote: Quote,
    request: Confirm,
}

impl ConfirmContext {
    /// Preconditions of a new sale that do not hold, with the account as it was read last.
    async fn validate(&self, core: &Core, account: &NamedAccount) -> Result<Refusal> {
        let mut refusal = Refusal::new();
        market(&self.client, &self.quote, core.clock.now(), &mut refusal);
        if routing::settlement_of(&self.client, &self.quote) == Settlement::Nobody {
            refusal.add(Code::SellingInMaintenance, Some("nobody takes the coins".into()));
        }
        if self.user.is_none() {
            checks::guest(core, &self.client, &self.quote, &mut refusal);
        }
        account.check(&self.quote, &mut refusal);
        if let Some(user) = self.user {
            checks::gate(core, &self.client, user, &self.quote, &mut refusal).await?;
            if let Some(usage) = checks::user(core, self.client.key_of(user), &mut refusal).await? {
                checks::limits(core, &self.client, &self.quote, &usage, account, &mut refusal);
            }
        }
        Ok(refusal)
    }

    async fn place(&self, core: &Core, key: Option<&ClaimedKey>) -> Result<Confirmed> {
        let now = core.clock.now();
        let chain = self.client.catalogue.currencies.get(&self.quote.crypto_currency());
        let chain = chain
            .and_then(|currency| currency.crypto.as_ref())
            .ok_or(Code::CurrencyInMaintenance)?
            .chain;
        for _ in 0..ORDER_ID_TRIES_MAX {
            let id = OrderId::from_entropy(core.clock.random_u64()?);
            let source = deposit::source(core, &self.client, &self.quote, id, chain)?;
            let sale = OrderKey { client: self.client.id(), order: id };
            let row = |deposit: DepositAddress| self.row(core, id, now, &deposit, key);
            let inserted = insert_sale(&core.db, sale, self.user, &source, row).await;
            let (outcome, confirmed) = match inserted {
                // Another confirm of this quote may have taken the last address.
                Err(error) if error.is(Code::SellingInMaintenance) => {
                    return self.existing_order(core).await?.ok_or(error);
                }
                inserted => inserted?,
            };
            match outcome {
                InsertOutcome::Placed => {
                    Cause::count(core, [Cause::Confirmed]);
                    if let Some(key) = key {
                        key.mark_saved();
                    }
                    return confirmed.ok_or_else(|| Error::invariant("answer a sale"));
                }
                InsertOutcome::KeyLost => return Err(key_lost(key)),
                InsertOutcome::Conflict => {
                    if let Some(confirmed) = self.existing_order(core).await? {
                        return Ok(confirmed);
                    }
                    // It was the number that was taken.
                }
                InsertOutcome::QuoteExpired => {
                    let existing = self.existing_order(core).await?;
                    return existing.ok_or_else(token::expired);
                }
                // A sale has no offer.
                InsertOutcome::Forbidden | InsertOutcome::OfferTaken => {
                    return self.resolve_conflict(core).await;
                }
                InsertOutcome::Unavailable => return Err(Error::unavailable("place a sale")),
                InsertOutcome::Failed(error) => return Err(error.into()),
                // The transaction may have been carried out: the quote's sale says so, now or later.
                InsertOutcome::Unknown => {
                    return match self.existing_order(core).await {
                        Ok(Some(confirmed)) => Ok(confirmed),
                        _ => Err(Error::unavailable("learn whether a sale was placed")),
                    };
                }
            }
        }
        Err(Error::invariant("find a free order number"))
    }

    /// All that is written of the sale under this number, and its answer.
    fn row(
        &self,
        core: &Core,
        id: OrderId,
        now: DateTime<Utc>,
        deposit: &DepositAddress,
        key: Option<&ClaimedKey>,
    ) -> Result<(NewSaleRow, Confirmed)> {
        let (address, tag) = deposit.parse(&self.client.catalogue)?;
        let (address, expires_at) = (address.as_str().to_owned(), now + TIME_TO_DEPOSIT);
        let confirmed = self.confirmed(id, address.clone(), tag.clone(), expires_at);
        let reply = Reply::json(StatusCode::OK, &confirmed)?;
        let Self { client, user, account, quote, request } = self;
        let reference = request.partner_reference.as_ref().map(|name| name.as_str());
        let row = NewSaleRow {
            client_id: client.id().uuid(),
            order_id: id.number(),
            created_at: now,
            quoted: QuotedColumns::new(core, &client.catalogue, quote),
            quote_expires_at: quote.expires_at,
            user_id: user.map(UserId::uuid),
            account_id: account.id(),
            partner_reference: reference.map(str::to_owned),
            status: OrderStatus::Pending.as_str(),
            status_cause: Cause::Confirmed.as_str(),
            wallet_address: address,
            destination_tag: tag.map(|tag| tag.to_string()),
            callback_url: request.callback_url.as_ref().map(|url| url.as_str().to_owned()),
            terms_digest: format!("\\x{}", hex::encode(self.terms_digest())),
            policy_decisions: quote.policy_decisions.clone(),
            expires_at,
            transition_id: core.clock.uuid()?,
            event_id: core.clock.uuid()?,
            event_type: EventType::OrderCreated.as_str(),
            payload: created_payload(id, reference),
            trace: TraceScope::current().stored(),
            answer: key.map(|key| key.answer(core, &reply)).transpose()?,
        };
        Ok((row, confirmed))
    }

    /// The sale that this quote became before, in the same terms.
    ///
    /// # Errors
    /// ER007 when it became one in other terms.
    async fn existing_order(&self, core: &Core) -> Result<Option<Confirmed>> {
        let existing = ExistingSale::find(core, &self.client, self.quote.id).await?;
        let Some(existing) = existing else { return Ok(None) };
        if existing.terms_digest != self.terms_digest() {
            return Err(token::refused("it became a sale in other terms"));
        }
        let ExistingSale { order_id, wallet_address, destination_tag, expires_at, .. } = existing;
        Ok(Some(self.confirmed(order_id, wallet_address, destination_tag, expires_at)))
    }

    /// The quote's sale of a faster confirm, or else the preconditions that do not hold any more.
    async fn resolve_conflict(&self, core: &Core) -> Result<Confirmed> {
        if let Some(confirmed) = self.existing_order(core).await? {
            return Ok(confirmed);
        }
        let identifier = self.request.account.as_deref();
        let account = NamedAccount::find(core, self.client.id(), self.user, identifier).await?;
        let mut refusal = self.validate(core, &account).await?;
        if refusal.is_empty() {
            refusal.add_violation(checks::forbidden(core, &self.client, self.user).await?);
        }
        Err(refusal.into())
    }

    fn confirmed(
        &self,
        order_id: OrderId,
        wallet_address: String,
        destination_tag: Option<DestinationTag>,
        order_expire_time: DateTime<Utc>,
    ) -> Confirmed {
        Confirmed {
            order_id,
            wallet_address,
            destination_tag,
            order_expire_time,
            transaction_fee: self.quote.fees.network.into(),
        }
    }

    fn terms_digest(&self) -> [u8; 32] {
        terms::digest_of_parts(&[
            self.account.term(),
            self.request.partner_reference.as_ref().map(ToString::to_string),
            self.user.map(|user| user.to_string()),
        ])
    }
}

/// The pair gone or without a price (ER008), or not sold now (ER016), the method switched off since the quote (ER055),
/// an amount beyond what one of them takes (ER011, of coins too).
fn market(client: &Client, quote: &Quote, now: DateTime<Utc>, refusal: &mut Refusal) {
    let catalogue = &client.catalogue;
    match catalogue.pairs.get(&quote.pair) {
        None => refusal.add(Code::CurrencyInMaintenance, None),
        Some(pair) if pair.sell.status != PairStatus::Enabled => {
            refusal.add(Code::SellingInMaintenance, None)
        }
        Some(pair) if routing::price(&client.tenant, pair, now).is_none() => {
            refusal.add(Code::CurrencyInMaintenance, None)
        }
        Some(pair) => {
            let (min, max) = (pair.sell.min, pair.sell.max);
            if !(min..=max).contains(&quote.crypto) {
                let detail = format!("the pair takes {} to {}", min.normalize(), max.normalize());
                refusal.add(Code::FiatAmountInvalid, Some(detail.into()));
            }
        }
    }
    match catalogue.payment_method(&quote.payment_method).filter(|method| method.enabled) {
        None => refusal.add(Code::PaymentMethodUnavailable, None),
        Some(method) if !method.accepts(quote.fiat) => {
            let detail = format!("the payout method takes at most {}", method.limit.normalize());
            refusal.add(Code::FiatAmountInvalid, Some(detail.into()));
        }
        Some(_) => {}
    }
}
