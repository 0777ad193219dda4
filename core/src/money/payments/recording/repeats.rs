//! Payments that operators have booked by hand, and that a connector may report afterwards.

use rampart_types::{OrderId, OrderKey};
use rust_decimal::Decimal;

use super::Recording;
use crate::money::ledger::{Position, Posting, post};
use crate::money::payments::earlier::{Arrived, take_over};
use crate::money::payments::sent::Sent;
use crate::money::payments::store::{MANUAL, forget_erased_payer};
use crate::money::payments::terms::OrderTerms;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::quotes::Side;

impl Recording<'_> {
    /// Matches a payment to the order of its deposit, and moves the deposit's money from where it was
    /// booked by hand to the connector's provider. What was told of the payment before follows it, and
    /// lets the order wait. `false` if the deposit has a payment already, or its money is not there
    /// any more: then this one is in suspense, and an operator decides.
    pub(super) async fn join(&mut self, conn: &mut Connection, deposit: OrderKey) -> Result<bool> {
        let amount = self.report.amount;
        let order = OrderTerms::lock(conn, deposit, Side::Buy).await?;
        let position = Position::of_order(conn, deposit).await?;
        let is_there = |(holder, held): (&str, Decimal)| holder == MANUAL && held >= amount;
        let is_held = position.providers(&self.currency).any(is_there);
        let Some(order) = order.filter(|_| is_held) else { return Ok(false) };
        let matched = sqlx::query!(
            "insert into payment_match (client_id, payment_id, to_client_id, order_id, actor) \
             select $1::uuid, $2::uuid, $3::uuid, $4::bigint, $5::text \
             where not exists ( \
                 select from payment_match m \
                 join payment p on p.client_id = m.client_id and p.payment_id = m.payment_id \
                 where m.to_client_id = $3 and m.order_id = $4 and p.kind = 'received')",
            self.client.uuid(),
            self.payment,
            deposit.client.uuid(),
            deposit.order.number(),
            self.report.actor,
        )
        .execute(&mut *conn)
        .await?;
        if matched.rows_affected() == 0 {
            return Ok(false);
        }
        forget_erased_payer(conn, self.client, self.payment, deposit).await?;
        (self.client, self.order, self.wanted) = (deposit.client, Some(order), true);
        let moved = [self.held(amount), Posting::at(MANUAL, &self.currency, -amount)];
        self.post(conn, &moved).await?;
        let arrived = Arrived::by(self.report, self.payment, deposit);
        take_over(conn, self.core, &arrived).await?;
        self.hold_if_taken_back(conn).await?;
        Ok(true)
    }

    /// The part of a refund that an operator has booked by hand under the same name.
    pub(super) async fn booked_by_hand(
        &self,
        conn: &mut Connection,
    ) -> Result<Decimal, sqlx::Error> {
        let by_hand = sqlx::query_scalar!(
            r#"
            select max(t.amount) filter (where t.connector = $5) as by_hand
            from refunds_named($1, $2, $3, $4) t
            -- beside that of another connector it is that one's
            having count(*) = 2 and bool_or(t.payment_id = $6)
            "#,
            self.client.uuid(),
            self.report.order.map(OrderId::number),
            self.report.provider_reference,
            self.currency,
            MANUAL,
            self.payment,
        )
        .fetch_optional(conn)
        .await?;
        Ok(by_hand.flatten().unwrap_or_default().min(self.report.amount))
    }

    /// Moves a transfer that is booked as sent by hand to the account of the connector that tells of it,
    /// too. Coins have one account, whoever sends them.
    pub(super) async fn move_from_hand(
        &self,
        conn: &mut Connection,
        sent: &Sent,
    ) -> Result<(), sqlx::Error> {
        if self.is_coins {
            return Ok(());
        }
        let amount = sent.moved_from_hand();
        let moved = [Posting::at(MANUAL, &self.currency, amount), self.held(-amount)];
        post(conn, self.core, "moved", &self.subject(), &moved).await
    }

    /// True if this payment in suspense may be the money that an operator has booked for the order: of
    /// the same amount or reference, and no earlier one in suspense may be it. The order's row is locked.
    pub(super) async fn may_repeat(&self, conn: &mut Connection) -> Result<bool, sqlx::Error> {
        let Some(order) = self.order.as_ref().filter(|_| self.report.connector != MANUAL) else {
            return Ok(false);
        };
        sqlx::query_scalar!(
            r#"
            select count(*) filter (where p.connector = $3 and not p.suspense)
                > count(*) filter (where p.connector <> $3 and p.suspense) as "may_repeat!"
            from payment p
            where p.client_id = $1 and p.order_id = $2 and p.payment_id <> $4
                and p.kind = $5 and p.currency = $6
                and (p.amount = $7 or p.provider_reference = $8)
            "#,
            order.key.client.uuid(),
            order.key.order.number(),
            MANUAL,
            self.payment,
            self.report.kind.as_str(),
            self.currency,
            self.report.amount,
            self.report.provider_reference,
        )
        .fetch_one(conn)
        .await
    }
}
