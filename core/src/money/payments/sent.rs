//! The payouts of an order, by the reports of them.

use super::terms::OrderTerms;
use crate::Core;
use crate::money::ledger::AccountKind::PayoutPayable;
use crate::money::ledger::Position;
use crate::platform::db::Connection;
use crate::trading::orders::state::OrderStatus;
use crate::trading::orders::status::{Applied, NotApplied, OrderEvent, apply_recorded};
use crate::trading::quotes::Side;
use rampart_types::{ClientId, OrderId};

/// Counts of an order's payouts by the reports of their begins and of their ends, the report at hand
/// included, and of those that have come back before.
pub(super) struct Sent {
    begun: i64,
    ended: i64,
    returned: i64,
}

impl Sent {
    /// Counts them.
    ///
    /// # Errors
    /// The database's.
    pub(super) async fn of(conn: &mut Connection, order: &OrderTerms) -> Result<Self, sqlx::Error> {
        sqlx::query_as!(
            Self,
            r#"
            select
                count(*) filter (where kind in ('payout-sent', 'transfer-sent')) as "begun!",
                count(*) filter (where kind in ('payout-confirmed', 'transfer-completed'))
                    as "ended!",
                (select count(*) from ledger_entry where client_id = $1 and order_id = $2
                    and kind in ('payout-failed', 'transfer-returned', 'payout-returned')) as "returned!"
            from payment where client_id = $1 and order_id = $2
            "#,
            order.client.uuid(),
            order.order.number(),
        )
        .fetch_one(conn)
        .await
    }

    /// True if the report at hand, a begin or an end, is of a payout that no other one tells of.
    pub(super) const fn tells_of_another(&self, is_end: bool) -> bool {
        let begun = self.begun - self.returned;
        if is_end { self.ended > begun } else { begun > self.ended }
    }

    /// True if a payout is with its recipient, as far as anybody knows.
    pub(super) const fn is_out(&self) -> bool {
        self.begun > self.returned || self.ended > self.returned
    }

    /// True if the order is exchanged, and all that it pays out has arrived at its recipient.
    ///
    /// # Errors
    /// The database's.
    pub(super) async fn has_arrived(
        conn: &mut Connection,
        order: &OrderTerms,
    ) -> Result<bool, sqlx::Error> {
        let (_, currency) = order.amounts.payout();
        let position = Position::of(&mut *conn, order.client, Some(order.order.number())).await?;
        if !position.is_executed(&order.amounts.crypto_currency)
            || !position.sum(PayoutPayable, currency).is_zero()
        {
            return Ok(false);
        }
        let sent = Self::of(conn, order).await?;
        Ok(sent.ended > sent.returned)
    }
}

/// Completes a purchase that goes on after its coins have arrived: their report came while it was
/// not paid, or waited.
///
/// # Errors
/// As an event's; an order that cannot be completed stays as it is.
pub(crate) async fn catch_up(
    conn: &mut Connection,
    core: &Core,
    (client, order): (ClientId, OrderId),
    actor: &str,
) -> Result<Option<Applied>, NotApplied> {
    let failed = |error: sqlx::Error| NotApplied::Failed(error.into());
    let terms = OrderTerms::lock(conn, (client, order, Side::Buy)).await.map_err(failed)?;
    let Some(terms) = terms else { return Ok(None) };
    if terms.status != OrderStatus::InProgress
        || !Sent::has_arrived(conn, &terms).await.map_err(failed)?
    {
        return Ok(None);
    }
    let report = sqlx::query_scalar!(
        "select payment_id from payment \
         where client_id = $1 and order_id = $2 and kind = 'payout-confirmed' \
         order by recorded_at desc, payment_id desc limit 1",
        client.uuid(),
        order.number(),
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(failed)?;
    let Some(payment) = report else { return Ok(None) };
    let event = OrderEvent::ConfirmedOnChain;
    Box::pin(apply_recorded(conn, core, (client, order, payment), &event, actor)).await.map(Some)
}
