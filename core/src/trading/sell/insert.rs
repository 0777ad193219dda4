//! The one statement that writes sold orders, and the sale that a quote has become before.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::types::Json;
use uuid::Uuid;

use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::SavedAnswer;
use crate::money::connectors::deposits::{DepositAddress, DepositSource};
use crate::platform::db::{Connection, Pool, retrying_statement};
use crate::platform::error::{Code, Error, Result};
use crate::platform::telemetry::StoredTrace;
use crate::trading::limits::{self, Bounds};
use crate::trading::orders::column::id;
use crate::trading::orders::insert::{Bounded, InsertError, InsertOutcome};
use crate::trading::orders::quoted::QuotedColumns;
use crate::trading::orders::row::{currency, tag};
use crate::trading::quotes::Side;
use rampart_types::{CurrencyCode, DestinationTag, OrderId, OrderKey, QuoteId, UserId};

/// A sale as the statement takes it, with all that is written beside it.
#[derive(Debug, Serialize)]
pub(super) struct NewSaleRow {
    pub(super) client_id: Uuid,
    pub(super) order_id: i64,
    pub(super) created_at: DateTime<Utc>,
    #[serde(flatten)]
    pub(super) quoted: QuotedColumns,
    pub(super) quote_expires_at: DateTime<Utc>,
    pub(super) user_id: Option<Uuid>,
    pub(super) account_id: Option<Uuid>,
    pub(super) partner_reference: Option<String>,
    pub(super) status: &'static str,
    pub(super) status_cause: &'static str,
    pub(super) wallet_address: String,
    pub(super) destination_tag: Option<String>,
    pub(super) callback_url: Option<String>,
    /// In Postgres's hexadecimal form of bytes.
    pub(super) terms_digest: String,
    pub(super) policy_decisions: Value,
    pub(super) expires_at: DateTime<Utc>,
    pub(super) transition_id: Uuid,
    pub(super) event_id: Uuid,
    pub(super) event_type: &'static str,
    pub(super) payload: Value,
    #[serde(flatten)]
    pub(super) trace: StoredTrace,
    /// The answer to save under the request's `Idempotency-Key`.
    #[serde(flatten)]
    pub(super) answer: Option<SavedAnswer>,
}

/// Makes the sale that `row` writes for the deposit address taken. Its user is locked first, so
/// that it counts the trades before it. What `row` gives besides is returned once the sale is made.
///
/// # Errors
/// ER016 when no deposit address is free; those of `row`.
pub(super) async fn insert_sale<T>(
    db: &Pool,
    sale: OrderKey,
    user: Option<UserId>,
    source: &DepositSource,
    row: impl Fn(DepositAddress) -> Result<(NewSaleRow, T)>,
) -> Result<(InsertOutcome, Option<T>)> {
    let inserted = retrying_statement(async || {
        let mut connection = db.acquire().await.map_err(InsertError::NotCommitted)?;
        insert_alone(&mut connection, sale, user, source, &row).await
    });
    inserted.await.unwrap_or_else(|error| Ok((error.outcome(), None)))
}

/// A refusal that is no error of the database is inside: it is never tried again.
async fn insert_alone<T>(
    connection: &mut Connection,
    sale: OrderKey,
    user: Option<UserId>,
    source: &DepositSource,
    row: &impl Fn(DepositAddress) -> Result<(NewSaleRow, T)>,
) -> Result<Result<(InsertOutcome, Option<T>)>, InsertError> {
    let mut tx = connection.begin().await.map_err(InsertError::NotCommitted)?;
    let client = sale.client.uuid();
    let bounds = match user.map(UserId::uuid) {
        None => None,
        Some(user) => {
            let rules = limits::hold_traders(&mut tx, &[client], &[user]).await;
            let rules = rules.map_err(InsertError::NotCommitted)?;
            let Some(rules) = rules.get(&(client, user)) else {
                return Ok(Ok((InsertOutcome::Forbidden, None)));
            };
            Some(Bounds::new(rules, Side::Sell))
        }
    };
    let taken = source.take(&mut tx, sale).await.map_err(InsertError::NotCommitted)?;
    let Some(deposit) = taken else {
        return Ok(match source {
            DepositSource::Pool(_) => {
                Err(Error::with_detail(Code::SellingInMaintenance, "no deposit address is free"))
            }
            // Another sale has the number.
            DepositSource::Made(_) => Ok((InsertOutcome::Conflict, None)),
        });
    };
    let (order, made) = match row(deposit) {
        Ok(written) => written,
        Err(error) => return Ok(Err(error)),
    };
    let outcome = insert(&mut tx, &[Bounded { order: &order, bounds }]).await;
    let outcome = outcome.map_err(InsertError::NotCommitted)?;
    if !matches!(outcome, InsertOutcome::Placed) {
        // The address is free again.
        tx.rollback().await.map_err(InsertError::NotCommitted)?;
        return Ok(Ok((outcome, None)));
    }
    tx.commit().await.map_err(InsertError::at_commit)?;
    Ok(Ok((outcome, Some(made))))
}

/// Makes the sale if it may be made, with the first row of its timeline, its event and the
/// deliveries to webhook endpoints that listen (as `webhooks::fan_out` writes them).
#[expect(clippy::too_many_lines, reason = "one statement")]
async fn insert(
    conn: &mut Connection,
    rows: &[Bounded<'_, NewSaleRow>; 1],
) -> Result<InsertOutcome, sqlx::Error> {
    let [row] = rows;
    // Beside the row: as JSON, it would be twice as long.
    let answer = row.order.answer.as_ref().map(SavedAnswer::body);
    let inserted = sqlx::query!(
        r#"
        with asked as materialized (
            select asked.*, quote_expires_at > rampart_now()
                and not quote_is_void(quote_sealed_at, quote_revision, p.quotes_valid_from,
                    p.quotes_raised_at, p.quotes_raised_revision, p.quotes_raised_before,
                    p.quotes_revisions_before) as is_open
            from json_to_recordset($1::json) as asked (
                client_id uuid, order_id bigint, created_at timestamptz, quote_id uuid,
                quote_expires_at timestamptz, user_id uuid, account_id uuid,
                partner_reference text, status text, status_cause text,
                pair text, payment_method text, wallet_address text, destination_tag text,
                fiat_amount numeric, fiat_currency text, limit_amount numeric, crypto_amount numeric,
                crypto_currency text, price numeric, partner_fee numeric,
                partner_fee_percentage numeric, provider_fee numeric, payment_method_fee numeric,
                network_fee numeric, spread_fee numeric, affiliate_fee numeric, fee_rules bytea,
                callback_url text, terms_digest bytea, policy_decisions jsonb,
                expires_at timestamptz, transition_id uuid, event_id uuid, event_type text,
                payload jsonb,
                traceparent text, tracestate text,
                key_route text, key text, key_claim uuid, answer_status smallint,
                side_max numeric, day_max numeric, quote_sealed_at timestamptz, quote_revision bigint)
                left join currency_pair p on p.pair = asked.pair
        ), held as materialized (
            select k.client_id, k.route, k.key
            from asked a join idempotency_key k on k.client_id = a.client_id
                and k.route = a.key_route and k.key = a.key and k.claim_id = a.key_claim
            where k.status is null
            for no key update of k
        ), current as materialized (
            select * from asked
            where key is null
                or (client_id, key_route, key) in (select client_id, route, key from held)
        ), allowed as materialized (
            select current.*
            from current left join lateral day_limits(client_id, user_id, 'sell', limit_amount,
                side_max, day_max, trades_counted_since()) day on day_max is not null
            left join lateral account_limits(client_id, user_id, account_id, limit_amount,
                trades_counted_since()) account on account_id is not null
            left join lateral guest_limits(client_id, limit_amount) guest on user_id is null
            where is_open and (day_max is null or day.fits)
                and (account_id is null or account.fits)
                and (user_id is not null or guest.fits)
        ), placed as (
            insert into sell_order (client_id, order_id, created_at, updated_at, quote_id, user_id, account_id,
                partner_reference, status, status_cause, pair, payment_method, wallet_address,
                destination_tag, fiat_amount, fiat_currency, limit_amount, crypto_amount, crypto_currency, price,
                partner_fee, partner_fee_percentage, provider_fee, payment_method_fee, network_fee,
                spread_fee, affiliate_fee, fee_rules, callback_url, terms_digest, policy_decisions, expires_at)
            select client_id, order_id, created_at, created_at, quote_id, user_id, account_id,
                partner_reference, status, status_cause, pair, payment_method, wallet_address,
                destination_tag, fiat_amount, fiat_currency, limit_amount, crypto_amount, crypto_currency, price,
                partner_fee, partner_fee_percentage, provider_fee, payment_method_fee, network_fee,
                spread_fee, affiliate_fee, fee_rules, callback_url, terms_digest, policy_decisions, expires_at
            from allowed
            on conflict do nothing
            returning client_id, order_id
        ), made as (
            select asked.* from asked join placed using (client_id, order_id)
        ), used as (
            update payment_account p set last_used_at = greatest(p.last_used_at, made.created_at)
            from made
            where p.client_id = made.client_id and p.user_id = made.user_id
                and p.account_id = made.account_id
        ), noted as (
            insert into sell_order_transition
                (client_id, order_id, transition_id, at, to_status, cause, actor)
            select client_id, order_id, transition_id, created_at, status, status_cause, 'edge'
            from made
        ), told as (
            insert into event (client_id, event_id, type, order_id, payload, created_at,
                traceparent, tracestate)
            select client_id, event_id, event_type, order_id, payload, created_at,
                traceparent, tracestate
            from made
        ), sent as (
            insert into delivery (client_id, delivery_id, event_id, order_id, endpoint_id, url,
                next_attempt_at, created_at)
            select made.client_id, delivery_id(event_id, endpoint_id), event_id, order_id, endpoint_id, url,
                made.created_at, made.created_at
            from made join webhook_endpoint w on w.client_id = made.client_id
            where disabled_at is null and (events is null or event_type = any (events))
        ), answered as (
            update idempotency_key k set status = made.answer_status, body = $2,
                user_id = made.user_id
            from made
            where k.client_id = made.client_id and k.route = made.key_route and k.key = made.key
        )
        select exists (select from placed) as "placed!", exists (select from current) as "current!",
            exists (select from allowed) as "allowed!",
            exists (select from asked where is_open) as "open!"
        "#,
        Json(rows.as_slice()) as Json<&[Bounded<'_, NewSaleRow>]>,
        answer,
    )
    .fetch_one(conn)
    .await?;
    Ok(if inserted.placed {
        InsertOutcome::Placed
    } else if !inserted.current {
        InsertOutcome::KeyLost
    } else if !inserted.open {
        InsertOutcome::QuoteExpired
    } else if !inserted.allowed {
        InsertOutcome::Forbidden
    } else {
        InsertOutcome::Conflict
    })
}

/// The sale that a quote has become.
pub(super) struct ExistingSale {
    pub(super) order_id: OrderId,
    pub(super) wallet_address: String,
    pub(super) destination_tag: Option<DestinationTag>,
    pub(super) expires_at: DateTime<Utc>,
    pub(super) terms_digest: Vec<u8>,
}

impl ExistingSale {
    /// The sale that the quote has become before, if it has.
    pub(super) async fn find(core: &Core, client: &Client, quote: QuoteId) -> Result<Option<Self>> {
        let row = sqlx::query!(
            "select order_id, wallet_address, destination_tag, \
             crypto_currency as \"crypto_currency: CurrencyCode\", expires_at, terms_digest \
             from sell_order where client_id = $1 and quote_id = $2",
            client.id().uuid(),
            quote.uuid(),
        )
        .fetch_optional(&core.db)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let currency = currency(&client.catalogue, row.crypto_currency)?;
        Ok(Some(Self {
            order_id: id(row.order_id)?,
            wallet_address: row.wallet_address,
            destination_tag: tag(&currency, row.destination_tag)?,
            expires_at: row.expires_at,
            terms_digest: row.terms_digest,
        }))
    }
}
