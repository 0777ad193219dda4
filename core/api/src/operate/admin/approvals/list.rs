//! `GET /admin/v1/approvals`

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{check_approver, context, identities, route_of};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::Doc;
use crate::http::request::Input;
use crate::operate::admin::Read;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{AFTER, Page, Part, limit};
use crate::platform::error::Result;

/// Most approvals of one answer.
const APPROVALS_MAX: i64 = 200;
/// Bytes of bodies after which a page ends early: one body may be a component of 4 MiB.
const BODIES_BYTES: i64 = 4 * 1024 * 1024;

/// `GET /admin/v1/approvals`
pub struct ListApprovals;

impl Endpoint for ListApprovals {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/approvals";
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "List the calls that need a second person",
        details: "Newest first. The body is shown to operators who may make the call themselves. \
                  A page ends before its `limit` once its bodies have 4 MiB. The ids of those whose \
                  bodies were shown stand in the audit.",
        query: &[AFTER, limit(APPROVALS_MAX)],
        answer: r#"[{"id": "0199a000-0000-7000-8000-00000000000d", "state": "pending",
            "method": "PUT", "path": "/admin/v1/prices/BTC-EUR", "body": {"price": 51234.56},
            "requestedBy": "ada", "requestedAt": "2026-03-01T12:00:00Z",
            "expiresAt": "2026-03-02T12:00:00Z", "decidedBy": null, "decidedAt": null,
            "own": false, "mayDecide": true}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Part<Uuid>;
    type Response = Page<Approval>;

    fn read(input: &Input, _: &Operator) -> Result<Part<Uuid>> {
        Part::read(input, APPROVALS_MAX)
    }

    async fn call(core: &Core, operator: Operator, part: Part<Uuid>) -> Result<Page<Approval>> {
        let own = identities(core, operator.identity()).await?;
        let mut rows = sqlx::query!(
            r#"
            select approval_id, method, route, path, requested_by, requested_at, expires_at,
                approver_roles, coalesce(granted_by, refused_by) as decided_by, decided_at,
                case when used_at is not null then 'used' when refused_by is not null then 'refused'
                    when expires_at <= now() then 'expired'
                    when granted_by is not null then 'granted' else 'pending' end as "state!",
                coalesce(requested_by_identity = any ($3), requested_by = $4) as "own!",
                coalesce(sum(octet_length(sealed_body)) over newer, 0) < $5 as "fits!",
                case when coalesce(sum(octet_length(sealed_body)) over newer, 0) < $5
                    then sealed_body end as sealed_body
            from approval where $1::uuid is null or approval_id < $1
            window newer as (order by approval_id desc
                rows between unbounded preceding and 1 preceding)
            order by approval_id desc limit $2
            "#,
            part.after,
            part.paging.rows_max(),
            &own,
            operator.actor(),
            BODIES_BYTES,
        )
        .fetch_all(&core.db)
        .await?;
        let fitting = rows.iter().take_while(|row| row.fits).count();
        let has_more = part.paging.cut(&mut rows) || fitting < rows.len();
        rows.truncate(fitting);
        let last = rows.last().filter(|_| has_more).map(|last| last.approval_id.to_string());
        let listed = rows.into_iter().map(|row| {
            let route = route_of(core, &row.method, &row.route);
            let shown = route.is_some_and(|route| operator.check(route.roles).is_ok());
            let has_roles = check_approver(&operator, route, &row.approver_roles).is_ok();
            let sealed = row.sealed_body.filter(|_| shown);
            let opened = sealed.and_then(|s| core.keys.open(&context(row.approval_id), &s).ok());
            Approval {
                id: row.approval_id,
                state: row.state,
                method: row.method,
                path: row.path,
                body: opened.and_then(|body| serde_json::from_slice(&body).ok()),
                requested_by: row.requested_by,
                requested_at: row.requested_at,
                expires_at: row.expires_at,
                decided_by: row.decided_by,
                decided_at: row.decided_at,
                own: row.own,
                may_decide: has_roles && !row.own,
            }
        });
        let approvals: Vec<_> = listed.collect();
        let shown = approvals.iter().filter(|approval| approval.body.is_some());
        let shown: Vec<_> = shown.map(|approval| approval.id).collect();
        let page = part.paging.page_until(approvals, last);
        Read::of_list("approval.list", operator, json!({ "approvals": shown }))
            .record(core)
            .await?;
        Ok(page)
    }
}

/// A call that needs a second person.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// The approval's id, which grants and refusals name.
    id: Uuid,
    /// `pending`, `granted`, `refused`, `used` or `expired`.
    state: String,
    /// The call's method.
    method: String,
    /// The call's path.
    path: String,
    /// The call's body, if it is JSON; of another one `sha256`, `size` and the call's `query`.
    #[schemars(with = "Option<Map<String, Value>>")]
    body: Option<Value>,
    /// The operator who made the call.
    requested_by: String,
    /// When it was made.
    requested_at: DateTime<Utc>,
    /// When it ends unless somebody has decided.
    expires_at: DateTime<Utc>,
    /// The operator who granted or refused it.
    decided_by: Option<String>,
    /// When it was granted or refused; null before.
    decided_at: Option<DateTime<Utc>>,
    /// `true` if the operator who lists them made the call: others may have the same name.
    own: bool,
    /// `true` if the operator who lists them has the roles to grant or refuse it, and has not made it.
    may_decide: bool,
}
