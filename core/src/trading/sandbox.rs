//! The sandbox's model: a test client's order goes on by itself, as a live one does by the reports of
//! the payment provider and the chain.
//!
//! [`follow`] writes the next step in the transaction of the step before, so that a settlement
//! neither stops nor doubles when an edge dies. `scenario`: magic values that give an order another
//! path. Everything goes through the same state machine as an operator's event.

pub(crate) mod deposit_address;
mod scenario;
mod simulated_event;

use chrono::{DateTime, TimeDelta, Utc};
use rust_decimal::Decimal;
use sqlx::PgConnection;

pub(crate) use self::scenario::{Scenario, next};
pub use self::simulated_event::SimulatedEvent;
use crate::Core;
use crate::auth::caller::Client;
use crate::trading::orders::state::Cause;
use rampart_types::{ClientId, OrderId};

/// The time between two steps.
pub(crate) fn pause(core: &Core) -> TimeDelta {
    TimeDelta::milliseconds(core.settings.sandbox.step_ms.into())
}

/// What happens by itself to an order as it is confirmed `now`, and when. Only a test client's
/// order with a magic value has such a step; confirm stores it (`trading/orders/insert.rs`).
pub(crate) fn first_step(
    core: &Core,
    client: &Client,
    (reference, fiat): (Option<&str>, Decimal),
    now: DateTime<Utc>,
) -> Option<(SimulatedEvent, DateTime<Utc>)> {
    let scenario = Scenario::of(reference, fiat).filter(|_| client.tenant.is_test())?;
    Some((next(Some(scenario), Cause::Confirmed, false)?, now + pause(core)))
}

/// `step` follows by itself on what happens `now`, in the place of what was to follow before;
/// `None`: nothing does any more. Nothing follows for live clients.
///
/// # Errors
/// The database's.
pub(crate) async fn follow(
    conn: &mut PgConnection,
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
        on conflict (client_id, order_id)
            do update set event = excluded.event, due_at = excluded.due_at, leased_until = null
        "#,
        client.uuid(),
        order.number(),
        step.as_str(),
        now + pause(core),
    )
    .execute(conn)
    .await?;
    Ok(())
}
