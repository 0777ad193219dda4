//! Uploads by a partner's own staff: where operators allow them, one at a time and a bounded number a
//! day. Each is recorded with its result. What passes the examination serves nobody: operators
//! activate it.

use chrono::{DateTime, Utc};
use rampart_plugins::Check;
use serde_json::json;
use uuid::Uuid;

use super::audit::record_change;
use super::error::LifecycleError;
use super::target::Target;
use super::upload::{StageRequest, stage};
use crate::Core;
use crate::platform::db::{Connection, Transaction};
use crate::platform::error::{Error, Result};
use crate::policies::manifest::{self, digest_hex};
use rampart_types::{ClientId, StaffId};

/// Most uploads of one partner's staff in 24 hours.
pub const STAFF_UPLOADS_MAX: i64 = 20;
/// Most uploads of one partner's staff in 24 hours that could not be examined: they do not count among the
/// others, and cost this side as much.
pub const UNEXAMINED_MAX: i64 = 20;
/// Refused uploads of a partner that are listed: the newest.
const REFUSED_MAX: i64 = 20;
/// Time beyond the longest examination after which an upload without a result does not hold up the next
/// one, in seconds: for its turn among others, and its result.
const RESULT_SECONDS_MAX: u64 = 50;
/// Days for which uploads are recorded.
const RECORDED_DAYS: i32 = 90;

/// The operators' terms for uploads of a partner's staff.
#[derive(Debug)]
pub struct UploadTerms {
    /// True if staff may upload.
    pub allowed: bool,
    /// True if a manifest that an operator has signed must come with the component.
    pub signature_required: bool,
}

impl UploadTerms {
    /// The terms of a partner.
    pub async fn find(core: &Core, conn: &mut Connection, client: ClientId) -> Result<Self> {
        let allowed = sqlx::query_scalar!(
            "select policy_upload_allowed from client where client_id = $1",
            client.uuid(),
        )
        .fetch_one(&mut *conn)
        .await?;
        let signature_required = manifest::is_required(core, conn, client).await?;
        Ok(Self { allowed, signature_required })
    }
}

/// The result of an upload.
#[derive(Debug)]
pub enum StaffUpload {
    /// Stored as the version of this number, inactive.
    Stored(i64),
    /// Refused, with the id of its record.
    Refused(Uuid),
    /// Not examined, for a reason that says nothing of the component.
    Unexamined,
    /// Operators do not allow uploads of this partner's staff.
    NotAllowed,
    /// Another upload of this partner is being examined.
    Busy,
    /// The partner has uploaded [`STAFF_UPLOADS_MAX`] in 24 hours.
    TooMany,
    /// [`UNEXAMINED_MAX`] uploads of the partner could not be examined in 24 hours.
    TooManyUnexamined,
}

/// Examines an upload of a staff member and stores what passes as an inactive version. The transaction is
/// that of the member's action, and ends before the examination.
///
/// # Errors
/// When the database cannot be used, or the host cannot examine anything.
pub async fn upload_by_staff(
    core: &Core,
    tx: Transaction<'_>,
    target: Target<'_>,
    staff: StaffId,
    request: StageRequest,
) -> Result<StaffUpload> {
    let component = request.component.as_deref().unwrap_or_default();
    let (digest, size) = (digest_hex(component), component.len());
    let id = match begin(core, tx, target, staff, &digest, size).await? {
        Ok(id) => id,
        Err(refused) => return Ok(refused),
    };
    let (check, reason) = match stage(core, target, request).await {
        Ok(stored) => {
            let mut conn = core.db.acquire().await?;
            end(&mut conn, target.client, id, Ending::Stored(stored.version)).await?;
            return Ok(StaffUpload::Stored(stored.version));
        }
        Err(LifecycleError::Rejected(rejection)) if rejection.is_transient() => {
            let mut conn = core.db.acquire().await?;
            end(&mut conn, target.client, id, Ending::Unexamined).await?;
            tracing::warn!(upload = %id, reason = %rejection, "an upload could not be examined");
            return Ok(StaffUpload::Unexamined);
        }
        Err(LifecycleError::Rejected(rejection)) => (rejection.check(), rejection.to_string()),
        Err(LifecycleError::Invalid(reason)) => (None, reason),
        Err(LifecycleError::Conflict(reason)) => (None, reason.to_owned()),
        Err(LifecycleError::NotFound(subject)) => (None, format!("there is no such {subject}")),
        Err(LifecycleError::Internal(error)) => {
            let mut conn = core.db.acquire().await?;
            end(&mut conn, target.client, id, Ending::Unexamined).await?;
            return Err(error);
        }
    };
    let mut tx = core.db.begin().await?;
    end(&mut tx, target.client, id, Ending::Refused(check, &reason)).await?;
    let check = check.map(Check::as_str);
    let detail = json!({"uploadId": id, "digest": digest, "check": check});
    record_change(core, &mut tx, target, "policy.refuse", detail).await?;
    tx.commit().await?;
    Ok(StaffUpload::Refused(id))
}

/// Records that an upload begins, or says why it may not.
async fn begin(
    core: &Core,
    mut tx: Transaction<'_>,
    target: Target<'_>,
    staff: StaffId,
    digest: &str,
    size: usize,
) -> Result<Result<Uuid, StaffUpload>> {
    let client = target.client.uuid();
    // The row lock makes uploads of one partner take turns from here to the commit.
    let allowed = sqlx::query_scalar!(
        "select policy_upload_allowed from client where client_id = $1 for no key update",
        client,
    )
    .fetch_one(&mut *tx)
    .await?;
    if !allowed {
        return Ok(Err(StaffUpload::NotAllowed));
    }
    let examination_ms = core.policies.engine.limits().examination_ms_max();
    let examination_seconds = examination_ms.div_ceil(1_000);
    let busy_seconds = examination_seconds.saturating_add(RESULT_SECONDS_MAX);
    let recent = sqlx::query!(
        r#"
        select count(*) as "count!",
            count(*) filter (where ended_at is not null and version is null and refusal is null)
                as "unexamined!",
            coalesce(bool_or(ended_at is null
                and created_at > rampart_now() - make_interval(secs => $2::int)), false) as "busy!"
        from policy_upload
        where client_id = $1 and created_at > rampart_now() - interval '24 hours'
        "#,
        client,
        i32::try_from(busy_seconds).unwrap_or(i32::MAX),
    )
    .fetch_one(&mut *tx)
    .await?;
    if recent.busy {
        return Ok(Err(StaffUpload::Busy));
    }
    if recent.count - recent.unexamined >= STAFF_UPLOADS_MAX {
        return Ok(Err(StaffUpload::TooMany));
    }
    if recent.unexamined >= UNEXAMINED_MAX {
        return Ok(Err(StaffUpload::TooManyUnexamined));
    }
    sqlx::query!(
        "delete from policy_upload \
         where client_id = $1 and created_at < rampart_now() - make_interval(days => $2::int)",
        client,
        RECORDED_DAYS,
    )
    .execute(&mut *tx)
    .await?;
    let id = core.clock.uuid()?;
    sqlx::query!(
        "insert into policy_upload \
             (client_id, upload_id, staff_id, kind, digest, size, created_at) \
         values ($1, $2, $3, $4, $5, $6, rampart_now())",
        client,
        id,
        staff.uuid(),
        target.kind.as_str(),
        digest,
        i64::try_from(size).map_err(|error| Error::internal("measure a component", error))?,
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(Ok(id))
}

/// The end of an examination.
enum Ending<'a> {
    Stored(i64),
    Refused(Option<Check>, &'a str),
    /// Neither stored nor refused.
    Unexamined,
}

async fn end(conn: &mut Connection, client: ClientId, id: Uuid, ending: Ending<'_>) -> Result<()> {
    let (version, check, refusal) = match ending {
        Ending::Stored(version) => (Some(version), None, None),
        Ending::Refused(check, reason) => (None, check.map(Check::as_str), Some(reason)),
        Ending::Unexamined => (None, None, None),
    };
    sqlx::query!(
        "update policy_upload \
         set version = $3, failed_check = $4, refusal = $5, ended_at = rampart_now() \
         where client_id = $1 and upload_id = $2",
        client.uuid(),
        id,
        version,
        check,
        refusal,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// An upload that was refused.
#[derive(Debug)]
pub struct RefusedUpload {
    /// Its id.
    pub id: Uuid,
    /// Staff member who uploaded it.
    pub staff: StaffId,
    /// Kind of policy.
    pub kind: String,
    /// SHA-256 of the component, in hexadecimal.
    pub digest: String,
    /// Size of the component in bytes.
    pub size: i64,
    /// The check that failed; `None` when it was refused for another reason.
    pub check: Option<Check>,
    /// Reason of the refusal.
    pub reason: String,
    /// Time of the upload.
    pub created_at: DateTime<Utc>,
}

/// The newest refused uploads of a partner, or the one with this id alone.
pub async fn refused_uploads(
    conn: &mut Connection,
    client: ClientId,
    id: Option<Uuid>,
) -> Result<Vec<RefusedUpload>> {
    let rows = sqlx::query!(
        r#"
        select upload_id, staff_id, kind, digest, size, failed_check, refusal as "refusal!",
            created_at
        from policy_upload
        where client_id = $1 and refusal is not null and ($2::uuid is null or upload_id = $2)
        order by created_at desc, upload_id desc limit $3
        "#,
        client.uuid(),
        id,
        REFUSED_MAX,
    )
    .fetch_all(conn)
    .await?;
    let refused = rows.into_iter().map(|row| RefusedUpload {
        id: row.upload_id,
        staff: row.staff_id.into(),
        kind: row.kind,
        digest: row.digest,
        size: row.size,
        check: row.failed_check.as_deref().and_then(Check::from_name),
        reason: row.refusal,
        created_at: row.created_at,
    });
    Ok(refused.collect())
}
