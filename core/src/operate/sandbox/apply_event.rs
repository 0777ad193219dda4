//! Applies a simulated event to a test order.

use chrono::TimeDelta;

use super::{ACTOR, transaction_id};
use crate::Core;
use crate::platform::error::{Error, Result};
use crate::trading::orders::status::{Applied, NotApplied, OrderEvent, apply};
use crate::trading::sandbox::SimulatedEvent;
use rampart_types::{ClientId, OrderId};

/// Applies `simulated` to an order of `client`, as the sandbox.
///
/// # Errors
/// As [`apply`].
pub(in crate::operate) async fn apply_event(
    core: &Core,
    client: ClientId,
    order: OrderId,
    simulated: SimulatedEvent,
) -> Result<Applied, NotApplied> {
    if simulated == SimulatedEvent::Expire {
        make_overdue(core, client, order).await?;
    }
    let event = match simulated {
        SimulatedEvent::PaymentReceived => {
            OrderEvent::PaymentReceived { amount: None, reference: None }
        }
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
    apply(core, client, order, &event, ACTOR).await
}

/// Makes a pending order overdue in the database, so that every edge's expiry sweep agrees.
async fn make_overdue(core: &Core, client: ClientId, order: OrderId) -> Result<()> {
    sqlx::query!(
        "update buy_order set expires_at = $3 \
         where client_id = $1 and order_id = $2 and status = 'pending'",
        client.uuid(),
        order.number(),
        core.clock.now() - TimeDelta::milliseconds(1),
    )
    .execute(&core.db)
    .await?;
    Ok(())
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
    let twice = twice.ok_or_else(|| Error::broken("double an order's amount"))?;
    Ok(OrderEvent::PaymentReceived { amount: Some(twice), reference: None })
}
