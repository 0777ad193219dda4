//! Orders of both sides, and offers.

pub mod events;
pub mod offers;
pub mod read;
pub mod replay;
pub mod search;
pub mod wallet_proof;

use rust_decimal::Decimal;
use serde_json::Value;

use crate::Core;
use crate::endpoint::openapi::doc::{Kind, Member, required};
use crate::money::ledger::{AccountKind, Position};
use crate::money::payments::refund_sums::refunds_of_order;
use crate::money::payments::store::check_decimals;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use crate::trading::quotes::Side;
use rampart_types::{OrderId, OrderKey};

/// The path's `{id}`.
const ID: Member = required("id", Kind::Text, "The order's number.");

/// An order with its side, which its number does not tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundOrder {
    pub(super) key: OrderKey,
    pub(super) side: Side,
}

impl FoundOrder {
    /// The order of this number: it is unique within a client, and in practice overall.
    ///
    /// # Errors
    /// 404 when there is none, 409 when there are several.
    async fn find(core: &Core, id: &str) -> Result<Self> {
        let order: OrderId = id.parse().map_err(|_| Denial::not_found("order"))?;
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
                Ok(Self { key: OrderKey { client: row.client_id.into(), order }, side })
            }
            [] => Err(Denial::not_found("order").into()),
            _ => Err(Denial::conflict("several orders have this id").into()),
        }
    }

    /// The order's worth in its fiat currency: its fiat amount, or at its own price what was paid
    /// for it or is owed to its payer, whichever is more. An event that gives the rest of it back
    /// counts with what operators have given back of it before.
    async fn worth(
        self,
        conn: &mut Connection,
        paid: Option<Decimal>,
        gives_back: bool,
    ) -> Result<Decimal> {
        let OrderKey { client, order } = self.key;
        let row = sqlx::query!(
            r#"
            select fiat_amount as "fiat!", fiat_amount as "due!", fiat_currency as "currency!",
                crypto_currency as "crypto!"
            from buy_order where client_id = $1 and order_id = $2 and not $3
            union all
            select fiat_amount as "fiat!", crypto_amount as "due!", crypto_currency as "currency!",
                crypto_currency as "crypto!"
            from sell_order where client_id = $1 and order_id = $2 and $3
            "#,
            client.uuid(),
            order.number(),
            self.side == Side::Sell,
        )
        .fetch_one(&mut *conn)
        .await?;
        let position = Position::of_order(&mut *conn, self.key).await?;
        let mut of_customer = position.owed(AccountKind::Customer, &row.currency);
        let owed = of_customer + position.owed(AccountKind::RefundPayable, &row.currency);
        let mut paid = paid.unwrap_or_default().max(owed);
        if gives_back && position.is_executed(&row.crypto) {
            // The exchange is undone first.
            of_customer += row.due;
        }
        // Where its customer is owed nothing, no more is given back than was decided on.
        if gives_back && of_customer > Decimal::ZERO {
            let given_back = refunds_of_order(conn, order.number(), &row.currency).await?;
            paid = paid.max(of_customer + given_back);
        }
        let worth = row.fiat.checked_mul(paid).and_then(|product| product.checked_div(row.due));
        Ok(worth.unwrap_or(Decimal::MAX).max(row.fiat))
    }

    /// Refuses an amount paid for the order that has more decimals than its currency.
    ///
    /// # Errors
    /// 422 for such an amount; when the database cannot be read.
    async fn check_paid(self, core: &Core, amount: Decimal) -> Result<()> {
        let row = self.row(core).await?;
        let member = match self.side {
            Side::Buy => "fiat_currency",
            Side::Sell => "crypto_currency",
        };
        check_decimals(core, amount, row[member].as_str().unwrap_or_default())?;
        Ok(())
    }

    /// The order's row.
    async fn row(self, core: &Core) -> Result<Value, sqlx::Error> {
        let (client, order) = (self.key.client.uuid(), self.key.order.number());
        match self.side {
            Side::Buy => {
                sqlx::query_scalar!(
                    r#"
                    select to_jsonb(o) - 'terms_digest' - 'fee_rules' - 'client_id' as "order!"
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
                    select to_jsonb(o) - 'terms_digest' - 'fee_rules' - 'client_id' as "order!"
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
}
