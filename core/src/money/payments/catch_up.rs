//! Orders whose payout had arrived before they could be completed.

use super::sent::{Sent, name_transaction};
use super::terms::OrderTerms;
use crate::Core;
use crate::platform::db::Connection;
use crate::trading::orders::state::OrderStatus;
use crate::trading::orders::status::{Applied, NotApplied, OrderEvent, apply_recorded};
use crate::trading::quotes::Side;
use crate::trading::sell::status::SaleEvent;
use rampart_types::OrderKey;

/// Completes an order that goes on after all of it has arrived: the report came while it was not
/// paid, or waited.
///
/// # Errors
/// As an event's; an order that cannot be completed stays as it is.
pub(crate) async fn catch_up(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
    side: Side,
    actor: &str,
) -> Result<Option<Applied>, NotApplied> {
    let terms = OrderTerms::lock(conn, key, side).await?;
    let Some(terms) = terms else { return Ok(None) };
    if terms.status != OrderStatus::InProgress || !Sent::has_arrived(conn, &terms).await? {
        return Ok(None);
    }
    let report = sqlx::query_scalar!(
        "select payment_id from payment \
         where client_id = $1 and order_id = $2 \
             and kind in ('payout-confirmed', 'transfer-completed') \
         order by recorded_at desc, payment_id desc limit 1",
        key.client.uuid(),
        key.order.number(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(payment) = report else { return Ok(None) };
    let applied = match side {
        Side::Buy => {
            let (_, currency) = terms.amounts.payout();
            name_transaction(conn, key, currency).await?;
            let arrived = OrderEvent::ConfirmedOnChain;
            Box::pin(apply_recorded(conn, core, key, payment, &arrived, actor)).await
        }
        Side::Sell => {
            let paid_out = SaleEvent::PaidOut;
            Box::pin(apply_recorded(conn, core, key, payment, &paid_out, actor)).await
        }
    };
    applied.map(Some)
}
