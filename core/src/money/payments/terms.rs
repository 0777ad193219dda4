//! The amounts and the state of an order that a payment is for.

use rust_decimal::Decimal;

use super::report::PaymentKind;
use crate::money::ledger::entries::OrderAmounts;
use crate::platform::db::Connection;
use crate::trading::orders::row::fees_of_row;
use crate::trading::orders::state::OrderStatus;
use crate::trading::pricing::FeeRules;
use crate::trading::quotes::Side;
use rampart_types::{ClientId, OrderId, OrderKey, PairCode};

/// An order of either side, as its row has it.
#[derive(Clone, Debug)]
pub(crate) struct OrderTerms {
    pub(crate) key: OrderKey,
    pub(crate) status: OrderStatus,
    pub(crate) pair: PairCode,
    pub(crate) payment_method: String,
    pub(crate) partner_reference: Option<String>,
    pub(crate) is_estimated: bool,
    pub(crate) amounts: OrderAmounts,
    /// `None` if it is of an edge that kept none.
    pub(crate) fee_rules: Option<FeeRules>,
}

struct Row {
    status: OrderStatus,
    pair: PairCode,
    payment_method: String,
    partner_reference: Option<String>,
    is_estimated: bool,
    fiat_amount: Decimal,
    fiat_currency: String,
    crypto_amount: Decimal,
    crypto_currency: String,
    price: Decimal,
    partner_fee: Decimal,
    provider_fee: Decimal,
    payment_method_fee: Decimal,
    network_fee: Decimal,
    spread_fee: Decimal,
    affiliate_fee: Decimal,
    fee_rules: Option<Vec<u8>>,
}

/// A statement that locks an order's row, by its table and the columns that the two do not share.
macro_rules! lock_row {
    ($table:literal, $estimated:literal, $key:expr) => {
        sqlx::query_as!(
            Row,
            "select status as \"status: OrderStatus\", pair as \"pair: PairCode\", \
             payment_method, partner_reference, " + $estimated + " as \"is_estimated!\", \
             fiat_amount, fiat_currency, crypto_amount, \
             crypto_currency, price, partner_fee, provider_fee, payment_method_fee, network_fee, \
             spread_fee, affiliate_fee, fee_rules from " + $table + " \
             where client_id = $1 and order_id = $2 for update",
            $key.client.uuid(),
            $key.order.number(),
        )
    };
}

impl OrderTerms {
    /// Reads an order of this side and locks its row until the transaction ends.
    pub(crate) async fn lock(
        conn: &mut Connection,
        key: OrderKey,
        side: Side,
    ) -> Result<Option<Self>, sqlx::Error> {
        let row = match side {
            Side::Buy => {
                lock_row!("buy_order", "is_estimated_quote", key).fetch_optional(conn).await?
            }
            Side::Sell => lock_row!("sell_order", "false", key).fetch_optional(conn).await?,
        };
        let Some(row) = row else { return Ok(None) };
        Ok(Some(Self {
            key,
            status: row.status,
            pair: row.pair,
            payment_method: row.payment_method,
            partner_reference: row.partner_reference,
            is_estimated: row.is_estimated,
            amounts: OrderAmounts {
                side,
                fiat: row.fiat_amount,
                fiat_currency: row.fiat_currency,
                crypto: row.crypto_amount,
                crypto_currency: row.crypto_currency,
                price: row.price,
                fees: fees_of_row!(row),
            },
            fee_rules: row.fee_rules.map(FeeRules::from),
        }))
    }

    /// The order of this number, whoever's it is, or of one client; locks its row.
    pub(crate) async fn find(
        conn: &mut Connection,
        client: Option<ClientId>,
        order: OrderId,
    ) -> Result<Option<Self>, sqlx::Error> {
        let rows = sqlx::query!(
            r#"
            select client_id as "client_id!", false as "sold!" from buy_order
            where order_id = $1 and ($2::uuid is null or client_id = $2)
            union all
            select client_id as "client_id!", true as "sold!" from sell_order
            where order_id = $1 and ($2::uuid is null or client_id = $2)
            limit 2
            "#,
            order.number(),
            client.map(ClientId::uuid),
        )
        .fetch_all(&mut *conn)
        .await?;
        // Of two orders with one number, neither is meant for sure.
        let [row] = &rows[..] else { return Ok(None) };
        let side = if row.sold { Side::Sell } else { Side::Buy };
        Self::lock(conn, OrderKey { client: row.client_id.into(), order }, side).await
    }

    /// True if it waits for just this: money for a purchase, coins for a sale.
    pub(super) fn wants(&self, kind: PaymentKind, currency: &str) -> bool {
        let due = match self.amounts.side {
            Side::Buy => PaymentKind::Received,
            Side::Sell => PaymentKind::DepositReceived,
        };
        self.status == OrderStatus::Pending && kind == due && self.amounts.paid().1 == currency
    }
}
