//! The sandbox: the connector of test clients, which runs inside.
//!
//! Commands are for it where a live client's are for the connector of a route. Its worker leases them
//! by the statement of `POST /connectors/v1/commands/lease` and answers by what results and events of
//! other connectors go through, so orders of test clients follow the same code. Magic values decide
//! (`trading::sandbox`).
//!
//! - [`timing`]: when a command is due
//! - [`worker`]: leases, answers, and reports what follows
//! - [`purchases`], [`sales`]: what happens to a bought or sold order, simulated for a partner or by a
//!   magic value
//! - [`checks`]: its answers about cards and accounts, and identity checks; [`magic`]: about screenings

pub mod checks;
pub(crate) mod magic;
pub mod purchases;
pub mod sales;
pub mod timing;
pub(crate) mod worker;

use chrono::SecondsFormat;
use rampart_types::{ClientId, OrderKey};
use serde_json::{Value, json};
use uuid::Uuid;

pub use self::timing::NAME;
use super::commands::CommandKind;
use super::events::{Report, Reporter, Stored, take_in};
use super::lease::{Leased, NewLease, lease_one};
use super::result::{NewResult, Outcome, Settled, settle};
use crate::Core;
use crate::platform::clock::{Clock, NoEntropy};
use crate::platform::db::{Connection, Transaction};
use crate::platform::error::{Error, Result};
use crate::trading::orders::state::Cause;
use crate::trading::orders::status::{Event, NotApplied, apply_in};

/// Time of a lease, in seconds; an edge that dies delays an order by this.
const LEASE_SECONDS: u16 = 10;
/// The refusal of an order that another connector serves: simulated money has no real coins sent.
const NOT_SIMULATED: &str = "a connector of yours serves it, and tells what happens to it";
/// The refusal of coins or money that are being sent.
const PAYOUT_UNDER_WAY: &str = "its payout is under way";
/// Bytes of a Bitcoin transaction id; simulated ones have the same form.
const TRANSACTION_ID_BYTES: usize = 32;

/// A random transaction id, which no chain has.
fn transaction_id(clock: &Clock) -> Result<String, NoEntropy> {
    Ok(hex::encode(clock.random_bytes::<TRANSACTION_ID_BYTES>()?))
}

/// Passes on the transaction in which an event was simulated, with what it has changed. One in which
/// it is refused ends before the answer: dropped, it would be rolled back behind it.
///
/// # Errors
/// The event's own.
pub async fn unless_refused(
    tx: Transaction<'_>,
    simulated: Result<Vec<Cause>, NotApplied>,
) -> Result<(Transaction<'_>, Vec<Cause>), NotApplied> {
    match simulated {
        Ok(causes) => Ok((tx, causes)),
        Err(NotApplied::Failed(error)) => Err(error.into()),
        Err(refused) => {
            tx.rollback().await?;
            Err(refused)
        }
    }
}

/// An act of a user, an operator or time, in the caller's transaction.
///
/// # Errors
/// As [`apply_in`].
async fn act<E: Event>(
    conn: &mut Connection,
    core: &Core,
    key: OrderKey,
    event: &E,
    actor: &str,
) -> Result<Vec<Cause>, NotApplied> {
    Ok(vec![apply_in(conn, core, key, event, actor).await?.cause])
}

/// Reports an event of the sandbox's in the caller's transaction: these members and those that every
/// event has. The actor stands in the order's timeline.
///
/// # Errors
/// When the database cannot be used.
async fn report_event(
    conn: &mut Connection,
    core: &Core,
    kind: &str,
    actor: &str,
    mut members: Value,
) -> Result<Vec<Cause>> {
    members["id"] = json!(core.clock.uuid()?);
    members["kind"] = kind.into();
    members["occurredAt"] = core.clock.now().to_rfc3339_opts(SecondsFormat::Micros, true).into();
    let report = Report::read(&members);
    let report = report.map_err(|_| Error::invariant("read an event of the sandbox"))?;
    match take_in(conn, core, Reporter { connector: NAME, actor }, &report).await? {
        Stored::Now(applied) => Ok(applied.causes),
        Stored::Before { .. } => Err(Error::invariant("name an event of the sandbox anew")),
    }
}

/// Answers a leased command in the caller's transaction. `None` if its lease is lost: then somebody
/// else has it.
///
/// # Errors
/// When the database cannot be used.
async fn answer(
    conn: &mut Connection,
    core: &Core,
    command: &Leased,
    outcome: Outcome,
    result: Value,
) -> Result<Option<Vec<Cause>>> {
    let new = NewResult::of_sandbox(command.lease_token, outcome, result);
    answer_with(conn, core, command, new).await
}

async fn answer_with(
    conn: &mut Connection,
    core: &Core,
    command: &Leased,
    new: NewResult,
) -> Result<Option<Vec<Cause>>> {
    match settle(conn, core, NAME, command.id, &new).await? {
        Settled::Now(_, causes) => Ok(Some(causes)),
        Settled::Before(_) | Settled::LeaseLost => Ok(None),
        Settled::NoTransaction => Err(Error::invariant("name the transaction of a payout")),
    }
}

/// Leases one command before it is due, in the caller's transaction; `None` while the worker of an edge
/// has it.
///
/// # Errors
/// When the database cannot be used.
async fn lease_now(
    conn: &mut Connection,
    core: &Core,
    kind: CommandKind,
    command: Uuid,
) -> Result<Option<Leased>> {
    let kinds = [kind.as_str().to_owned()];
    let only = Some(command);
    let new = NewLease { connector: NAME, kinds: &kinds, max: 1, seconds: LEASE_SECONDS, only };
    lease_one(conn, core, &new).await
}

/// The open command of an order of this kind, and whether it is the sandbox's.
///
/// # Errors
/// The database's.
async fn open_command(
    conn: &mut Connection,
    OrderKey { client, order }: OrderKey,
    kind: CommandKind,
) -> Result<Option<(Uuid, bool)>, sqlx::Error> {
    let found = sqlx::query!(
        r#"
        select command_id, coalesce(connector = $4, false) as "is_simulated!" from command
        where client_id = $1 and order_id = $2 and kind = $3 and state = 'open'
        order by created_at limit 1
        "#,
        client.uuid(),
        order.number(),
        kind.as_str(),
        NAME,
    )
    .fetch_optional(conn)
    .await?;
    Ok(found.map(|row| (row.command_id, row.is_simulated)))
}

/// Has the worker report what follows a command that is done, after a step.
///
/// # Errors
/// The database's.
async fn report_later(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    command: Uuid,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "update command \
         set report_due_at = rampart_now() + $3::bigint * interval '1 millisecond' \
         where client_id = $1 and command_id = $2",
        client.uuid(),
        command,
        timing::step_ms(core),
    )
    .execute(conn)
    .await?;
    Ok(())
}
