//! Payouts that did not leave, or that came back.

use rust_decimal::Decimal;

use super::Recording;
use crate::money::connectors::payouts::end_payout;
use crate::money::ledger::AccountKind::{PayoutPayable, Suspense};
use crate::money::payments::return_fees::{fee_account, return_fee};
use crate::money::payments::sent::Sent;
use crate::money::payments::terms::OrderTerms;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::orders::state::OrderStatus;
use crate::trading::quotes::Side;

impl Recording<'_> {
    /// The payout did not leave, or came back: the order waits for an operator.
    pub(super) async fn fail(&mut self, conn: &mut Connection) -> Result<()> {
        let Some(order) = self.order.clone() else {
            let amount = self.report.amount;
            return self.post(conn, &[self.held(amount), self.line(Suspense, -amount)]).await;
        };
        let waits = matches!(order.status, OrderStatus::InProgress | OrderStatus::Blocked);
        let sent = Sent::of(conn, order.key, &self.currency, self.payment).await?;
        self.move_from_hand(conn, &sent).await?;
        let mut reason = "the payout failed";
        if sent.has_moved() {
            let owed_again = self.take_back(conn, &order).await?;
            // It has what it pays out all the same, or is over.
            if !waits || owed_again.is_zero() {
                return Ok(());
            }
            if owed_again < order.amounts.payout().0 {
                reason = "a part of the payout came back";
            }
        }
        if self.currency != order.amounts.payout().1 {
            return Ok(());
        }
        // It may be sent again, whoever reports that it failed, unless it was sent since.
        let is_owed =
            self.position(conn).await?.owed(PayoutPayable, &self.currency) > Decimal::ZERO;
        if is_owed {
            end_payout(conn, order.key).await?;
        }
        if is_owed && order.amounts.side == Side::Buy {
            sqlx::query!(
                "update buy_order set transaction_id = null \
                 where client_id = $1 and order_id = $2 and status in ('in progress', 'blocked')",
                order.key.client.uuid(),
                order.key.order.number(),
            )
            .execute(&mut *conn)
            .await?;
        }
        let reason = self.report.reason.clone().unwrap_or_else(|| reason.to_owned());
        self.hold(conn, Some(reason)).await
    }

    /// Books a payout that came back: first what had left beyond what was owed, last what was kept
    /// of it and is a fee since its order's refund. What is owed again of it is the answer.
    async fn take_back(&self, conn: &mut Connection, order: &OrderTerms) -> Result<Decimal> {
        let position = self.position(conn).await?;
        let (payout, gets) = order.amounts.payout();
        let amount = self.report.amount;
        let waits = matches!(order.status, OrderStatus::InProgress | OrderStatus::Blocked);
        let is_owed = waits && position.is_executed(&order.amounts.crypto_currency);
        let excess = position.sum(Suspense, &self.currency).max(Decimal::ZERO);
        let beyond = (amount - excess).max(Decimal::ZERO);
        let owed_again = if is_owed && self.currency == gets {
            beyond.min(payout - position.owed(PayoutPayable, gets))
        } else {
            Decimal::ZERO
        };
        let fee = return_fee(conn, order, &self.currency).await?.min(beyond - owed_again);
        let postings = [
            self.held(amount),
            self.line(PayoutPayable, -owed_again),
            self.line(fee_account(order.amounts.side), -fee),
            self.line(Suspense, owed_again + fee - amount),
        ];
        self.post(conn, &postings).await?;
        Ok(owed_again)
    }
}
