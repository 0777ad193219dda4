//! `GET /admin/v1/audit`

pub mod verification;

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::operator::Operator;
use super::page::{AFTER, Page, Paging, Search, check_after, limit};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::platform::error::Result;

/// Most rows of one answer.
const ROWS_MAX: i64 = 500;

/// `GET /admin/v1/audit`
pub struct ListAudit;

impl Endpoint for ListAudit {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/audit";
    const ROLES: &'static [Role] = &[Role::Compliance, Role::Platform];
    const MAY_BE_STALE: bool = true;
    const DOC: Doc = Doc {
        summary: "List the changes that operators made",
        details: "Newest first.",
        query: &[
            optional("target", Kind::Text, "A partner's slug, an order's number, a user's id …"),
            optional("actor", Kind::Text, "Name of the operator, or who else made the change."),
            optional("action", Kind::Text, "Such as `partner.change`."),
            optional("from", Kind::Format("date-time"), "Earliest time."),
            optional("before", Kind::Format("date-time"), "Time before which they were written."),
            AFTER,
            limit(ROWS_MAX),
        ],
        answer: r#"[{"id": "0199a000-0000-7000-8000-000000000009", "at": "2026-03-01T12:00:00Z",
            "actor": "admin", "action": "partner.change", "target": "acme",
            "detail": {"defaultFeePercentage": 1.5}}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Search<Criteria>;
    type Response = Page<Change>;

    fn read(input: &Input, _: &Operator) -> Result<Search<Criteria>> {
        let criteria: Criteria = strict::query(input)?;
        let paging = Paging::of(&input.head, criteria.limit.as_deref(), ROWS_MAX)?;
        Ok(Search { criteria, paging })
    }

    async fn call(core: &Core, _: Operator, search: Search<Criteria>) -> Result<Page<Change>> {
        let mut conn = core.db.acquire().await?;
        let Criteria { target, actor, action, from, before, after, .. } = search.criteria;
        if let Some(after) = after {
            let exists = sqlx::query_scalar!(
                "select exists (select from audit where audit_id = $1) as \"exists!\"",
                after,
            );
            check_after(exists.fetch_one(&mut *conn).await?)?;
        }
        let changes = sqlx::query_as!(
            Change,
            "select audit_id as id, at, actor, action, target, detail from audit \
             where ($1::text is null or target = $1) and ($2::timestamptz is null or at < $2) \
                 and ($3::uuid is null or (at, audit_id) < \
                     (select at, audit_id from audit where audit_id = $3)) \
                 and ($5::text is null or actor = $5) and ($6::text is null or action = $6) \
                 and ($7::timestamptz is null or at >= $7) \
             order by at desc, audit_id desc limit $4",
            target,
            before,
            after,
            search.paging.rows_max(),
            actor,
            action,
            from,
        )
        .fetch_all(&mut *conn)
        .await?;
        Ok(search.paging.page(changes, |change| change.id))
    }
}

/// Criteria of changes; one that is absent is met by all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Criteria {
    target: Option<String>,
    actor: Option<String>,
    action: Option<String>,
    from: Option<DateTime<Utc>>,
    before: Option<DateTime<Utc>>,
    after: Option<Uuid>,
    limit: Option<String>,
}

/// A change that an operator made.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "AuditEntry")]
pub struct Change {
    /// The entry's id.
    id: Uuid,
    /// When it was made.
    at: DateTime<Utc>,
    /// The operator, or the program.
    actor: String,
    /// Such as `partner.create`.
    action: String,
    /// The thing that was changed, such as a partner's slug.
    target: String,
    /// The change itself, without secrets and personal data.
    #[schemars(with = "Map<String, Value>")]
    detail: Value,
}
