//! The sandbox (section 10 of the contract): a test client's order that is paid goes on by itself,
//! as a live one does by what the payment provider and the chain report.
//!
//! - [`follow`] writes the step that comes next in the transaction of the step before, so that a
//!   settlement neither stops nor doubles when an edge dies; [`settle`] takes it when it is due
//! - `scenario`: magic values that give an order another path, listed by [`scenarios`]
//! - [`order_event`], [`sell_order_event`]: what a partner makes happen; `happening`: what can
//! - [`signature`]: why a signature does not fit
//!
//! Everything goes through the same state machine as an operator's event: what happens to the
//! order in between wins.

pub(crate) mod deposit_address;
mod happening;
pub mod order_event;
mod scenario;
pub mod scenarios;
pub mod sell_order_event;
pub mod settle;
pub mod signature;

use chrono::{DateTime, TimeDelta, Utc};
use rust_decimal::Decimal;
use sqlx::PgConnection;

pub use self::happening::Happening;
pub(crate) use self::scenario::{Scenario, next};
use crate::Core;
use crate::caller::Client;
use crate::clock::{Clock, NoEntropy};
use crate::error::{Code, Result};
use crate::orders::status::Cause;
use crate::types::{ClientId, OrderId};

/// Bytes of a Bitcoin transaction's id, whose form the simulated ones have.
const TRANSACTION_ID_BYTES: usize = 32;
/// Who did it, in the order's timeline.
const ACTOR: &str = "sandbox";

/// An id that no transaction of a chain has.
fn transaction_id(clock: &Clock) -> Result<String, NoEntropy> {
    Ok(hex::encode(clock.random_bytes::<TRANSACTION_ID_BYTES>()?))
}

/// For a live client there is no such route.
fn only_for_tests(client: &Client) -> Result<()> {
    if client.tenant.is_test() { Ok(()) } else { Err(Code::ER998.into()) }
}

/// The time between two steps.
pub(crate) fn pause(core: &Core) -> TimeDelta {
    TimeDelta::milliseconds(core.settings.sandbox.step_ms.into())
}

/// What happens by itself to an order as it is confirmed `now`, and when. Only a test client's
/// order with a magic value has such a step; confirm stores it (`orders/confirm/placing.rs`).
pub(crate) fn first_step(
    core: &Core,
    client: &Client,
    (reference, fiat): (Option<&str>, Decimal),
    now: DateTime<Utc>,
) -> Option<(Happening, DateTime<Utc>)> {
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
    (step, now): (Option<Happening>, DateTime<Utc>),
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
