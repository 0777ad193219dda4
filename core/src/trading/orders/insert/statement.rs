//! The one statement that writes bought orders.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use rampart_types::OrderId;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::new_buy_order::{NewBuyOrder, NewWalletScreening};
use crate::Core;
use crate::endpoint::SavedAnswer;
use crate::money::connectors::commands::SealedCommand;
use crate::money::connectors::screening::SealedScreening;
use crate::notify::events::EventType;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::telemetry::{StoredTrace, TraceScope};
use crate::trading::catalogue::Catalogue;
use crate::trading::limits::Bounds;
use crate::trading::orders::quoted::QuotedColumns;
use crate::trading::orders::state::{Cause, OrderStatus, WalletType};
use crate::trading::quotes::Quote;

/// An order that is about to be written, with all that is written beside it.
#[derive(Debug)]
pub(crate) struct NewOrderRow {
    pub(crate) client_id: Uuid,
    pub(crate) order_id: i64,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) offer_id: Option<Uuid>,
    /// End of the quote.
    pub(crate) quote_expires_at: DateTime<Utc>,
    pub(crate) user_id: Option<Uuid>,
    pub(crate) account_id: Option<Uuid>,
    pub(crate) partner_reference: Option<String>,
    pub(crate) status: &'static str,
    pub(crate) status_cause: &'static str,
    pub(crate) quoted: QuotedColumns,
    /// As the quote named it.
    pub(crate) country: Option<String>,
    pub(crate) wallet_address: String,
    pub(crate) destination_tag: Option<String>,
    pub(crate) wallet_type: &'static str,
    pub(crate) is_estimated_quote: bool,
    pub(crate) is_dca_order: bool,
    pub(crate) return_url: Option<String>,
    pub(crate) callback_url: Option<String>,
    pub(crate) terms_digest: Vec<u8>,
    pub(crate) policy_decisions: Value,
    pub(crate) expires_at: Option<DateTime<Utc>>,
    pub(crate) transition_id: Uuid,
    pub(crate) event_id: Uuid,
    pub(crate) event_type: &'static str,
    pub(crate) payload: Value,
    pub(crate) trace: StoredTrace,
    /// The command that has its payment made.
    pub(crate) command: Option<SealedCommand>,
    /// The screening of its wallet, where there is one.
    pub(crate) screening: Option<SealedScreening>,
    /// The answer to save under the request's `Idempotency-Key`.
    pub(crate) answer: Option<SavedAnswer>,
}

impl NewOrderRow {
    /// The pending order that `quote` becomes at `now`: everything that the quote fixes, without user,
    /// wallet, URLs and offer. A confirm and a deposit set the rest.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn for_quote(
        core: &Core,
        catalogue: &Catalogue,
        quote: &Quote,
        id: OrderId,
        partner_reference: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<Self> {
        Ok(Self {
            client_id: quote.client.uuid(),
            order_id: id.number(),
            created_at: now,
            offer_id: None,
            quote_expires_at: quote.expires_at,
            user_id: None,
            account_id: None,
            partner_reference: partner_reference.map(str::to_owned),
            status: OrderStatus::Pending.as_str(),
            status_cause: Cause::Confirmed.as_str(),
            quoted: QuotedColumns::new(core, catalogue, quote),
            country: quote.country.map(|country| country.as_str().to_owned()),
            wallet_address: String::new(),
            destination_tag: None,
            wallet_type: WalletType::Unhosted.as_str(),
            is_estimated_quote: quote.is_estimated,
            is_dca_order: false,
            return_url: None,
            callback_url: None,
            terms_digest: Vec::new(),
            policy_decisions: quote.policy_decisions.clone(),
            expires_at: None,
            transition_id: core.clock.uuid()?,
            event_id: core.clock.uuid()?,
            event_type: EventType::OrderCreated.as_str(),
            payload: created_payload(id, partner_reference),
            trace: TraceScope::current().stored(),
            command: None,
            screening: None,
            answer: None,
        })
    }
}

/// The payload of a new order's event.
pub(crate) fn created_payload(id: OrderId, partner_reference: Option<&str>) -> Value {
    json!({
        "orderId": id,
        "partnerOrderIdentifier": partner_reference,
        "status": OrderStatus::Pending,
    })
}

/// An order, and the bounds of its user where it has one that is limited.
#[derive(Debug, Serialize)]
pub(crate) struct Bounded<'a, O> {
    #[serde(flatten)]
    pub(crate) order: &'a O,
    #[serde(flatten)]
    pub(crate) bounds: Option<Bounds>,
}

/// The result of inserting one order of a batch.
#[derive(Debug)]
pub(crate) enum InsertOutcome {
    /// The order is made, and durable.
    Placed,
    /// Nothing happened: the quote has become an order before, or the order's number is taken.
    Conflict,
    /// Nothing happened: another request has claimed the idempotency key in the meantime.
    KeyLost,
    /// Nothing happened: the quote has expired in the meantime, or is void by the pair's
    /// `quotes_valid_from`.
    QuoteExpired,
    /// Nothing happened: the offer was confirmed or has ended in the meantime.
    OfferTaken,
    /// Nothing happened: in the meantime the limit of the user or of the account was reached, or one
    /// of them disabled, or the partner no longer allows such an order without a user.
    Forbidden,
    /// Nothing happened: the database cannot be used.
    Unavailable,
    /// Nothing happened: the database refuses this order.
    Failed(sqlx::Error),
    /// The connection was lost at the commit. The quote tells whether the order was made.
    Unknown,
}

/// Makes the orders that may be made: each with the first row of its timeline, its event, the
/// deliveries to webhook endpoints that listen (as `webhooks::fan_out` writes them), the command
/// of its payment, the screening of its wallet with that one's command, and the saved answer; its
/// offer is taken. By client and number, what became of each. The order being new, nobody has
/// commanded its payment or screened its wallet before.
///
/// Offers are locked before orders, and both in one order, so that two statements never wait for
/// each other. An offer is taken once its order is made: a quote that was used leaves it alone.
#[expect(clippy::too_many_lines, reason = "one statement")]
pub(super) async fn insert(
    conn: &mut Connection,
    rows: &[Bounded<'_, NewOrderRow>],
) -> Result<HashMap<(Uuid, i64), InsertOutcome>, sqlx::Error> {
    let screenings: Vec<_> =
        rows.iter().filter_map(|row| NewWalletScreening::of(row.order)).collect();
    let rows: Vec<_> = rows.iter().map(NewBuyOrder::new).collect();
    let inserted = sqlx::query!(
        r#"
        with asked as materialized (
            select asked.*, quote_expires_at > rampart_now()
                and not quote_is_void(quote_sealed_at, quote_revision, p.quotes_valid_from,
                    p.quotes_raised_at, p.quotes_raised_revision, p.quotes_raised_before,
                    p.quotes_revisions_before) as is_open
            from unnest($1::new_priced_order[]) as asked
                left join currency_pair p on p.pair = asked.pair
        ), held as materialized (
            select k.client_id, k.route, k.key
            from asked a join idempotency_key k on k.client_id = a.client_id
                and k.route = a.key_route and k.key = a.key and k.claim_id = a.key_claim
            where k.status is null
            order by k.client_id, k.route, k.key
            for no key update of k
        ), current as materialized (
            select * from asked
            where key is null
                or (client_id, key_route, key) in (select client_id, route, key from held)
        ), allowed as materialized (
            select current.*
            from current left join lateral day_limits(client_id, user_id, 'buy', limit_amount,
                side_max, day_max, trades_counted_since()) day on day_max is not null
            left join lateral account_limits(client_id, user_id, account_id, limit_amount,
                trades_counted_since()) account on account_id is not null
            left join lateral guest_limits(client_id, limit_amount) guest on user_id is null
            where is_open and (day_max is null or day.fits)
                and (account_id is null or account.fits)
                and (user_id is not null or guest.fits)
        ), available as materialized (
            select o.client_id, o.offer_id
            from offer o join allowed a on a.client_id = o.client_id and a.offer_id = o.offer_id
            where o.confirmed_at is null and o.expires_at > rampart_now()
            order by o.client_id, o.offer_id
            for no key update of o
        ), placed as (
            insert into buy_order (
                client_id, order_id, created_at, updated_at, offer_id, quote_id, user_id,
                account_id, partner_reference, status, status_cause, pair, country, payment_method,
                wallet_address, destination_tag, wallet_type, fiat_amount, fiat_currency, limit_amount,
                crypto_amount, crypto_currency, price, partner_fee, partner_fee_percentage,
                provider_fee, payment_method_fee, network_fee, spread_fee, affiliate_fee, fee_rules,
                is_estimated_quote, is_dca_order, return_url, callback_url, terms_digest,
                policy_decisions, expires_at)
            select
                client_id, order_id, created_at, created_at, offer_id, quote_id, user_id,
                account_id, partner_reference, status, status_cause, pair, country, payment_method,
                wallet_address, destination_tag, wallet_type, fiat_amount, fiat_currency, limit_amount,
                crypto_amount, crypto_currency, price, partner_fee, partner_fee_percentage,
                provider_fee, payment_method_fee, network_fee, spread_fee, affiliate_fee, fee_rules,
                is_estimated_quote, is_dca_order, return_url, callback_url, terms_digest,
                policy_decisions, expires_at
            from allowed
            where offer_id is null
                or (client_id, offer_id) in (select client_id, offer_id from available)
            order by client_id, quote_id
            on conflict do nothing
            returning client_id, order_id
        ), made as (
            select asked.* from asked join placed using (client_id, order_id)
        ), taken as (
            update offer o set confirmed_at = made.created_at from made
            where o.client_id = made.client_id and o.offer_id = made.offer_id
        ), used as (
            update payment_account p set last_used_at = greatest(p.last_used_at, made.created_at)
            from made
            where p.client_id = made.client_id and p.user_id = made.user_id
                and p.account_id = made.account_id
        ), noted as (
            insert into order_transition
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
        ), routed as materialized (
            -- once for each leg, of which there are few
            select leg.*, route.connector
            from (
                select distinct client_id, command_direction as direction,
                    command_method as payment_method, command_asset as asset
                from made where command_direction is not null
            ) leg
            cross join lateral leg_route(
                leg.client_id, leg.direction, leg.payment_method, leg.asset) route
        ), screened as materialized (
            select s.*, made.traceparent, made.tracestate
            from unnest($2::new_wallet_screening[]) as s
                join made on made.client_id = s.client_id and made.order_id = s.order_id
            where s.decision is not null or (select connector_takes('screening.check'))
        ), screenings as (
            insert into screening (client_id, screening_id, order_id, command_id, state, created_at)
            select client_id, screening_id, order_id, command_id, coalesce(decision, 'pending'),
                rampart_now()
            from screened
        ), commanded as (
            insert into command (client_id, command_id, kind, order_id, idempotency_key, connector,
                direction, payment_method, asset, sealed_body, sealed_result, state, attempt,
                due_at, created_at, finished_at, report_due_at, traceparent, tracestate)
            select client_id, command_id, kind, order_id, idempotency_key, connector,
                direction, payment_method, asset, sealed_body, sealed_result, state,
                case when state = 'done' then 1 else 0 end,
                rampart_now() + delay_ms * interval '1 millisecond', clock_timestamp(),
                case when state = 'done' then now() end,
                rampart_now() + report_ms * interval '1 millisecond', traceparent, tracestate
            from (
                select made.client_id, command_id, command_kind, order_id, command_key,
                    coalesce(command_connector, routed.connector), command_direction,
                    command_method, command_asset, command_body, null::bytea, command_state,
                    command_delay_ms, command_report_ms, traceparent, tracestate
                from made left join routed on routed.client_id = made.client_id
                    and routed.direction = command_direction
                    and routed.payment_method is not distinct from command_method
                    and routed.asset is not distinct from command_asset
                where command_id is not null
                union all
                -- it names no order: a payment need not wait for it
                select client_id, command_id, 'screening.check', null, idempotency_key,
                    connector, null, null, null, sealed_body, sealed_result, state, delay_ms,
                    null, traceparent, tracestate
                from screened
            ) as c (client_id, command_id, kind, order_id, idempotency_key, connector, direction,
                payment_method, asset, sealed_body, sealed_result, state, delay_ms, report_ms,
                traceparent, tracestate)
        ), answered as (
            update idempotency_key k set status = made.answer_status, body = made.answer_body,
                user_id = made.user_id
            from made
            where k.client_id = made.client_id and k.route = made.key_route and k.key = made.key
        )
        select client_id as "client_id!", order_id as "order_id!",
            (client_id, order_id) in (select client_id, order_id from current) as "current!",
            (client_id, order_id) in (select client_id, order_id from placed) as "placed!",
            is_open as "open!",
            (client_id, order_id) in (select client_id, order_id from allowed) as "allowed!",
            offer_id is null
                or (client_id, offer_id) in (select client_id, offer_id from available)
                as "available!"
        from asked
        "#,
        &rows as &[NewBuyOrder<'_>],
        &screenings as &[NewWalletScreening<'_>],
    )
    .fetch_all(conn)
    .await?;
    let outcomes = inserted.into_iter().map(|row| {
        let outcome = if row.placed {
            InsertOutcome::Placed
        } else if !row.current {
            InsertOutcome::KeyLost
        } else if !row.open {
            InsertOutcome::QuoteExpired
        } else if !row.allowed {
            InsertOutcome::Forbidden
        } else if !row.available {
            InsertOutcome::OfferTaken
        } else {
            InsertOutcome::Conflict
        };
        ((row.client_id, row.order_id), outcome)
    });
    Ok(outcomes.collect())
}
