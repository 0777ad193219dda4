//! Commands whose result a request waits for: the documented code stands for one that does not come
//! in time. Its effects are those of the command's end (`effects`), so a late result counts.

use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use super::commands::{self, Command, SealedCommand, Target, result_context};
use crate::Core;
use crate::platform::error::Result;

/// Pause between two looks for the result.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The answer of a connector.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The effect is there; this is its result.
    Done(Value),
    /// It is not there, and never will be.
    Rejected,
    /// There was no result in time, or no connector takes the command.
    None,
}

/// Enqueues a command, unless its effect was commanded before, and waits for the result up to
/// `connectors.answer_seconds`.
///
/// # Errors
/// When the database cannot be used.
#[expect(clippy::disallowed_methods, reason = "LOOK_INTERVAL: another edge may end the command")]
pub(crate) async fn ask(core: &Core, command: Command) -> Result<Answer> {
    let (client, kind, key) = (command.client, command.kind, command.idempotency_key.clone());
    let is_routed = matches!(command.target, Target::Method { .. });
    let command: SealedCommand = command.seal(core)?;
    let began = core.clock.monotonic_ns();
    let mut tx = core.db.begin().await?;
    command.insert(&mut tx).await?;
    let stored = sqlx::query!(
        r#"
        select command_id, connector_takes($3) and (connector is not null or not $4) as "is_taken!"
        from command where client_id = $1 and idempotency_key = $2
        "#,
        client.uuid(),
        key,
        kind.as_str(),
        is_routed,
    )
    .fetch_one(&mut *tx)
    .await?;
    if !stored.is_taken {
        tx.rollback().await?;
        return Ok(Answer::None);
    }
    tx.commit().await?;
    let most = Duration::from_secs(core.settings.connectors.answer_seconds.into());
    loop {
        let row = sqlx::query!(
            "select state, sealed_result from command where client_id = $1 and command_id = $2",
            client.uuid(),
            stored.command_id,
        )
        .fetch_one(&core.db)
        .await?;
        match (&*row.state, row.sealed_result) {
            ("done", Some(sealed)) => {
                let context = result_context(client.uuid(), stored.command_id);
                let mut result = commands::open(&core.cipher(client), &context, &sealed)?;
                return Ok(Answer::Done(result["result"].take()));
            }
            ("rejected", _) => return Ok(Answer::Rejected),
            _ => {}
        }
        let waited = core.clock.monotonic_ns().saturating_sub(began);
        if Duration::from_nanos(waited) >= most {
            return Ok(Answer::None);
        }
        sleep(LOOK_INTERVAL).await;
    }
}
