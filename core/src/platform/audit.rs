//! The audit log. Every write of an operator leaves a row, in the write's own transaction.

use serde_json::Value;

use crate::platform::clock::Clock;
use crate::platform::db::Connection;
use crate::platform::error::Result;

/// An operator's action. It must hold no secret and no personal data.
#[derive(Debug)]
pub struct Entry<'a> {
    /// The operator: today the holder of the admin token.
    pub actor: &'a str,
    /// The action, such as `partner.create`.
    pub action: &'static str,
    /// The object, such as a slug or an order id.
    pub target: &'a str,
    /// The change itself.
    pub detail: Value,
}

/// Inserts the audit row.
///
/// # Errors
/// When the database cannot be written: the operator's change must then not be committed either.
pub async fn record(conn: &mut Connection, clock: &Clock, entry: Entry<'_>) -> Result<()> {
    sqlx::query!(
        "insert into audit (audit_id, at, actor, action, target, detail) \
         values ($1, $2, $3, $4, $5, $6)",
        clock.uuid()?,
        clock.now(),
        entry.actor,
        entry.action,
        entry.target,
        entry.detail,
    )
    .execute(conn)
    .await?;
    Ok(())
}
