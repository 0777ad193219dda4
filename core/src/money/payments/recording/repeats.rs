//! Payments that operators have booked by hand, and that a connector may report afterwards.

use super::Recording;
use crate::money::payments::store::MANUAL;
use crate::platform::db::Connection;

impl Recording<'_> {
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
