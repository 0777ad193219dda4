//! Confirms that arrive together share a commit: what a confirm waits for is the disk, and the disk
//! writes sixty-four orders in the time of one.
//!
//! Only orders that nothing else has to allow travel this way: without an offer, and of no user,
//! whose limit is kept by holding the user's row. They leave nothing behind when they cannot be
//! made, so that one of them costs the others nothing: the statement skips it, and its confirm
//! goes on alone (`placing.rs`) to learn why.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::Serialize;
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{PgExecutor, PgPool};
use uuid::Uuid;

use super::Confirming;
use super::placing::{NewOrder, Outcome, may_have_run};
use crate::Core;
use crate::notify::events::EventType;
use crate::notify::webhooks;
use crate::platform::batch::{Gather, Work};
use crate::platform::db::{HeldConnection, retrying_statement};
use crate::platform::error::sqlstate::{is_retryable, is_unavailable};
use crate::platform::error::{Error, Result};
use crate::trading::orders::status::{Cause, OrderStatus};
use crate::trading::sandbox::SimulatedEvent;
use rampart_types::OrderId;

/// Confirms that wait for a commit.
#[derive(Debug)]
pub struct Confirms(pub(super) Arc<Gather<Placing>>);

impl Confirms {
    /// Confirms into this pool.
    pub(crate) fn over(db: &PgPool) -> Self {
        Self(Gather::new(Placing { db: db.clone() }))
    }
}

/// An order as the statement takes it, with all that is written with it.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    client_id: Uuid,
    order_id: i64,
    created_at: DateTime<Utc>,
    quote_id: Uuid,
    partner_reference: Option<String>,
    status: &'static str,
    status_cause: &'static str,
    pair: String,
    payment_method: String,
    wallet_address: String,
    destination_tag: Option<String>,
    wallet_type: &'static str,
    fiat_amount: Decimal,
    fiat_currency: String,
    crypto_amount: Decimal,
    crypto_currency: String,
    price: Decimal,
    partner_fee: Decimal,
    partner_fee_percentage: Decimal,
    provider_fee: Decimal,
    payment_method_fee: Decimal,
    network_fee: Decimal,
    spread_fee: Decimal,
    affiliate_fee: Decimal,
    is_estimated_quote: bool,
    return_url: Option<String>,
    callback_url: Option<String>,
    /// In Postgres's hexadecimal form of bytes.
    terms_digest: String,
    policy_decisions: Value,
    expires_at: Option<DateTime<Utc>>,
    transition_id: Uuid,
    event_id: Uuid,
    event_type: &'static str,
    payload: Value,
    /// Ids for deliveries to webhook endpoints, by slot.
    deliveries: Vec<Uuid>,
    step: Option<&'static str>,
    step_due_at: Option<DateTime<Utc>>,
}

impl NewOrder<'_> {
    /// All that is written of it, under this number.
    fn row(&self, core: &Core, id: OrderId) -> Result<Row> {
        let Confirming { client, quote, request, destination, .. } = self.confirming;
        let (step, step_due_at) = self.first_step.unzip();
        Ok(Row {
            client_id: client.id().uuid(),
            order_id: id.number(),
            created_at: self.now,
            quote_id: quote.id.uuid(),
            partner_reference: self.partner_reference.map(str::to_owned),
            status: OrderStatus::Pending.as_str(),
            status_cause: Cause::Confirmed.as_str(),
            pair: quote.pair.to_string(),
            payment_method: quote.payment_method.clone(),
            wallet_address: destination.address.as_str().to_owned(),
            destination_tag: destination.tag.as_ref().map(ToString::to_string),
            wallet_type: request.wallet_type.as_str(),
            fiat_amount: quote.fiat,
            fiat_currency: quote.fiat_currency().to_string(),
            crypto_amount: quote.crypto,
            crypto_currency: quote.crypto_currency().to_string(),
            price: quote.price,
            partner_fee: quote.fees.partner,
            partner_fee_percentage: quote.partner_fee_percentage,
            provider_fee: quote.fees.provider,
            payment_method_fee: quote.fees.payment_method,
            network_fee: quote.fees.network,
            spread_fee: quote.fees.spread,
            affiliate_fee: quote.fees.affiliate,
            is_estimated_quote: quote.is_estimated,
            return_url: self.return_url.map(str::to_owned),
            callback_url: self.callback_url.map(str::to_owned),
            terms_digest: format!("\\x{}", hex::encode(self.terms_digest)),
            policy_decisions: self.policy_decisions.clone(),
            expires_at: self.expires_at,
            transition_id: core.clock.uuid()?,
            event_id: core.clock.uuid()?,
            event_type: EventType::OrderCreated.as_str(),
            payload: self.payload(id),
            deliveries: webhooks::delivery_ids(core)?,
            step: step.map(SimulatedEvent::as_str),
            step_due_at,
        })
    }
}

/// Makes an order in the commit that others wait for too. `None` when it was not made: it needs
/// more than this statement looks at, or only the statement of its own can tell why.
///
/// # Errors
/// When the database refuses or cannot be reached.
pub(super) async fn place_with_others(
    core: &Core,
    order: &NewOrder<'_>,
) -> Result<Option<Outcome>> {
    if order.offer_id.is_some() || order.confirming.user.is_some() {
        return Ok(None);
    }
    let id = OrderId::from_entropy(core.clock.random_u64()?);
    Ok(match core.confirms.0.ask(order.row(core, id)?).await? {
        Fate::Placed => Some(Outcome::Placed(id)),
        Fate::Skipped => None,
        Fate::Unavailable => return Err(Error::unavailable(Placing::DOING)),
        Fate::Unknown => {
            Some(Outcome::Unknown(sqlx::Error::Io(std::io::ErrorKind::ConnectionAborted.into())))
        }
    })
}

/// What became of an order that travelled with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is made, and durable.
    Placed,
    /// It is not made, and it has to be asked for alone to learn why.
    Skipped,
    /// Nothing happened: the database cannot be used.
    Unavailable,
    /// The connection was lost: nobody knows.
    Unknown,
}

pub(super) struct Placing {
    db: PgPool,
}

impl Work for Placing {
    type Ask = Row;
    type Answer = Fate;
    type Tool = HeldConnection;
    const TOGETHER_MAX: usize = 64;
    /// While one waits for the disk another one gathers; more would only make them smaller.
    const LANES: usize = 2;
    const DOING: &'static str = "place an order";

    async fn run(&self, kept: &mut HeldConnection, mut asked: Vec<Row>) -> Vec<Fate> {
        let names: Vec<(Uuid, i64)> =
            asked.iter().map(|row| (row.client_id, row.order_id)).collect();
        // Two statements that hold the same quotes wait for each other in one direction only.
        asked.sort_by_key(|row| (row.client_id, row.quote_id));
        let rows = Json(asked);
        let mut outcome = match kept.connection(&self.db).await {
            Ok(connection) => insert(connection, &rows).await,
            Err(error) => Err(error),
        };
        if outcome.is_err() {
            kept.release();
        }
        if outcome.as_ref().is_err_and(is_retryable) {
            outcome = retrying_statement(|| insert(&self.db, &rows)).await;
        }
        let all = |fate| vec![fate; names.len()];
        match outcome {
            Ok(placed) => {
                let fate = |name| if placed.contains(name) { Fate::Placed } else { Fate::Skipped };
                names.iter().map(fate).collect()
            }
            Err(error) if may_have_run(&error) => all(Fate::Unknown),
            Err(error) if is_unavailable(&error) => all(Fate::Unavailable),
            Err(_) => all(Fate::Skipped),
        }
    }
}

/// Makes the orders whose quotes and numbers are free: each with the first row of its timeline, its
/// event, the deliveries to webhook endpoints that listen (as `webhooks::fan_out` writes them), and
/// the sandbox's first step. Returns those that were made.
async fn insert(
    executor: impl PgExecutor<'_>,
    rows: &Json<Vec<Row>>,
) -> Result<HashSet<(Uuid, i64)>, sqlx::Error> {
    let placed = sqlx::query!(
        r#"
        with asked as (
            select * from jsonb_to_recordset($1::jsonb) as asked (
                client_id uuid, order_id bigint, created_at timestamptz, quote_id uuid,
                partner_reference text, status text, status_cause text, pair text,
                payment_method text, wallet_address text, destination_tag text, wallet_type text,
                fiat_amount numeric, fiat_currency text, crypto_amount numeric,
                crypto_currency text, price numeric, partner_fee numeric,
                partner_fee_percentage numeric, provider_fee numeric, payment_method_fee numeric,
                network_fee numeric, spread_fee numeric, affiliate_fee numeric,
                is_estimated_quote boolean, return_url text, callback_url text,
                terms_digest bytea, policy_decisions jsonb, expires_at timestamptz,
                transition_id uuid, event_id uuid, event_type text, payload jsonb,
                deliveries uuid[], step text, step_due_at timestamptz)
        ), placed as (
            insert into buy_order (
                client_id, order_id, created_at, updated_at, quote_id, partner_reference,
                status, status_cause, pair, payment_method, wallet_address, destination_tag,
                wallet_type, fiat_amount, fiat_currency, crypto_amount, crypto_currency, price,
                partner_fee, partner_fee_percentage, provider_fee, payment_method_fee, network_fee,
                spread_fee, affiliate_fee, is_estimated_quote, return_url, callback_url,
                terms_digest, policy_decisions, expires_at)
            select
                client_id, order_id, created_at, created_at, quote_id, partner_reference,
                status, status_cause, pair, payment_method, wallet_address, destination_tag,
                wallet_type, fiat_amount, fiat_currency, crypto_amount, crypto_currency, price,
                partner_fee, partner_fee_percentage, provider_fee, payment_method_fee, network_fee,
                spread_fee, affiliate_fee, is_estimated_quote, return_url, callback_url,
                terms_digest, policy_decisions, expires_at
            from asked
            on conflict do nothing
            returning client_id, order_id
        ), made as (
            select asked.* from asked join placed using (client_id, order_id)
        ), noted as (
            insert into order_transition
                (client_id, order_id, transition_id, at, to_status, cause, actor)
            select client_id, order_id, transition_id, created_at, status, status_cause, 'edge'
            from made
        ), told as (
            insert into event (client_id, event_id, type, order_id, payload, created_at)
            select client_id, event_id, event_type, order_id, payload, created_at from made
        ), sent as (
            insert into delivery (client_id, delivery_id, event_id, order_id, endpoint_id, url,
                next_attempt_at, created_at)
            select made.client_id, deliveries[slot], event_id, order_id, endpoint_id, url,
                made.created_at, made.created_at
            from made join webhook_endpoint w on w.client_id = made.client_id
            where disabled_at is null and (events is null or event_type = any (events))
        ), staged as (
            insert into sandbox_step (client_id, order_id, event, due_at)
            select client_id, order_id, step, step_due_at from made where step is not null
        )
        select client_id as "client_id!", order_id as "order_id!" from placed
        "#,
        rows as &Json<Vec<Row>>,
    )
    .fetch_all(executor)
    .await?;
    Ok(placed.into_iter().map(|row| (row.client_id, row.order_id)).collect())
}
