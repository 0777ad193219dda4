//! What a confirm writes: in one statement, with others (`together.rs`) or alone.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use sqlx::PgExecutor;
use uuid::Uuid;

use super::Confirming;
use super::request::Terms;
use super::terms::OfferTerms;
use super::together::place_with_others;
use crate::Core;
use crate::notify::events::EventType;
use crate::notify::webhooks;
use crate::platform::db::retrying;
use crate::platform::error::{Error, Result};
use crate::trading::limits::{self, Bounds};
use crate::trading::orders::status::{Cause, OrderStatus};
use crate::trading::sandbox::{self, SimulatedEvent};
use rampart_types::{ClientId, OrderId, QuoteId};

/// Most numbers that are tried for one order. Two of one client meet once in 10^15.
pub(crate) const ORDER_ID_TRIES_MAX: u32 = 4;

/// An order about to be made.
pub(super) struct NewOrder<'a> {
    pub(super) confirming: &'a Confirming,
    pub(super) offer_id: Option<Uuid>,
    pub(super) partner_reference: Option<&'a str>,
    pub(super) return_url: Option<&'a str>,
    pub(super) callback_url: Option<&'a str>,
    pub(super) policy_decisions: Value,
    pub(super) terms_digest: [u8; 32],
    /// What happens to it by itself, and when: in the sandbox alone.
    pub(super) first_step: Option<(SimulatedEvent, DateTime<Utc>)>,
    pub(super) expires_at: Option<DateTime<Utc>>,
    pub(super) now: DateTime<Utc>,
}

impl<'a> NewOrder<'a> {
    /// The order that `confirming` asks for. What the offer says goes before what the request
    /// says, except for the partner's own identifier.
    pub(super) fn of(
        core: &Core,
        confirming: &'a Confirming,
        offer: Option<&'a OfferTerms>,
        now: DateTime<Utc>,
    ) -> Result<Self> {
        let request = &confirming.request;
        let stated = match &request.terms {
            Terms::Stated { return_url, callback_url } => (Some(return_url), callback_url.as_ref()),
            Terms::Offer { return_url, callback_url, .. } => {
                (return_url.as_ref(), callback_url.as_ref())
            }
        };
        let (return_url, callback_url) =
            (stated.0.map(|url| url.as_str()), stated.1.map(|url| url.as_str()));
        let catalogue = &confirming.client.catalogue;
        let method = catalogue
            .payment_method(&confirming.quote.payment_method)
            .ok_or_else(|| Error::broken("find the payment method that was checked"))?;
        // A bank transfer may take as long as it takes.
        let timed = method.kind != "bank-transfer";
        let time_to_pay = TimeDelta::seconds(i64::from(method.expiration_period_seconds));
        let partner_reference = request
            .partner_reference
            .as_ref()
            .map(|reference| reference.as_str())
            .or(offer.and_then(|offer| offer.partner_reference.as_deref()));
        let marks = (partner_reference, confirming.quote.fiat);
        Ok(Self {
            confirming,
            offer_id: offer.map(|offer| offer.offer_id),
            partner_reference,
            first_step: sandbox::first_step(core, &confirming.client, marks, now),
            return_url: offer.and_then(|offer| offer.return_url.as_deref()).or(return_url),
            callback_url: offer.and_then(|offer| offer.callback_url.as_deref()).or(callback_url),
            policy_decisions: decisions(&confirming.quote.policy_decisions, offer),
            terms_digest: confirming.terms_digest(),
            expires_at: timed.then(|| now + time_to_pay),
            now,
        })
    }
}

impl NewOrder<'_> {
    /// What its event tells.
    pub(super) fn payload(&self, id: OrderId) -> Value {
        json!({
            "orderId": id,
            "partnerOrderIdentifier": self.partner_reference,
            "status": OrderStatus::Pending,
        })
    }
}

/// What the policies of quote and offer decided.
fn decisions(of_quote: &Value, offer: Option<&OfferTerms>) -> Value {
    let of_offer = offer.and_then(|offer| offer.signature_decision.as_ref());
    of_quote.as_array().into_iter().flatten().chain(of_offer).cloned().collect()
}

/// What became of the statement.
pub(super) enum Outcome {
    /// The order is made.
    Placed(OrderId),
    /// Nothing happened: the quote has become an order before.
    QuoteUsed,
    /// Nothing happened: the offer was confirmed or has ended in the meantime.
    OfferTaken,
    /// Nothing happened: in the meantime the user's limit was reached, or the user or the account
    /// disabled.
    Forbidden,
    /// The connection was lost: nobody knows.
    Unknown(sqlx::Error),
}

/// Makes the order.
///
/// # Errors
/// When the database refuses or cannot be reached.
pub(super) async fn place(core: &Core, order: &NewOrder<'_>) -> Result<Outcome> {
    if let Some(outcome) = place_with_others(core, order).await? {
        return Ok(outcome);
    }
    for _ in 0..ORDER_ID_TRIES_MAX {
        let ids = Ids {
            order: OrderId::from_entropy(core.clock.random_u64()?),
            transition: core.clock.uuid()?,
            event: core.clock.uuid()?,
            deliveries: &webhooks::delivery_ids(core)?,
        };
        let attempt = || async { attempt(core, order, ids).await.map(Some).or_else(judge) };
        if let Some(outcome) = retrying(attempt).await? {
            return Ok(outcome);
        }
    }
    Err(Error::broken("find a free order number"))
}

/// One try. The order of a user is made while its row is held, so that those before it count.
async fn attempt(core: &Core, order: &NewOrder<'_>, ids: Ids<'_>) -> Result<Outcome, sqlx::Error> {
    let Confirming { client, user, quote, .. } = order.confirming;
    let Some(user) = *user else { return insert(&core.db, order, ids, None).await };
    let mut tx = core.db.begin().await?;
    let held = limits::hold(&mut tx, (client.id(), user), quote.side, order.now).await?;
    let Some(bounds) = held else { return Ok(Outcome::Forbidden) };
    let outcome = insert(&mut *tx, order, ids, Some(bounds)).await?;
    tx.commit().await?;
    Ok(outcome)
}

/// What an error says of the statement; `None` when the order's number was taken.
fn judge(error: sqlx::Error) -> Result<Option<Outcome>, sqlx::Error> {
    let constraint = error.as_database_error().and_then(|error| error.constraint());
    match constraint {
        Some("buy_order_quote_id_key") => Ok(Some(Outcome::QuoteUsed)),
        Some("buy_order_offer_id_key") => Ok(Some(Outcome::OfferTaken)),
        Some("buy_order_pkey") => Ok(None),
        _ if may_have_run(&error) => Ok(Some(Outcome::Unknown(error))),
        _ => Err(error),
    }
}

/// Whether the statement may have been carried out although its answer is an error: the connection
/// broke, or the server ended it (class 57P, which can strike behind the commit).
pub(crate) fn may_have_run(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| code.starts_with("57P")),
        _ => false,
    }
}

#[derive(Clone, Copy)]
struct Ids<'a> {
    order: OrderId,
    transition: Uuid,
    event: Uuid,
    deliveries: &'a [Uuid],
}

/// Takes the offer if there is one, and makes the order, the first row of its timeline, its event,
/// the deliveries to webhook endpoints that listen (as `webhooks::fan_out` writes them), and the
/// sandbox's first step: all of it, or nothing where the user's limit or the account forbids it or
/// the offer was not there to be taken.
///
/// No `on conflict`: a quote or an offer that was used undoes the whole statement, the taking of
/// the offer too.
#[expect(clippy::too_many_lines, reason = "one statement, and a line for each of its arguments")]
async fn insert(
    executor: impl PgExecutor<'_>,
    order: &NewOrder<'_>,
    ids: Ids<'_>,
    bounds: Option<Bounds>,
) -> Result<Outcome, sqlx::Error> {
    let Confirming { client, user, account, quote, request, destination } = order.confirming;
    let (pays, gets) = (quote.fiat_currency(), quote.crypto_currency());
    let payload = order.payload(ids.order);
    let made = sqlx::query!(
        r#"
        with allowed as (
            select true as yes
            where ($40::numeric is null or trade_fits_day($1, $6, 'buy', $15, $40, $41, $42))
                and ($43::uuid is null or account_may_trade($1, $6, $43))
        ), taken as (
            update offer set confirmed_at = $3
            where client_id = $1 and offer_id = $4 and confirmed_at is null and expires_at > $3
                and exists (select from allowed)
            returning offer_id
        ), placed as (
            insert into buy_order (
                client_id, order_id, created_at, updated_at, offer_id, quote_id, user_id,
                partner_reference, status, status_cause, pair, payment_method, wallet_address,
                destination_tag, wallet_type, fiat_amount, fiat_currency, crypto_amount,
                crypto_currency, price, partner_fee, partner_fee_percentage, provider_fee,
                payment_method_fee, network_fee, spread_fee, affiliate_fee, is_estimated_quote,
                return_url, callback_url, terms_digest, policy_decisions, expires_at, account_id)
            select $1, $2, $3, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
                $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $43
            from allowed where $4::uuid is null or exists (select from taken)
            returning order_id
        ), noted as (
            insert into order_transition
                (client_id, order_id, transition_id, at, to_status, cause, actor)
            select $1, order_id, $33, $3, $8, $9, 'edge' from placed
        ), told as (
            insert into event (client_id, event_id, type, order_id, payload, created_at)
            select $1, $34, $35, order_id, $36, $3 from placed
        ), sent as (
            insert into delivery (client_id, delivery_id, event_id, order_id, endpoint_id, url,
                next_attempt_at, created_at)
            select $1, ($37::uuid[])[slot], $34, order_id, endpoint_id, url, $3, $3
            from placed cross join webhook_endpoint
            where client_id = $1 and disabled_at is null
                and (events is null or $35 = any (events))
        ), staged as (
            insert into sandbox_step (client_id, order_id, event, due_at)
            select $1, order_id, $38::text, $39::timestamptz from placed where $38 is not null
        )
        select exists (select from allowed) as "allowed!", exists (select from placed) as "placed!"
        "#,
        client.id().uuid(),
        ids.order.number(),
        order.now,
        order.offer_id,
        quote.id.uuid(),
        user.map(|user| user.uuid()),
        order.partner_reference,
        OrderStatus::Pending.as_str(),
        Cause::Confirmed.as_str(),
        quote.pair.to_string(),
        quote.payment_method,
        destination.address.as_str(),
        destination.tag.as_ref().map(ToString::to_string),
        request.wallet_type.as_str(),
        quote.fiat,
        pays.as_str(),
        quote.crypto,
        gets.as_str(),
        quote.price,
        quote.fees.partner,
        quote.partner_fee_percentage,
        quote.fees.provider,
        quote.fees.payment_method,
        quote.fees.network,
        quote.fees.spread,
        quote.fees.affiliate,
        quote.is_estimated,
        order.return_url,
        order.callback_url,
        &order.terms_digest[..],
        order.policy_decisions,
        order.expires_at,
        ids.transition,
        ids.event,
        EventType::OrderCreated.as_str(),
        payload,
        ids.deliveries,
        order.first_step.map(|(step, _)| step.as_str()),
        order.first_step.map(|(_, due_at)| due_at),
        bounds.map(|bounds| bounds.side),
        bounds.map(|bounds| bounds.day),
        bounds.map(|bounds| bounds.since),
        account.id(),
    )
    .fetch_one(executor)
    .await?;
    Ok(match (made.allowed, made.placed) {
        (_, true) => Outcome::Placed(ids.order),
        (true, false) => Outcome::OfferTaken,
        (false, false) => Outcome::Forbidden,
    })
}

/// The order that a quote has become.
pub(super) struct Earlier {
    pub(super) order_id: OrderId,
    pub(super) expires_at: Option<DateTime<Utc>>,
    pub(super) terms_digest: Vec<u8>,
}

/// The order that the quote has become before, if it has.
///
/// # Errors
/// When the database cannot be read.
pub(super) async fn earlier(
    core: &Core,
    client: ClientId,
    quote: QuoteId,
) -> Result<Option<Earlier>> {
    let row = sqlx::query!(
        "select order_id, expires_at, terms_digest from buy_order \
         where client_id = $1 and quote_id = $2",
        client.uuid(),
        quote.uuid(),
    )
    .fetch_optional(&core.db)
    .await?;
    row.map(|row| {
        let order_id = OrderId::try_from(row.order_id)
            .map_err(|error| Error::internal("read an order's id", error))?;
        Ok(Earlier { order_id, expires_at: row.expires_at, terms_digest: row.terms_digest })
    })
    .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_connection_is_no_answer() {
        let broken = sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        assert!(matches!(judge(broken), Ok(Some(Outcome::Unknown(_)))));
        assert!(judge(sqlx::Error::PoolTimedOut).is_err());
    }
}
