//! `GET /admin/v1/audit`: who changed what, newest first.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, Input, ok};
use crate::Core;

/// Most rows of one answer.
const ROWS_MAX: i64 = 500;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    limit: Option<String>,
    target: Option<String>,
    before: Option<DateTime<Utc>>,
}

#[derive(Serialize)]
struct Row {
    id: uuid::Uuid,
    at: DateTime<Utc>,
    actor: String,
    action: String,
    target: String,
    detail: Value,
}

pub(super) async fn list(core: &Arc<Core>, input: Input) -> Answer {
    let Query { limit, target, before } = input.query()?;
    let limit = super::limit(limit.as_deref(), ROWS_MAX)?;
    let rows = sqlx::query_as!(
        Row,
        "select audit_id as id, at, actor, action, target, detail from audit \
         where ($1::text is null or target = $1) and ($2::timestamptz is null or at < $2) \
         order by at desc, audit_id desc limit $3",
        target,
        before,
        limit,
    )
    .fetch_all(&core.db)
    .await?;
    ok(&rows)
}
