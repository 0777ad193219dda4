//! Facts that connectors report, as the books and the orders take them.

use chrono::{DateTime, Utc};
use rampart_statement::stored_reference;
use rampart_types::{ClientId, OrderId, OrderKey};
use rust_decimal::Decimal;

use crate::Core;
use crate::money::payments::report::RAW_BYTES_MAX;
use crate::money::payments::{self, PaymentKind, Recorded, Report};
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::orders::state::Cause;
use crate::trading::orders::status::{Event, apply_in, unless_forbidden};

/// A movement of money or coins.
pub(super) struct Fact<'a> {
    pub(super) kind: PaymentKind,
    pub(super) connector: &'a str,
    /// The one that the order's timeline names.
    pub(super) actor: &'a str,
    /// The provider's own name for it, of any length.
    pub(super) reference: String,
    /// The name of the payment that it gives back or disputes, or of the payout that came back, if that
    /// is another one.
    pub(super) original: Option<String>,
    pub(super) amount: Decimal,
    pub(super) currency: String,
    pub(super) client: Option<ClientId>,
    pub(super) order: Option<OrderId>,
    pub(super) transaction_id: Option<String>,
    pub(super) occurred_at: DateTime<Utc>,
    pub(super) raw: Option<String>,
}

/// Records a movement in the caller's transaction, and lets its order follow.
///
/// # Errors
/// The database's.
pub(super) async fn record(conn: &mut Connection, core: &Core, fact: Fact<'_>) -> Result<Recorded> {
    let report = Report {
        client: fact.client,
        connector: fact.connector.to_owned(),
        provider_reference: stored_reference(&fact.reference),
        original_reference: fact.original,
        kind: fact.kind,
        amount: fact.amount,
        currency: fact.currency,
        order: fact.order,
        transaction_id: fact.transaction_id,
        // The books have no entries of the future.
        occurred_at: fact.occurred_at.min(core.clock.now()),
        actor: fact.actor.to_owned(),
        reason: None,
        // The connector's event has all of a larger one.
        raw: fact.raw.filter(|raw| raw.len() <= RAW_BYTES_MAX),
    };
    // On the heap: it holds the state of an order's whole change.
    let recorded = Box::pin(payments::record(conn, core, &report)).await?;
    if recorded.contradicts {
        let (connector, payment) = (fact.connector, recorded.payment);
        tracing::warn!(connector, %payment, "a report contradicts an earlier one");
    }
    Ok(recorded)
}

/// Applies an event to an order in the caller's transaction. One that the order's state forbids
/// changes nothing.
///
/// # Errors
/// The database's.
pub(super) async fn apply<E: Event>(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
    event: &E,
    connector: &str,
) -> Result<Vec<Cause>> {
    let applied = unless_forbidden(Box::pin(apply_in(conn, core, key, event, connector)).await)?;
    if applied.is_none() {
        let OrderKey { client, order } = key;
        tracing::warn!(%client, %order, "an order does not follow its connector");
    }
    Ok(applied.map(|applied| applied.cause).into_iter().collect())
}

/// The amount and the currency of the payout that a connector has reported under this reference, of
/// this order if one is named: one transaction may pay several.
///
/// # Errors
/// The database's.
pub(super) async fn payout_named(
    conn: &mut Connection,
    connector: &str,
    reference: &str,
    order: Option<&OrderAmounts>,
) -> Result<Option<(Decimal, String)>> {
    let key = order.map(|order| order.key);
    let beside = key.map(|key| stored_reference(&format!("{}/{reference}", key.order)));
    let found = sqlx::query!(
        "select amount, currency from payment \
         where connector = $1 and provider_reference in ($2, $3) \
             and kind in ('payout-sent', 'payout-confirmed', 'transfer-sent', 'transfer-completed') \
             and ($4::bigint is null or order_id is null \
                 or client_id = $5::uuid and order_id = $4) \
         order by recorded_at, payment_id limit 1",
        connector,
        reference,
        beside,
        key.map(|key| key.order.number()),
        key.map(|key| key.client.uuid()),
    )
    .fetch_optional(conn)
    .await?;
    Ok(found.map(|found| (found.amount, found.currency)))
}

/// The amounts of an order, bought or sold.
pub(super) struct OrderAmounts {
    pub(super) key: OrderKey,
    pub(super) fiat: Decimal,
    pub(super) currency: String,
    pub(super) coins: Decimal,
    pub(super) asset: String,
}

impl OrderAmounts {
    /// The order of this number, whoever's it is, or of this partner; `None` if there are two.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub(super) async fn find(
        conn: &mut Connection,
        client: Option<ClientId>,
        order: OrderId,
    ) -> Result<Option<Self>> {
        let mut rows = sqlx::query!(
            r#"
            select client_id as "client_id!", fiat_amount as "fiat_amount!",
                fiat_currency as "fiat_currency!", crypto_amount as "crypto_amount!",
                crypto_currency as "crypto_currency!"
            from (
                select client_id, order_id, fiat_amount, fiat_currency, crypto_amount,
                    crypto_currency from buy_order where order_id = $2
                union all
                select client_id, order_id, fiat_amount, fiat_currency, crypto_amount,
                    crypto_currency from sell_order where order_id = $2
            ) o
            where $1::uuid is null or client_id = $1
            limit 2
            "#,
            client.map(ClientId::uuid),
            order.number(),
        )
        .fetch_all(conn)
        .await?;
        if rows.len() > 1 {
            // Of two orders with one number, neither is meant for sure.
            return Ok(None);
        }
        Ok(rows.pop().map(|row| Self {
            key: OrderKey { client: row.client_id.into(), order },
            fiat: row.fiat_amount,
            currency: row.fiat_currency,
            coins: row.crypto_amount,
            asset: row.crypto_currency,
        }))
    }
}
