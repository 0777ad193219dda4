//! The timeline's line of a payment that has not changed its order's state.

use super::report::Report;
use super::terms::OrderTerms;
use crate::Core;
use crate::platform::db::Connection;
use crate::trading::quotes::Side;

/// Notes a recorded payment of an order, whose state stays: its kind is the cause, its amount the
/// reason.
pub(super) async fn note(
    conn: &mut Connection,
    core: &Core,
    order: &OrderTerms,
    report: &Report,
    currency: &str,
) -> Result<(), sqlx::Error> {
    let reason = format!("{} {currency}", report.amount.normalize());
    macro_rules! statement {
        ($transition:literal) => {
            sqlx::query!(
                "insert into "
                    + $transition
                    + " (client_id, order_id, transition_id, at, \
                 from_status, to_status, cause, reason, actor) \
                 values ($1, $2, $3, $4, $5, $5, $6, $7, $8)",
                order.key.client.uuid(),
                order.key.order.number(),
                core.clock.uuid()?,
                core.clock.now(),
                order.status.as_str(),
                report.kind.as_str(),
                reason,
                report.actor,
            )
        };
    }
    match order.amounts.side {
        Side::Buy => statement!("order_transition").execute(conn).await?,
        Side::Sell => statement!("sell_order_transition").execute(conn).await?,
    };
    Ok(())
}
