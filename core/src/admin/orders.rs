//! Orders and offers: `GET /admin/v1/orders`, `GET /admin/v1/orders/{id}`,
//! `POST /admin/v1/orders/{id}/events` and `POST /admin/v1/offers/{uuid}/expire`.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Answer, Input, Refused, done, limit, ok};
use crate::Core;
use crate::audit::{self, Entry};
use crate::orders::status::{NotApplied, OrderEvent, OrderStatus, apply};
use crate::types::{ClientId, JsonDecimal, OrderId};

/// Most orders of one answer.
const ORDERS_MAX: i64 = 200;
/// Longest reason or reference, in characters.
const TEXT_CHARS_MAX: usize = 255;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Search {
    partner: Option<String>,
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
        select o.client_id as "client_id!", c.slug as "slug!", order_id as "order_id!",
            o.status as "status!", pair as "pair!", fiat_amount as "fiat_amount!",
            fiat_currency as "fiat_currency!", partner_reference, o.created_at as "created_at!"
        from buy_order o join client c on c.client_id = o.client_id
        where ($1::text is null or c.slug = $1)
            and ($2::text is null or o.status = $2)
            and ($3::text is null or partner_reference = $3)
            and ($4::text is null or wallet_address = $4)
            and ($5::text is null or transaction_id = $5)
            and ($6::timestamptz is null or o.created_at >= $6)
            and ($7::timestamptz is null or o.created_at < $7)
        order by o.created_at desc, order_id desc
        limit $8
        "#,
        search.partner,
        search.status,
        search.partner_order_identifier,
        search.wallet_address,
        search.transaction_id,
        search.from,
        search.to,
        limit,
    )
    .fetch_all(&core.db)
    .await?;
    let orders: Vec<_> = rows
        .into_iter()
        .map(|row| {
            json!({"id": row.order_id, "partner": row.slug, "status": row.status,
                "currencyPair": row.pair, "partnerOrderIdentifier": row.partner_reference,
                "fiatAmount": {"amount": JsonDecimal(row.fiat_amount),
                    "currencyCode": row.fiat_currency},
                "date": row.created_at})
        })
        .collect();
    ok(&orders)
}

/// An order whole, with its timeline and what its policies decided.
pub(super) async fn read(core: &Arc<Core>, input: Input) -> Answer {
    let (client, order) = find(core, input.param("id")).await?;
    ok(&detail(core, client, order).await?)
}

pub(super) async fn detail(
    core: &Core,
    client: ClientId,
    order: OrderId,
) -> Result<Value, Refused> {
    let row = sqlx::query_scalar!(
        r#"
        select to_jsonb(o) - 'terms_digest' - 'client_id' as "order!"
        from buy_order o where client_id = $1 and order_id = $2
        "#,
        client.uuid(),
        order.number(),
    )
    .fetch_one(&core.db)
    .await?;
    let timeline = sqlx::query!(
        "select at, from_status, to_status, cause, reason, actor from order_transition \
         where client_id = $1 and order_id = $2 order by at, transition_id",
        client.uuid(),
        order.number(),
    )
    .fetch_all(&core.db)
    .await?;
    let timeline: Vec<_> = timeline
        .into_iter()
        .map(|row| {
            json!({"at": row.at, "from": row.from_status, "to": row.to_status,
                "cause": row.cause, "reason": row.reason, "actor": row.actor})
        })
        .collect();
    let mut detail = in_camel_case(row);
    let snapshot = core.snapshots.current();
    detail["partner"] = snapshot.tenants.get(&client).map(|tenant| tenant.slug.to_string()).into();
    detail["id"] = order.number().into();
    detail["timeline"] = timeline.into();
    Ok(detail)
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

/// The client of an order: an order id is unique within a client, and in practice overall.
async fn find(core: &Core, id: &str) -> Result<(ClientId, OrderId), Refused> {
    let order: OrderId = id.parse().map_err(|_| Refused::not_found("order"))?;
    let clients = sqlx::query_scalar!(
        "select client_id from buy_order where order_id = $1 limit 2",
        order.number(),
    )
    .fetch_all(&core.db)
    .await?;
    match clients[..] {
        [client] => Ok((client.into(), order)),
        [] => Err(Refused::not_found("order")),
        _ => Err(Refused::conflict("several partners have an order with this id")),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Happened {
    event: Name,
    amount: Option<JsonDecimal>,
    reference: Option<String>,
    transaction_id: Option<String>,
    reason: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Name {
    PaymentReceived,
    PaymentDenied,
    CoinsSent,
    ConfirmedOnChain,
    Hold,
    Release,
    Refund,
    Cancel,
}

impl Happened {
    /// The event, with the members that it takes and no others.
    fn event(self) -> Result<OrderEvent, Refused> {
        let Self { event, amount, reference, transaction_id, reason } = self;
        let texts = [&reference, &transaction_id, &reason];
        if texts.into_iter().flatten().any(|text| text.chars().count() > TEXT_CHARS_MAX) {
            return Err(Refused::unprocessable("a text is longer than 255 characters"));
        }
        let takes = match event {
            Name::PaymentReceived => [true, true, false, false],
            Name::CoinsSent => [false, false, true, false],
            Name::ConfirmedOnChain | Name::Release => [false; 4],
            _ => [false, false, false, true],
        };
        let given =
            [amount.is_some(), reference.is_some(), transaction_id.is_some(), reason.is_some()];
        if given.iter().zip(takes).any(|(given, takes)| *given && !takes) {
            return Err(Refused::unprocessable("a member that this event does not take"));
        }
        Ok(match event {
            Name::PaymentReceived => {
                let amount = amount.map(|JsonDecimal(amount)| amount);
                OrderEvent::PaymentReceived { amount, reference }
            }
            Name::PaymentDenied => OrderEvent::PaymentDenied { reason },
            Name::CoinsSent => OrderEvent::CoinsSent {
                transaction_id: transaction_id
                    .filter(|id| !id.is_empty())
                    .ok_or_else(|| Refused::unprocessable("transactionId is required"))?,
            },
            Name::ConfirmedOnChain => OrderEvent::ConfirmedOnChain,
            Name::Hold => OrderEvent::Hold { reason },
            Name::Release => OrderEvent::Release,
            Name::Refund => OrderEvent::Refund { reason },
            Name::Cancel => OrderEvent::Cancel { reason },
        })
    }
}

/// Lets an event happen to an order; 409 when its state forbids it.
pub(super) async fn happen(core: &Arc<Core>, input: Input) -> Answer {
    let event = input.json::<Happened>()?.event()?;
    let (client, order) = find(core, input.param("id")).await?;
    let applied = apply(core, client, order, event, input.actor()).await;
    let applied = applied.map_err(|error| match error {
        NotApplied::NoSuchOrder => Refused::not_found("order"),
        NotApplied::Forbidden { status } => {
            Refused::conflict(format!("an order that is {} forbids it", status.as_str()))
        }
        NotApplied::Failed(error) => error.into(),
    })?;
    let mut conn = core.db.acquire().await?;
    let target = order.to_string();
    let mut detail: Value = input.json()?;
    detail["from"] = applied.from.as_str().into();
    detail["to"] = applied.to.as_str().into();
    let entry = Entry { actor: input.actor(), action: "order.event", target: &target, detail };
    audit::record(&mut conn, &core.clock, entry).await?;
    drop(conn);
    ok(&self::detail(core, client, order).await?)
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
