//! Commands whose result a request waits for: the documented code stands for one that does not come
//! in time. Its effects are those of the command's end (`effects`), so a late result counts.

use std::time::Duration;

use rampart_types::{ClientId, UserKey};
use serde_json::Value;
use tokio::time::sleep;
use uuid::Uuid;

use super::commands::{self, Command, CommandKind, SealedCommand, Target, result_context};
use super::sandbox::worker as sandbox;
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Result};
use crate::users::account::{self, RowLock};

/// Pause between two looks for the result.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The answer of a connector.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The effect is there; this is its result.
    Done(Value),
    /// It is not there, and never will be; the connector's reason.
    Rejected(Option<String>),
    /// There was no result in time, or no connector takes the command.
    None,
}

/// Enqueues a command, unless its effect was commanded before, and waits for the result up to
/// `connectors.answer_seconds`.
///
/// # Errors
/// ER709 when the command's user is deleted; when the database cannot be used.
#[expect(clippy::disallowed_methods, reason = "LOOK_INTERVAL: another edge may end the command")]
pub(crate) async fn ask(core: &Core, command: Command) -> Result<Answer> {
    let began = core.clock.monotonic_ns();
    let mut tx = core.db.begin().await?;
    let Some(commanded) = Commanded::of(&mut tx, core, command).await? else {
        tx.rollback().await?;
        return Ok(Answer::None);
    };
    if commanded.is_simulated {
        let answer = commanded.simulate(&mut tx, core).await?;
        tx.commit().await?;
        return Ok(answer);
    }
    tx.commit().await?;
    let most = Duration::from_secs(core.settings.connectors.answer_seconds.into());
    loop {
        let mut conn = core.db.acquire().await?;
        if let Some(answer) = commanded.answer(&mut conn, core).await? {
            return Ok(answer);
        }
        drop(conn);
        let waited = core.clock.monotonic_ns().saturating_sub(began);
        if Duration::from_nanos(waited) >= most {
            return Ok(Answer::None);
        }
        sleep(LOOK_INTERVAL).await;
    }
}

/// As [`ask`], of the sandbox, which answers in the caller's transaction.
///
/// # Errors
/// Those of [`ask`].
pub(crate) async fn ask_sandbox(
    conn: &mut Connection,
    core: &Core,
    command: Command,
) -> Result<Answer> {
    match Commanded::of(conn, core, command).await? {
        Some(commanded) => commanded.simulate(conn, core).await,
        None => Ok(Answer::None),
    }
}

/// A command that somebody takes.
struct Commanded {
    client: ClientId,
    kind: CommandKind,
    id: Uuid,
    /// The sandbox takes it.
    is_simulated: bool,
}

impl Commanded {
    /// Enqueues a command, unless its effect was commanded before; `None` if nobody takes it. Locks the
    /// command's user.
    async fn of(conn: &mut Connection, core: &Core, command: Command) -> Result<Option<Self>> {
        let (client, kind, key) = (command.client, command.kind, command.idempotency_key.clone());
        if let Some(user) = command.user {
            // An erasure finds the command, or nobody is told of who is gone.
            let key = UserKey { client, user };
            if !account::lock(conn, key, RowLock::NoKeyUpdate).await? {
                return Err(Code::UserNotFound.into());
            }
        }
        let is_routed = matches!(command.target, Target::Method { .. });
        let command: SealedCommand = command.seal(core)?;
        command.insert(conn).await?;
        let stored = sqlx::query!(
            r#"
        select command_id, coalesce(connector = 'sandbox', false) as "is_simulated!",
            coalesce(connector = 'sandbox', false)
                or (connector_takes($3) and (connector is not null or not $4)) as "is_taken!"
        from command where client_id = $1 and idempotency_key = $2
        "#,
            client.uuid(),
            key,
            kind.as_str(),
            is_routed,
        )
        .fetch_one(conn)
        .await?;
        let (id, is_simulated) = (stored.command_id, stored.is_simulated);
        Ok(stored.is_taken.then_some(Self { client, kind, id, is_simulated }))
    }

    /// Has the sandbox answer now: it need not wait for its worker.
    async fn simulate(&self, conn: &mut Connection, core: &Core) -> Result<Answer> {
        Box::pin(sandbox::carry_out_now(conn, core, self.kind, self.id)).await?;
        Ok(self.answer(conn, core).await?.unwrap_or(Answer::None))
    }

    /// The answer, if it is there.
    async fn answer(&self, conn: &mut Connection, core: &Core) -> Result<Option<Answer>> {
        let Self { client, id, .. } = *self;
        let row = sqlx::query!(
            "select state, sealed_result from command where client_id = $1 and command_id = $2",
            client.uuid(),
            id,
        )
        .fetch_optional(conn)
        .await?
        // An erasure has deleted it.
        .ok_or(Code::UserNotFound)?;
        let context = result_context(client.uuid(), id);
        let cipher = core.cipher(client);
        let result = row.sealed_result.map(|sealed| commands::open(&cipher, &context, &sealed));
        Ok(match (&*row.state, result.transpose()?) {
            ("done", Some(mut result)) => Some(Answer::Done(result["result"].take())),
            ("rejected", result) => {
                let reason = result.unwrap_or_default()["reason"].take();
                Some(Answer::Rejected(reason.as_str().map(str::to_owned)))
            }
            _ => None,
        })
    }
}
