//! Disputes: the provider takes a payment back, before or after it has told of the payment itself.

use super::Recording;
use crate::money::ledger::AccountKind::Dispute;
use crate::money::payments::refund_withdrawals::withdraw_disputed;
use crate::notify::events::EventType;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::orders::status::OrderEvent;
use crate::trading::quotes::Side;

/// The reason that partners are told of an order whose payment is disputed.
const DISPUTED: &str = "the payment is disputed";

impl Recording<'_> {
    /// The provider took the payment back. Coins that have left are lost; others stay.
    ///
    /// # Errors
    /// The database's.
    pub(super) async fn dispute(&mut self, conn: &mut Connection) -> Result<()> {
        let amount = self.report.amount;
        self.post(conn, &[self.line(Dispute, amount), self.held(-amount)]).await?;
        // Its provider has taken it back: it is not given back by command as well.
        withdraw_disputed(conn, self.core, self.report).await?;
        if self.order.is_none() {
            return Ok(());
        }
        self.tell(conn, EventType::OrderDisputed).await?;
        match self.order.as_ref().map(|order| order.amounts.side) {
            Some(Side::Buy) => self.hold(conn).await,
            _ => Ok(()),
        }
    }

    /// Lets the purchase that this payment has paid wait if a dispute of either was told before it, and
    /// is not won: the payout that it was to have is taken back.
    ///
    /// # Errors
    /// The database's.
    pub(super) async fn hold_if_disputed(&mut self, conn: &mut Connection) -> Result<()> {
        let Some(order) = &self.order else { return Ok(()) };
        let is_disputed = sqlx::query_scalar!(
            r#"
            select exists (select 1 from disputes_of($1, $2, $3, $4) d
                where d.is_of_payment or d.is_of_order
                group by d.currency having sum(d.taken) > 0) as "disputed!"
            "#,
            self.report.connector,
            self.report.provider_reference,
            order.client.uuid(),
            order.order.number(),
        )
        .fetch_one(&mut *conn)
        .await?;
        match is_disputed {
            true => self.hold(conn).await,
            false => Ok(()),
        }
    }

    async fn hold(&mut self, conn: &mut Connection) -> Result<()> {
        let reason = Some(DISPUTED.to_owned());
        self.apply(conn, OrderEvent::Hold { reason }).await
    }
}
