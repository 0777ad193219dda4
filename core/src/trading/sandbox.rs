//! The sandbox's model: a test tenant's order proceeds by itself, as a live one does on the reports
//! of the payment provider and the chain.
//!
//! [`schedule`] writes the next step in the transaction of the one before, so that a settlement
//! neither stops nor runs twice when an edge dies. `scenario` has the magic values that give an
//! order another path. Every step goes through the same state machine as an operator's event.

pub(crate) mod deposit_address;
mod scenario;
mod simulated_event;

use chrono::{DateTime, TimeDelta, Utc};
use rust_decimal::Decimal;

pub(crate) use self::scenario::{Scenario, next};
pub use self::simulated_event::SimulatedEvent;
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::db::Connection;
use crate::trading::orders::state::Cause;
use rampart_types::{ClientId, OrderId};

/// Time between two steps.
pub(crate) fn step_interval(core: &Core) -> TimeDelta {
    TimeDelta::milliseconds(core.settings.sandbox.step_ms.into())
}

/// The first step of an order that is confirmed `now`, and the time when it is due. Only a test
/// tenant's order with a magic value has one; the confirm stores it.
pub(crate) fn first_step(
    core: &Core,
    client: &Client,
    (reference, fiat): (Option<&str>, Decimal),
    now: DateTime<Utc>,
) -> Option<(SimulatedEvent, DateTime<Utc>)> {
    let scenario = Scenario::detect(reference, fiat).filter(|_| client.tenant.is_test())?;
    Some((next(Some(scenario), Cause::Confirmed, false)?, now + step_interval(core)))
}

/// Schedules the next step of an order after an event at `now`, and replaces the one scheduled
/// before; `None` removes it. Does nothing for live tenants, nor for orders
/// that connectors settle.
///
/// # Errors
/// The database's.
pub(crate) async fn schedule(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    order: OrderId,
    (step, now): (Option<SimulatedEvent>, DateTime<Utc>),
) -> Result<(), sqlx::Error> {
    let Some(step) = step else {
        sqlx::query!(
            "delete from sandbox_step where client_id = $1 and order_id = $2",
            client.uuid(),
            order.number(),
        )
        .execute(conn)
        .await?;
        return Ok(());
    };
    sqlx::query!(
        r#"
        insert into sandbox_step (client_id, order_id, event, due_at)
        select client_id, $2, $3, $4 from client where client_id = $1 and mode = 'test'
            and not exists (select from command where client_id = $1 and order_id = $2)
        on conflict (client_id, order_id)
            do update set event = excluded.event, due_at = excluded.due_at, leased_until = null
        "#,
        client.uuid(),
        order.number(),
        step.as_str(),
        now + step_interval(core),
    )
    .execute(conn)
    .await?;
    Ok(())
}
