//! Payments: what was reported of money and coins, and what operators do with what no order wants.

pub mod create;
pub mod list;
pub mod matching;
pub mod read;
pub mod refund;
pub mod suggestions;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::page::check_after;
use crate::Core;
use crate::endpoint::openapi::doc::{Kind, Member, required};
use crate::money::payments::PaymentState;
use crate::platform::error::{Denial, Result};
use crate::tenancy::tenants::id_of;
use rampart_types::{JsonDecimal, OrderId};

/// The path's `{id}`.
const ID: Member = required("id", Kind::Format("uuid"), "The payment's id.");

/// A payment, for the OpenAPI document.
const EXAMPLE: &str = r#"{
    "id": "0199a000-0000-7000-8000-000000000021", "partner": "acme", "connector": "manual",
    "providerReference": "2026-03-01-17", "kind": "received", "amount": 250, "currency": "EUR",
    "orderId": 1234567890123456, "state": "matched", "refundRequested": 0, "actor": "ada",
    "reason": "seen on the statement", "occurredAt": "2026-03-01T11:58:00Z",
    "recordedAt": "2026-03-01T12:00:00Z"
}"#;

/// A page of payments, for the OpenAPI document.
const EXAMPLE_LIST: &str = r#"[{
    "id": "0199a000-0000-7000-8000-000000000021", "partner": "acme", "connector": "manual",
    "providerReference": "2026-03-01-17", "kind": "received", "amount": 250, "currency": "EUR",
    "orderId": 1234567890123456, "state": "matched", "refundRequested": 0, "actor": "ada",
    "reason": "seen on the statement", "occurredAt": "2026-03-01T11:58:00Z",
    "recordedAt": "2026-03-01T12:00:00Z"
}]"#;

/// A payment as it was reported.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Payment {
    /// The payment's id.
    id: Uuid,
    /// Slug of the partner in whose book it is; `house` while nobody is known.
    partner: String,
    /// The program that reported it; `manual` for an operator.
    connector: String,
    /// The provider's own name for it.
    provider_reference: String,
    /// Such as `received`, `refunded` or `payout-sent`.
    kind: String,
    /// The amount; above zero.
    amount: JsonDecimal,
    /// A currency's code, or an asset's code or CAIP-19 id.
    currency: String,
    /// The order that it names or was matched to.
    order_id: Option<i64>,
    /// `matched`, `unmatched` (it has no order) or `suspense` (its order does not want it).
    state: &'static str,
    /// Amount whose refund was asked for.
    refund_requested: JsonDecimal,
    /// The connector's name, or the operator.
    actor: String,
    /// The operator's words.
    reason: Option<String>,
    /// When it happened, as the provider says.
    occurred_at: DateTime<Utc>,
    /// When it was recorded.
    recorded_at: DateTime<Utc>,
}

/// A search for payments: every criterion that is there must hold.
#[derive(Debug, Default)]
pub struct Criteria {
    partner: Option<String>,
    order: Option<OrderId>,
    state: Option<PaymentState>,
    /// The last payment of the page before.
    after: Option<Uuid>,
    id: Option<Uuid>,
    limit: i64,
}

/// A payment that was found.
struct Found {
    slug: String,
    payment_id: Uuid,
    connector: String,
    provider_reference: String,
    kind: String,
    amount: Decimal,
    currency: String,
    order_id: Option<i64>,
    state: String,
    requested: Decimal,
    actor: String,
    reason: Option<String>,
    occurred_at: DateTime<Utc>,
    recorded_at: DateTime<Utc>,
}

impl Criteria {
    /// Newest first.
    async fn find(self, core: &Core) -> Result<Vec<Payment>> {
        check_page(core, self.after).await?;
        let client = match &self.partner {
            Some(slug) => {
                // By its id the server knows how many payments it has.
                let Some(client) = id_of(&core.db, slug).await? else { return Ok(Vec::new()) };
                Some(client.uuid())
            }
            None => None,
        };
        let found = self.of_client(core, client).await?;
        Ok(found.into_iter().map(Payment::of).collect())
    }

    /// Those of this client, or of all.
    async fn of_client(&self, core: &Core, client: Option<Uuid>) -> Result<Vec<Found>> {
        let found = sqlx::query_as!(
            Found,
            r#"
            with found as not materialized (
                select p.client_id, c.slug, p.payment_id, p.connector, p.provider_reference, p.kind,
                    p.amount, p.currency, p.order_id, m.order_id as matched_order, p.actor,
                    p.reason, p.occurred_at, p.recorded_at, p.suspense,
                    case when m.payment_id is not null then 'matched'
                        when not exists (select from buy_order o
                                where o.client_id = p.client_id and o.order_id = p.order_id)
                            and not exists (select from sell_order o
                                where o.client_id = p.client_id and o.order_id = p.order_id)
                            then 'unmatched'
                        when p.suspense then 'suspense' else 'matched' end as state
                from payment p join client c on c.client_id = p.client_id
                left join payment_match m
                    on m.client_id = p.client_id and m.payment_id = p.payment_id
            ), wanted as not materialized (
                select f.* from found f
                where ($2::bigint is null or f.payment_id = any (array(
                            select payment_id from payment where order_id = $2 union all
                            select payment_id from payment_match where order_id = $2))
                        and coalesce(f.matched_order, f.order_id) = $2)
                    and ($3::text is null or f.state = $3)
                    -- by an index, which the state itself has not
                    and ($3 is distinct from 'suspense' or f.suspense)
                    and ($3 is distinct from 'unmatched'
                        or f.payment_id = any (array(select payment_id from payments_unmatched())))
                    -- what was given back waits no more; what a connector gives back does
                    and ($3 is distinct from 'suspense'
                        or f.payment_id = any (array(
                            select w.payment_id from money_waiting() w
                            where w.payment_id is not null
                            union all
                            select r.payment_id from command c
                            join payment_refund r
                                on 'refund/' || r.refund_id::text = c.idempotency_key
                            where c.kind = 'payment.refund' and c.state = 'open')))
                    and ($4::uuid is null or (f.recorded_at, f.payment_id) <
                        (select recorded_at, payment_id from payment where payment_id = $4))
                    and ($5::uuid is null or f.payment_id = $5)
            ), page as (
                -- each by an index of its own: one condition for both has none in their order
                (select w.* from wanted w where ($1::uuid is null or w.client_id = $1)
                order by w.recorded_at desc, w.payment_id desc limit $6)
                union all
                (select w.* from wanted w
                where $1 is not null and ($3 is null or $3 = 'matched')
                    and w.payment_id = any (array(select m.payment_id from payment_match m
                        where m.to_client_id = $1 and m.to_client_id <> m.client_id))
                order by w.recorded_at desc, w.payment_id desc limit $6)
            )
            select f.slug as "slug!", f.payment_id as "payment_id!", f.connector as "connector!",
                f.provider_reference as "provider_reference!", f.kind as "kind!", f.reason,
                f.amount as "amount!", f.currency as "currency!", f.actor as "actor!",
                coalesce(f.matched_order, f.order_id) as order_id, f.state as "state!",
                f.occurred_at as "occurred_at!", f.recorded_at as "recorded_at!",
                (select amount from refund_requested(f.client_id, f.payment_id)) as "requested!"
            from page f order by f.recorded_at desc, f.payment_id desc limit $6
            "#,
            client,
            self.order.map(OrderId::number),
            self.state.map(PaymentState::as_str),
            self.after,
            self.id,
            self.limit,
        );
        Ok(found.fetch_all(&core.db).await?)
    }
}

impl Payment {
    fn of(found: Found) -> Self {
        Self {
            id: found.payment_id,
            partner: found.slug,
            connector: found.connector,
            provider_reference: found.provider_reference,
            kind: found.kind,
            amount: JsonDecimal(found.amount),
            currency: found.currency,
            order_id: found.order_id,
            state: PaymentState::from_name(&found.state).map_or("", PaymentState::as_str),
            refund_requested: JsonDecimal(found.requested),
            actor: found.actor,
            reason: found.reason,
            occurred_at: found.occurred_at,
            recorded_at: found.recorded_at,
        }
    }
}

/// Checks that there is the payment behind which a page begins.
async fn check_page(core: &Core, after: Option<Uuid>) -> Result<()> {
    let Some(id) = after else { return Ok(()) };
    let exists = sqlx::query_scalar!(
        r#"select exists (select from payment where payment_id = $1) as "exists!""#,
        id,
    );
    check_after(exists.fetch_one(&core.db).await?)
}

/// The payment of this id.
///
/// # Errors
/// 404 when there is none.
async fn find(core: &Core, id: Uuid) -> Result<Payment> {
    let criteria = Criteria { id: Some(id), limit: 1, ..Criteria::default() };
    let found = criteria.find(core).await?.pop();
    found.ok_or_else(|| Denial::not_found("payment").into())
}

/// The id that the path names.
fn id(text: &str) -> Result<Uuid> {
    text.parse().map_err(|_| Denial::not_found("payment").into())
}
