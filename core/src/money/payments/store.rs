//! The row of a payment.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::locks::hold_books;
use super::report::PaymentKind;
use super::terms::OrderTerms;
use crate::Core;
use crate::money::connectors::sandbox::timing;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Error, Result as CoreResult};
use crate::trading::catalogue::Currency;
use rampart_types::decimal::fits_decimals;
use rampart_types::{ClientId, CurrencyCode, OrderId, OrderKey, fiat_exponent};

/// A payment about to be stored.
#[derive(Clone, Debug)]
pub(crate) struct NewPayment<'a> {
    pub(crate) client: ClientId,
    pub(crate) connector: &'a str,
    /// `None`: it has none of its own, and is never reported twice.
    pub(crate) reference: Option<&'a str>,
    /// The reference of the payment that it gives back or disputes, or of the payout that came back, if
    /// that is another one.
    pub(crate) original: Option<&'a str>,
    /// The transaction on chain that its reporter has named besides.
    pub(crate) transaction: Option<&'a str>,
    pub(crate) kind: PaymentKind,
    pub(crate) amount: Decimal,
    pub(crate) currency: &'a str,
    pub(crate) order: Option<i64>,
    pub(crate) suspense: bool,
    pub(crate) actor: &'a str,
    pub(crate) reason: Option<&'a str>,
    pub(crate) occurred_at: DateTime<Utc>,
}

/// Stores a payment. `None` if its connector has reported this kind under its reference before;
/// two reports at once wait for each other.
pub(crate) async fn store(
    conn: &mut Connection,
    core: &Core,
    payment: &NewPayment<'_>,
) -> Result<Option<Uuid>, sqlx::Error> {
    let id = core.clock.uuid()?;
    let own = id.to_string();
    sqlx::query_scalar!(
        r#"
        insert into payment (client_id, payment_id, connector, provider_reference, kind, amount,
            currency, order_id, suspense, actor, reason, occurred_at, original_reference,
            transaction_id)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
        on conflict (connector, kind, provider_reference) do nothing
        returning payment_id
        "#,
        payment.client.uuid(),
        id,
        payment.connector,
        payment.reference.unwrap_or(&own),
        payment.kind.as_str(),
        payment.amount,
        payment.currency,
        payment.order,
        payment.suspense,
        payment.actor,
        payment.reason,
        payment.occurred_at,
        payment.original,
        payment.transaction,
    )
    .fetch_optional(conn)
    .await
}

/// The connector of what operators report.
pub const MANUAL: &str = "manual";

/// The connector of what an order's change of state reports by itself.
pub(crate) fn connector_of(actor: &str) -> &'static str {
    match actor {
        "sandbox" | "page" => timing::NAME,
        _ => MANUAL,
    }
}

/// The code that the books use for a currency or an asset, and `true` for coins. What the catalogue
/// does not know keeps its own name.
pub fn currency_of(core: &Core, text: &str) -> (String, bool) {
    match known_currency(core, text) {
        Some(currency) => (currency.code().to_string(), currency.crypto.is_some()),
        None => (text.to_owned(), text.contains('/')),
    }
}

/// Refuses an amount that an operator states with more decimals than its currency or asset has: by
/// ISO 4217, or by its chain. An asset that we do not know may have any number.
///
/// # Errors
/// 422.
pub fn check_decimals(core: &Core, amount: Decimal, text: &str) -> Result<(), Denial> {
    let by_iso = || fiat_exponent(text.parse().ok()?);
    let decimals = known_currency(core, text).map(|currency| currency.decimals).or_else(by_iso);
    if decimals.is_some_and(|most| !fits_decimals(amount, most)) {
        return Err(Denial::unprocessable("amount: above zero, in whole smallest units"));
    }
    Ok(())
}

/// The currency or asset that the catalogue knows by this code or CAIP-19 id.
fn known_currency(core: &Core, text: &str) -> Option<Arc<Currency>> {
    let snapshot = core.snapshots.current();
    let catalogue = &snapshot.catalogue;
    let by_id = || catalogue.by_caip19(&text.parse().ok()?);
    let code: Option<CurrencyCode> = text.parse().ok();
    code.and_then(|code| catalogue.currencies.get(&code)).or_else(by_id).cloned()
}

/// Amounts given back of an order, by currency.
pub(crate) async fn refunded(
    conn: &mut Connection,
    key: OrderKey,
) -> Result<Vec<(Decimal, String)>, sqlx::Error> {
    sums(conn, key, &["refunded"]).await
}

/// Amounts that have arrived for an order, wanted or not, by currency.
pub(crate) async fn received(
    conn: &mut Connection,
    key: OrderKey,
) -> Result<Vec<(Decimal, String)>, sqlx::Error> {
    sums(conn, key, &["received", "deposit-received"]).await
}

/// The sums of an order's payments of these kinds, by currency; those that were matched to it
/// included.
async fn sums(
    conn: &mut Connection,
    OrderKey { client, order }: OrderKey,
    kinds: &[&str],
) -> Result<Vec<(Decimal, String)>, sqlx::Error> {
    let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    let rows = sqlx::query!(
        r#"
        select sum(amount) as "amount!", currency as "currency!" from (
            select p.amount, p.currency from payment p
            where p.client_id = $1 and p.order_id = $2 and p.kind = any ($3)
                -- a deposit by hand is the payment that a connector has told of since
                and not (p.connector = $4 and p.kind = 'received' and exists (
                    select from payment_match m
                    join payment o on o.client_id = m.client_id and o.payment_id = m.payment_id
                    where m.to_client_id = $1 and m.order_id = $2 and o.kind = 'received'
                        and o.connector <> $4 and o.provider_reference = p.provider_reference))
                -- a refund by hand is the one that a connector has told of by its name
                and not (p.connector = $4 and p.kind = 'refunded' and exists (
                    select from refunds_named($1, $2, p.provider_reference, p.currency) t
                    where t.connector <> $4))
            union all
            select p.amount, p.currency from payment_match m
            join payment p on p.client_id = m.client_id and p.payment_id = m.payment_id
            where m.to_client_id = $1 and m.order_id = $2 and p.kind = any ($3)
                and (p.client_id, p.order_id) is distinct from ($1::uuid, $2::bigint)
        ) payments
        group by currency order by currency
        "#,
        client.uuid(),
        order.number(),
        &kinds,
        MANUAL,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.amount, row.currency)).collect())
}

/// Holds the book of a client for what has no order: others who decide about that wait until the
/// transaction ends.
pub(crate) async fn hold_book(conn: &mut Connection, client: ClientId) -> Result<(), sqlx::Error> {
    sqlx::query_scalar!(
        "select client_id from client where client_id = $1 for no key update",
        client.uuid()
    )
    .fetch_optional(conn)
    .await?;
    Ok(())
}

fn order_key(client: Option<Uuid>, order: Option<i64>) -> Option<OrderKey> {
    Some(OrderKey { client: client?.into(), order: OrderId::new(order?)? })
}

/// A payment as stored, and what has become of it.
#[derive(Debug)]
pub(crate) struct StoredPayment {
    pub(crate) client: ClientId,
    pub(crate) connector: String,
    pub(crate) reference: String,
    pub(crate) kind: PaymentKind,
    pub(crate) amount: Decimal,
    pub(crate) currency: String,
    /// The order that it names, if its client has such an order: it is booked there.
    pub(crate) order: Option<i64>,
    pub(crate) suspense: bool,
    pub(crate) occurred_at: DateTime<Utc>,
    /// The transaction on chain that its reporter has named.
    pub(crate) transaction: Option<String>,
    /// The order that it was matched to.
    pub(crate) matched: Option<OrderKey>,
    pub(crate) refund_requested: Decimal,
}

impl StoredPayment {
    /// The payment of this id. Other decisions on payments of its client, and reports of its order,
    /// wait until the transaction ends: a payment's own row is never locked, because nobody may change
    /// it.
    pub(crate) async fn hold(conn: &mut Connection, id: Uuid) -> CoreResult<Option<Self>> {
        let named = sqlx::query!(
            "select client_id, connector, provider_reference from payment where payment_id = $1",
            id,
        );
        let Some(named) = named.fetch_optional(&mut *conn).await? else { return Ok(None) };
        let client = Some(named.client_id.into());
        hold_books(conn, client, &named.connector, &named.provider_reference).await?;
        let Some(stored) = Self::find(conn, id).await? else { return Ok(None) };
        let named = order_key(Some(stored.client.uuid()), stored.order);
        for key in named.into_iter().chain(stored.matched) {
            OrderTerms::find(conn, Some(key.client), key.order).await?;
        }
        Ok(Some(stored))
    }

    /// The payment of this id by what is stored now: nothing is locked.
    pub(crate) async fn find(conn: &mut Connection, id: Uuid) -> CoreResult<Option<Self>> {
        let row = sqlx::query!(
            r#"
            select p.client_id, p.connector, p.provider_reference, p.kind, p.amount, p.currency,
                coalesce((select o.order_id from buy_order o
                        where o.client_id = p.client_id and o.order_id = p.order_id),
                    (select o.order_id from sell_order o
                        where o.client_id = p.client_id and o.order_id = p.order_id)) as order_id,
                p.suspense, p.occurred_at, p.transaction_id, m.to_client_id as "to_client_id?",
                m.order_id as "matched_order?",
                (select amount from refund_requested(p.client_id, p.payment_id))
                    as "refund_requested!"
            from payment p
            left join payment_match m on m.client_id = p.client_id and m.payment_id = p.payment_id
            where p.payment_id = $1
            "#,
            id,
        )
        .fetch_optional(conn)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let kind = PaymentKind::from_name(&row.kind);
        Ok(Some(Self {
            client: row.client_id.into(),
            connector: row.connector,
            reference: row.provider_reference,
            kind: kind.ok_or_else(|| Error::invariant("read the kind of a payment"))?,
            amount: row.amount,
            currency: row.currency,
            order: row.order_id,
            suspense: row.suspense,
            occurred_at: row.occurred_at,
            transaction: row.transaction_id,
            matched: order_key(row.to_client_id, row.matched_order),
            refund_requested: row.refund_requested,
        }))
    }

    /// The order that it was matched to, or that it names.
    pub(crate) fn order_key(&self) -> Option<OrderKey> {
        self.matched.or_else(|| order_key(Some(self.client.uuid()), self.order))
    }

    /// The part that the provider has taken back, by reports that name the payment's reference, and has
    /// not returned.
    pub(crate) async fn disputed(&self, conn: &mut Connection) -> Result<Decimal, sqlx::Error> {
        let taken = sqlx::query_scalar!(
            r#"
            select coalesce(sum(d.taken), 0) as "taken!" from disputes_of($1, $2, null, null) d
            where d.is_of_payment and d.currency = $3
            "#,
            self.connector,
            self.reference,
            self.currency,
        )
        .fetch_one(conn)
        .await?;
        Ok(taken.max(Decimal::ZERO))
    }

    /// The part that its connector, or an operator by hand, has reported as refunded, by the payment's
    /// reference, beyond what was set aside for that and the refunds that were requested explain.
    pub(crate) async fn given_back_unasked(
        &self,
        conn: &mut Connection,
    ) -> Result<Decimal, sqlx::Error> {
        let by_hand = self.given_back_by_hand(&mut *conn).await?;
        let by_connector = sqlx::query_scalar!(
            r#"
            select unasked.amount as "given_back!"
            from payment p
            cross join lateral given_back_unasked(p.client_id, p.payment_id) unasked
            where p.connector = $1 and p.kind = $3 and p.provider_reference = $2
            "#,
            self.connector,
            self.reference,
            self.kind.as_str(),
        )
        .fetch_one(conn)
        .await?;
        Ok(by_connector + (by_hand - self.refund_requested).max(Decimal::ZERO))
    }

    /// The part that an operator has reported as refunded by hand, in the payment's book and by its
    /// reference. Of a payment by hand its connector has reported it.
    async fn given_back_by_hand(&self, conn: &mut Connection) -> Result<Decimal, sqlx::Error> {
        let key = self.order_key();
        let given_back = sqlx::query_scalar!(
            r#"
            select b.amount from payment b
            where b.connector = $1 and b.connector <> $2 and b.kind = 'refunded'
                and b.provider_reference = $3 and b.currency = $4 and b.client_id = $5
                and b.order_id is not distinct from $6
            "#,
            MANUAL,
            self.connector,
            self.reference,
            self.currency,
            key.map_or(self.client, |key| key.client).uuid(),
            key.map(|key| key.order.number()),
        )
        .fetch_optional(conn)
        .await?;
        Ok(given_back.unwrap_or_default())
    }

    /// True if its connector, or an operator by hand, has reported a refund of it, by the payment's
    /// reference.
    pub(crate) async fn is_given_back(&self, conn: &mut Connection) -> Result<bool, sqlx::Error> {
        if self.given_back_by_hand(&mut *conn).await? > Decimal::ZERO {
            return Ok(true);
        }
        sqlx::query_scalar!(
            r#"
            select exists (select from payment
                where connector = $1 and kind = 'refunded'
                    and coalesce(original_reference, provider_reference) = $2)
                as "given_back!"
            "#,
            self.connector,
            self.reference,
        )
        .fetch_one(conn)
        .await
    }
}

/// Deletes what was reported of a payment if the user of the order that it is matched to is erased:
/// the erasure could not know it.
///
/// # Errors
/// The database's.
pub(super) async fn forget_erased_payer(
    conn: &mut Connection,
    client: ClientId,
    payment: Uuid,
    to: OrderKey,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"
        with erased as (
            select user_id from erased_user_of($3, $4)
        ), told as (
            update connector_event e set sealed_report = null
            where e.payment_client_id = $1 and e.payment_id = $2
                and exists (select from erased)
        )
        delete from payment_report r
        where r.client_id = $1 and r.payment_id = $2 and exists (select from erased)
        "#,
        client.uuid(),
        payment,
        to.client.uuid(),
        to.order.number(),
    )
    .execute(conn)
    .await?;
    Ok(())
}
