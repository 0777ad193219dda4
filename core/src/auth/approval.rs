//! The approval of an operator's call by a second one. The transaction that carries the call out uses it
//! up, so that neither happens without the other.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::Core;
use crate::platform::audit::{self, Entry};
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};

/// The refusal that ends a dry run; nobody sees it.
const DRY_RUN: &str = "a dry run changes nothing";

/// An approval that was granted, and not used up when it was looked up.
#[derive(Debug)]
pub struct GrantedApproval {
    /// `None` stands in for one in a dry run of the call.
    granted: Option<Granted>,
    /// True once a transaction of the call has used it up, or the call has left it.
    is_settled: AtomicBool,
}

#[derive(Debug)]
struct Granted {
    id: Uuid,
    /// Method and path of the call, for the audit.
    call: String,
}

impl GrantedApproval {
    /// The approval of this id, of the call with this method and path.
    pub const fn new(id: Uuid, call: String) -> Self {
        Self { granted: Some(Granted { id, call }), is_settled: AtomicBool::new(false) }
    }

    /// The stand-in for an approval in a dry run: the call ends, and its transaction is undone, where it
    /// would use one up.
    pub const fn dry_run() -> Self {
        Self { granted: None, is_settled: AtomicBool::new(false) }
    }

    /// Leaves it as it is: the call has found nothing to do.
    ///
    /// # Errors
    /// In a dry run.
    pub fn leave(&self) -> Result<()> {
        self.is_settled.store(true, Ordering::Relaxed);
        self.granted().map(|_| ())
    }

    /// False while the call has neither used it up nor left it.
    pub fn is_settled(&self) -> bool {
        self.is_settled.load(Ordering::Relaxed)
    }

    /// Uses it up and records that: in the call's transaction, just before the call's own record.
    ///
    /// # Errors
    /// Those of [`Self::take`].
    pub async fn spend(&self, conn: &mut Connection, core: &Core, actor: &str) -> Result<()> {
        let used = self.take(conn).await?;
        used.record(conn, core, actor).await
    }

    /// Uses it up, in the call's transaction. Of two at once, the second waits for the first to end,
    /// and finds it unused if that one was rolled back.
    ///
    /// # Errors
    /// 409 when it was used up, taken back or has expired since it was looked up, and in a dry run.
    pub async fn take(&self, conn: &mut Connection) -> Result<UsedApproval> {
        if self.granted.is_none() {
            self.is_settled.store(true, Ordering::Relaxed);
        }
        let Granted { id, call } = self.granted()?;
        let granted_by = sqlx::query_scalar!(
            r#"
            update approval set used_at = now()
            where approval_id = $1 and granted_by is not null and refused_by is null
                and used_at is null and expires_at > now()
            returning granted_by as "granted_by!"
            "#,
            *id,
        )
        .fetch_optional(conn)
        .await?;
        let reason = "the approval was used, taken back or has expired meanwhile: call again";
        let granted_by = granted_by.ok_or_else(|| Denial::conflict(reason))?;
        self.is_settled.store(true, Ordering::Relaxed);
        let detail = json!({ "call": call, "grantedBy": granted_by });
        Ok(UsedApproval { id: *id, detail })
    }

    /// The approval itself.
    ///
    /// # Errors
    /// In a dry run.
    fn granted(&self) -> Result<&Granted> {
        self.granted.as_ref().ok_or_else(|| Denial::conflict(DRY_RUN).into())
    }
}

/// An approval that this transaction has used up.
#[must_use = "its use belongs in the audit"]
#[derive(Debug)]
pub struct UsedApproval {
    id: Uuid,
    /// The call and who has agreed to it.
    detail: Value,
}

impl UsedApproval {
    /// Appends its use to the audit, as [`audit::record`].
    ///
    /// # Errors
    /// Those of [`audit::record`].
    pub async fn record(self, conn: &mut Connection, core: &Core, actor: &str) -> Result<()> {
        let (target, detail) = (self.id.to_string(), self.detail);
        let entry = Entry { actor, action: "approval.use", target: &target, detail };
        audit::record(conn, core, entry).await
    }
}
