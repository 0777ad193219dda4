//! Orders of both sides and offers: `GET /admin/v1/orders`, `GET /admin/v1/orders/{id}` and
//! `POST /admin/v1/offers/{uuid}/expire`. What an operator makes happen is in [`events`].

pub(super) mod events;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Answer, Input, Refused, done, limit, ok};
use crate::Core;
use crate::platform::audit::{self, Entry};
use crate::policies::decision_replay;
use crate::trading::orders::status::OrderStatus;
use crate::trading::quotes::Side;
use rampart_types::{ClientId, JsonDecimal, OrderId};

/// Most orders of one answer.
const ORDERS_MAX: i64 = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Search {
    partner: Option<String>,
    side: Option<Side>,
    status: Option<String>,
    partner_order_identifier: Option<String>,
    wallet_address: Option<String>,
    transaction_id: Option<String>,
    from: Option<DateTime<Utc>>,
    to: Option<DateTime<Utc>>,
    limit: Option<String>,
}

/// Orders that fit every criterion, newest first, at most [`ORDERS_MAX`]: narrow with `to` for
/// the ones before.
pub(super) async fn search(core: &Arc<Core>, input: Input) -> Answer {
    let search: Search = input.query()?;
    if search.status.as_deref().is_some_and(|name| OrderStatus::from_name(name).is_none()) {
        return Err(Refused::unprocessable("status: not an order's status"));
    }
    let limit = limit(search.limit.as_deref(), ORDERS_MAX)?;
    let rows = sqlx::query!(
        r#"
        select c.slug as "slug!", order_id as "order_id!", side as "side!", o.status as "status!",
            pair as "pair!", fiat_amount as "fiat_amount!", fiat_currency as "fiat_currency!",
            partner_reference, o.created_at as "created_at!"
        from (
            select client_id, order_id, 'buy' as side, status, pair, fiat_amount, fiat_currency,
                partner_reference, wallet_address, transaction_id, created_at from buy_order
            union all
            select client_id, order_id, 'sell' as side, status, pair, fiat_amount, fiat_currency,
                partner_reference, wallet_address, transaction_id, created_at from sell_order
        ) o join client c on c.client_id = o.client_id
        where ($1::text is null or c.slug = $1)
            and ($2::text is null or o.status = $2)
            and ($3::text is null or partner_reference = $3)
            and ($4::text is null or wallet_address = $4)
            and ($5::text is null or transaction_id = $5)
            and ($6::timestamptz is null or o.created_at >= $6)
            and ($7::timestamptz is null or o.created_at < $7)
            and ($8::text is null or side = $8)
        order by o.created_at desc, order_id desc
        limit $9
        "#,
        search.partner,
        search.status,
        search.partner_order_identifier,
        search.wallet_address,
        search.transaction_id,
        search.from,
        search.to,
        search.side.map(|side| side.to_string()),
        limit,
    )
    .fetch_all(&core.db)
    .await?;
    let orders: Vec<_> = rows
        .into_iter()
        .map(|row| {
            json!({"id": row.order_id, "side": row.side, "partner": row.slug,
                "status": row.status, "currencyPair": row.pair,
                "partnerOrderIdentifier": row.partner_reference,
                "fiatAmount": {"amount": JsonDecimal(row.fiat_amount),
                    "currencyCode": row.fiat_currency},
                "date": row.created_at})
        })
        .collect();
    ok(&orders)
}

/// An order whole, with its timeline and what its policies decided.
pub(super) async fn read(core: &Arc<Core>, input: Input) -> Answer {
    let order = Named::find(core, input.param("id")).await?;
    ok(&order.detail(core).await?)
}

/// An order of some client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) client: ClientId,
    pub(super) side: Side,
    pub(super) order: OrderId,
}

impl Named {
    /// The order of this number: it is unique within a client, and in practice overall.
    async fn find(core: &Core, id: &str) -> Result<Self, Refused> {
        let order: OrderId = id.parse().map_err(|_| Refused::not_found("order"))?;
        let rows = sqlx::query!(
            r#"
            select client_id as "client_id!", false as "sold!" from buy_order where order_id = $1
            union all
            select client_id as "client_id!", true as "sold!" from sell_order where order_id = $1
            limit 2
            "#,
            order.number(),
        )
        .fetch_all(&core.db)
        .await?;
        match &rows[..] {
            [row] => {
                let side = if row.sold { Side::Sell } else { Side::Buy };
                Ok(Self { client: row.client_id.into(), side, order })
            }
            [] => Err(Refused::not_found("order")),
            _ => Err(Refused::conflict("several orders have this id")),
        }
    }

    /// The whole order.
    pub(super) async fn detail(self, core: &Core) -> Result<Value, Refused> {
        let mut detail = in_camel_case(self.row(core).await?);
        hide_sealed_inputs(&mut detail["policyDecisions"]);
        let snapshot = core.snapshots.current();
        let partner = snapshot.tenants.get(&self.client).map(|tenant| tenant.slug.to_string());
        detail["partner"] = partner.into();
        detail["side"] = self.side.to_string().into();
        detail["id"] = self.order.number().into();
        detail["timeline"] = self.timeline(core).await?.into();
        Ok(detail)
    }

    async fn row(self, core: &Core) -> Result<Value, sqlx::Error> {
        let (client, order) = (self.client.uuid(), self.order.number());
        match self.side {
            Side::Buy => {
                sqlx::query_scalar!(
                    r#"
                    select to_jsonb(o) - 'terms_digest' - 'client_id' as "order!"
                    from buy_order o where client_id = $1 and order_id = $2
                    "#,
                    client,
                    order,
                )
                .fetch_one(&core.db)
                .await
            }
            Side::Sell => {
                sqlx::query_scalar!(
                    r#"
                    select to_jsonb(o) - 'terms_digest' - 'client_id' as "order!"
                    from sell_order o where client_id = $1 and order_id = $2
                    "#,
                    client,
                    order,
                )
                .fetch_one(&core.db)
                .await
            }
        }
    }

    async fn timeline(self, core: &Core) -> Result<Vec<Value>, sqlx::Error> {
        let rows = sqlx::query!(
            r#"
            select at as "at!", from_status, to_status as "to_status!", cause as "cause!", reason,
                actor as "actor!"
            from (
                select at, transition_id, from_status, to_status, cause, reason, actor
                from order_transition where client_id = $1 and order_id = $2 and not $3
                union all
                select at, transition_id, from_status, to_status, cause, reason, actor
                from sell_order_transition where client_id = $1 and order_id = $2 and $3
            ) steps order by at, transition_id
            "#,
            self.client.uuid(),
            self.order.number(),
            self.side == Side::Sell,
        )
        .fetch_all(&core.db)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| {
                json!({"at": row.at, "from": row.from_status, "to": row.to_status,
                    "cause": row.cause, "reason": row.reason, "actor": row.actor})
            })
            .collect())
    }
}

/// Takes out of decisions what only a replay may open: a signature's payload.
fn hide_sealed_inputs(decisions: &mut Value) {
    let decisions = decisions.as_array_mut().into_iter().flatten();
    for decision in decisions.filter(|decision| decision["kind"] == "signature") {
        if let Value::Object(members) = decision {
            members.remove("input");
        }
    }
}

/// `POST /admin/v1/orders/{id}/replay`: what the order's policies decided, decided again.
pub(super) async fn replay(core: &Arc<Core>, input: Input) -> Answer {
    let order = Named::find(core, input.param("id")).await?;
    let row = order.row(core).await?;
    core.refresh().await?;
    let snapshot = core.snapshots.current();
    let tenant =
        snapshot.tenants.get(&order.client).ok_or_else(|| Refused::not_found("partner"))?;
    let (client, decisions) = ((order.client, &*tenant.slug), &row["policy_decisions"]);
    ok(&decision_replay::replay(core, client, decisions).await?)
}

/// A row with its columns named as members are.
fn in_camel_case(row: Value) -> Value {
    let Value::Object(columns) = row else { return row };
    let rename = |(column, value): (String, Value)| {
        let mut words = column.split('_');
        let mut name = words.next().unwrap_or("").to_owned();
        for word in words {
            let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
            name += &first.to_ascii_uppercase();
            name += rest;
        }
        (name, value)
    };
    Value::Object(columns.into_iter().map(rename).collect())
}

/// Ends an offer now, unless it is confirmed.
pub(super) async fn expire_offer(core: &Arc<Core>, input: Input) -> Answer {
    let offer: Uuid = input.param("uuid").parse().map_err(|_| Refused::not_found("offer"))?;
    let client = sqlx::query_scalar!("select client_id from offer where offer_id = $1", offer)
        .fetch_optional(&core.db)
        .await?
        .ok_or_else(|| Refused::not_found("offer"))?;
    let mut tx = core.db.begin().await?;
    let ended = sqlx::query!(
        "update offer set expires_at = least(expires_at, $3) \
         where client_id = $1 and offer_id = $2 and confirmed_at is null",
        client,
        offer,
        core.clock.now(),
    )
    .execute(&mut *tx)
    .await?;
    if ended.rows_affected() == 0 {
        return Err(Refused::conflict("the offer is confirmed already"));
    }
    let target = offer.to_string();
    let entry =
        Entry { actor: input.actor(), action: "offer.expire", target: &target, detail: json!({}) };
    audit::record(&mut tx, &core.clock, entry).await?;
    tx.commit().await?;
    done()
}
