//! Reports that came before the event that they follow: a payout that had arrived, a payment that was
//! given back.

use super::earlier::taken_back;
use super::sent::{Sent, name_transaction};
use super::store::MANUAL;
use super::terms::OrderTerms;
use crate::Core;
use crate::platform::db::Connection;
use crate::trading::orders::state::OrderStatus;
use crate::trading::orders::status::{Applied, NotApplied, OrderEvent, apply_in, apply_recorded};
use crate::trading::quotes::Side;
use crate::trading::sell::status::SaleEvent;
use rampart_types::OrderKey;

/// Completes an order that goes on after all of it has arrived: the report came while it was not
/// paid, or waited.
///
/// # Errors
/// As an event's; an order that cannot be completed stays as it is.
pub async fn catch_up(
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

/// Lets a purchase that an operator's event has paid wait, as a connector's event does, if an
/// earlier report of that payment says that it is gone.
///
/// # Errors
/// As an event's.
pub async fn hold_if_taken_back(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
    reference: &str,
    actor: &str,
) -> Result<Option<Applied>, NotApplied> {
    let terms = OrderTerms::lock(conn, key, Side::Buy).await?;
    let Some(terms) = terms else { return Ok(None) };
    let (_, currency) = terms.amounts.paid();
    let Some(reason) = taken_back(conn, MANUAL, reference, key, currency).await? else {
        return Ok(None);
    };
    let hold = OrderEvent::Hold { reason: Some(reason.to_owned()) };
    Box::pin(apply_in(conn, core, key, &hold, actor)).await.map(Some)
}
