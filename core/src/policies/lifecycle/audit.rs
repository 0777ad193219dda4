//! Audit of changes of policies.

use serde_json::Value;

use super::target::Target;
use crate::Core;
use crate::platform::audit::{self, Entry};
use crate::platform::db::Connection;
use crate::platform::error::Result;

/// Records a change in the audit log: `detail` with the kind, and the reason if there is one. A second
/// person's approval of it is used up.
pub(super) async fn record_change(
    core: &Core,
    conn: &mut Connection,
    target: Target<'_>,
    action: &'static str,
    mut detail: Value,
) -> Result<()> {
    if let Value::Object(members) = &mut detail {
        members.retain(|_, value| !value.is_null());
        members.insert("kind".to_owned(), target.kind.as_str().into());
        if let Some(reason) = target.reason {
            members.insert("reason".to_owned(), reason.into());
        }
    }
    if let Some(approval) = target.approval {
        approval.spend(conn, core, target.actor).await?;
    }
    let entry = Entry { actor: target.actor, action, target: target.slug, detail };
    audit::record(conn, core, entry).await
}
