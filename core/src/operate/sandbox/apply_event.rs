//! Applies a simulated event to a test order.

use super::{ACTOR, transaction_id};
use crate::Core;
use crate::platform::error::{Error, Result};
use crate::trading::orders::status::{Applied, NotApplied, OrderEvent, apply, apply_in};
use crate::trading::sandbox::SimulatedEvent;
use rampart_types::{ClientId, OrderId};

/// Applies `simulated` to an order of `client`, as the sandbox.
///
/// # Errors
/// As [`apply_in`].
pub(in crate::operate) async fn apply_event(
    core: &Core,
    client: ClientId,
    order: OrderId,
    simulated: SimulatedEvent,
) -> Result<Applied, NotApplied> {
    let exact = || OrderEvent::PaymentReceived { amount: None, reference: None };
    let event = match simulated {
        SimulatedEvent::PaymentReceived | SimulatedEvent::PaymentLate => exact(),
        SimulatedEvent::PaymentAmountWrong => double_payment(core, client, order).await?,
        SimulatedEvent::PaymentDenied => OrderEvent::PaymentDenied { reason: None },
        SimulatedEvent::Expire => OrderEvent::Expire,
        SimulatedEvent::Cancel => OrderEvent::Cancel { reason: None },
        SimulatedEvent::CoinsSent => {
            OrderEvent::CoinsSent { transaction_id: transaction_id(&core.clock)? }
        }
        SimulatedEvent::ConfirmedOnChain => OrderEvent::ConfirmedOnChain,
        SimulatedEvent::Hold => OrderEvent::Hold { reason: None },
        SimulatedEvent::Release => OrderEvent::Release,
        SimulatedEvent::Refund => OrderEvent::Refund { reason: None },
    };
    if matches!(simulated, SimulatedEvent::Expire | SimulatedEvent::PaymentLate) {
        return apply_overdue(core, client, order, &event).await;
    }
    apply(core, client, order, &event, ACTOR).await
}

/// Makes a pending order overdue and applies an event to it, in one transaction, so that no sweep
/// comes between.
async fn apply_overdue(
    core: &Core,
    client: ClientId,
    order: OrderId,
    event: &OrderEvent,
) -> Result<Applied, NotApplied> {
    let mut tx = core.db.begin().await.map_err(Error::from)?;
    sqlx::query!(
        "update buy_order set expires_at = rampart_now() - interval '1 millisecond' \
         where client_id = $1 and order_id = $2 and status = 'pending'",
        client.uuid(),
        order.number(),
    )
    .execute(&mut *tx)
    .await
    .map_err(Error::from)?;
    let applied = apply_in(&mut tx, core, client, order, event, ACTOR).await?;
    tx.commit().await.map_err(Error::from)?;
    core.metrics.orders.with_label_values(&[applied.cause.as_str()]).inc();
    Ok(applied)
}

async fn double_payment(
    core: &Core,
    client: ClientId,
    order: OrderId,
) -> Result<OrderEvent, NotApplied> {
    let amount = sqlx::query_scalar!(
        "select fiat_amount from buy_order where client_id = $1 and order_id = $2",
        client.uuid(),
        order.number(),
    )
    .fetch_optional(&core.db)
    .await
    .map_err(Error::from)?
    .ok_or(NotApplied::NoSuchOrder)?;
    let twice = amount.checked_add(amount);
    let twice = twice.ok_or_else(|| Error::invariant("double an order's amount"))?;
    Ok(OrderEvent::PaymentReceived { amount: Some(twice), reference: None })
}
