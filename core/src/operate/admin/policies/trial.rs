//! What is tried beside the active version: `/admin/v1/partners/{slug}/policies/{kind}/trial`.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use super::{Because, because, target};
use crate::Core;
use crate::operate::admin::{Answer, Input, Refused, done, ok};
use crate::policies::lifecycle::{self, Target};

/// Most differences of one answer.
const DIFFERENCES_MAX: i64 = 20;

/// A trial as operators see it. Counts are those of shadow runs on all edges.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Trial {
    version: i64,
    /// Percent of the users it answers; null: none, it runs in the shadow.
    percentage: Option<i16>,
    calls: i64,
    same: i64,
    different: i64,
    failed: i64,
    skipped: i64,
    reason: Option<String>,
    started_by: String,
    started_at: DateTime<Utc>,
    /// The newest shadow runs that answered something else, or failed.
    differences: Vec<Value>,
}

/// The trial of this kind, if there is one.
pub(super) async fn find(core: &Core, target: Target<'_>) -> Result<Option<Trial>, Refused> {
    let row = sqlx::query!(
        "select trial_id, version, share, calls, same, different, failed, skipped, reason, \
             started_by, started_at \
         from policy_trial where client_id = $1 and kind = $2",
        target.client.uuid(),
        target.kind.as_str(),
    )
    .fetch_optional(&core.db)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let differences = sqlx::query_scalar!(
        "select detail from policy_difference where client_id = $1 and trial_id = $2 \
         order by at desc, slot limit $3",
        target.client.uuid(),
        row.trial_id,
        DIFFERENCES_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(Some(Trial {
        version: row.version,
        percentage: row.share,
        calls: row.calls,
        same: row.same,
        different: row.different,
        failed: row.failed,
        skipped: row.skipped,
        reason: row.reason,
        started_by: row.started_by,
        started_at: row.started_at,
        differences,
    }))
}

/// `GET …/trial`
pub(in crate::operate::admin) async fn read(core: &Arc<Core>, input: Input) -> Answer {
    let trial = find(core, target(core, &input).await?).await?;
    ok(&trial.ok_or_else(|| Refused::not_found("trial"))?)
}

/// `DELETE …/trial`: the active version serves everybody.
pub(in crate::operate::admin) async fn end(core: &Arc<Core>, input: Input) -> Answer {
    let Because { reason } = input.json()?;
    let target = because(target(core, &input).await?, reason.as_deref())?;
    lifecycle::end_rollout(core, target).await?;
    done()
}
