//! The audit log. Every write of an operator, and every read of personal data, leaves a row in its own
//! transaction. The rows are a chain: each has a MAC over itself and the row before.

pub(crate) mod archive;
pub mod chain;
mod watch;

use serde_json::Value;
use uuid::Uuid;

use self::chain::ChainedRow;
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;

/// An action that changes or shows what must be accounted for. It must hold no secret and no personal
/// data.
#[derive(Debug)]
pub struct Entry<'a> {
    /// The operator's name, `staff:<id>` of a partner's staff, `user:<uuid>` or `edge`.
    pub actor: &'a str,
    /// The action, such as `partner.create`.
    pub action: &'static str,
    /// The object, such as a slug or an order id.
    pub target: &'a str,
    /// The change itself.
    pub detail: Value,
}

/// Appends a row to the audit. Others wait from here to the end of the transaction, so this is its
/// last statement but for reads.
///
/// # Errors
/// When the database cannot be written: the operator's change must then not be committed either.
pub async fn record(conn: &mut Connection, core: &Core, entry: Entry<'_>) -> Result<()> {
    // The MAC is over the detail as Postgres writes it, which is how it is read for a verification.
    let head = sqlx::query!(
        r#"
        select position, mac, audit_id, ($1::jsonb)::text as "detail!" from audit_head for update
        "#,
        entry.detail,
    )
    .fetch_one(&mut *conn)
    .await?;
    let row = ChainedRow {
        position: head.position + 1,
        id: ascending(core.clock.uuid()?, head.audit_id),
        at: core.clock.now(),
        actor: entry.actor,
        action: entry.action,
        target: entry.target,
        detail: &head.detail,
    };
    let mac = row.mac(&core.keys, &head.mac)?;
    sqlx::query!(
        "with head as (update audit_head set position = $7, mac = $8, audit_id = $1) \
         insert into audit (audit_id, at, actor, action, target, detail, position, mac) \
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        row.id,
        row.at,
        row.actor,
        row.action,
        row.target,
        entry.detail,
        row.position,
        mac,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// An id above the last one, whatever the clock of the edge that made that: ids ascend with positions,
/// so that a month of ids is a piece of the chain.
fn ascending(id: Uuid, last: Option<Uuid>) -> Uuid {
    last.map_or(id, |last| id.max(Uuid::from_u128(last.as_u128().saturating_add(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_ascend_although_clocks_differ() {
        let [early, late] = [1, 7].map(Uuid::from_u128);
        assert_eq!(ascending(late, None), late);
        assert_eq!(ascending(late, Some(early)), late);
        assert_eq!(ascending(early, Some(late)), Uuid::from_u128(8));
    }
}
