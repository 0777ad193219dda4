//! The effects of a command's end, in the transaction that ends it.

use rampart_types::ClientId;
use serde_json::Value;
use uuid::Uuid;

use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;

/// A command that has ended.
pub(super) struct Finished {
    pub(super) client: ClientId,
    pub(super) order: Option<i64>,
    pub(super) kind: String,
    pub(super) connector: String,
    pub(super) command: Uuid,
    /// False for one that was rejected.
    pub(super) is_done: bool,
    pub(super) result: Value,
    pub(super) reason: Option<String>,
}

/// Applies what follows from the end of a command.
///
/// # Errors
/// When the database cannot be written; the command is then not ended either.
pub(super) async fn apply(_: &mut Connection, _: &Core, finished: &Finished) -> Result<()> {
    let Finished { client, order, kind, connector, command, is_done, .. } = finished;
    tracing::info!(%client, order, kind, connector, %command, is_done, "a command has ended");
    Ok(())
}
