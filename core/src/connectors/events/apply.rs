//! The effects of an event, in the transaction that stores it.

use super::report::{EventKind, Report};
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;

/// Applies an event. `true` if it says nothing new.
///
/// # Errors
/// When the database cannot be written; the event is then not stored either.
pub(super) async fn apply(
    _: &mut Connection,
    _: &Core,
    connector: &str,
    report: &Report,
) -> Result<bool> {
    let Report { kind, outcome, .. } = report;
    if *kind == EventKind::Health {
        tracing::info!(connector, outcome, "a connector told of its health");
    }
    Ok(false)
}
