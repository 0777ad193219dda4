//! `POST /admin/v1/approvals/{id}/grant` and `POST …/refuse`

use http::{Method, StatusCode};
use serde_json::json;
use uuid::Uuid;

use super::{record, route_of};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, Member, required};
use crate::endpoint::{Endpoint, NoContent};
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};

/// The path's `{id}`.
const ID: Member = required("id", Kind::Format("uuid"), "The approval's id.");

/// `POST /admin/v1/approvals/{id}/grant`
pub struct GrantApproval;

impl Endpoint for GrantApproval {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/approvals/{id}/grant";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "Agree to a call of another operator",
        details: "Takes a role that the call itself needs, and never the operator who made it. \
                  That operator then makes the same call again, once, within a day of the first.",
        path: &[ID],
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Uuid;
    type Response = NoContent;

    fn read(input: &Input, _: &Operator) -> Result<Uuid> {
        input.param("id").parse().map_err(|_| Denial::not_found("approval").into())
    }

    async fn call(core: &Core, operator: Operator, id: Uuid) -> Result<NoContent> {
        let requested_by = check(core, &operator, id).await?;
        if requested_by == operator.actor() {
            let reason = "the second person is another one than the first";
            return Err(Denial::new(StatusCode::FORBIDDEN, reason).into());
        }
        let mut tx = core.db.begin().await?;
        // Whoever disables the operator comes first, or takes this grant back.
        let granted = sqlx::query!(
            "with granter as (select disabled_at from operator where name = $2 for share) \
             update approval set granted_by = $2, decided_at = now() \
             where approval_id = $1 and requested_by <> $2 and granted_by is null \
                 and refused_by is null and used_at is null and expires_at > now() \
                 and not exists (select from granter where disabled_at is not null)",
            id,
            operator.actor(),
        )
        .execute(&mut *tx)
        .await?;
        if granted.rows_affected() == 0 {
            return Err(Denial::conflict("the approval is not pending").into());
        }
        let detail = json!({ "requestedBy": requested_by });
        record(&mut tx, core, &operator, "approval.grant", id, detail).await?;
        tx.commit().await?;
        Ok(NoContent)
    }
}

/// `POST /admin/v1/approvals/{id}/refuse`
pub struct RefuseApproval;

impl Endpoint for RefuseApproval {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/approvals/{id}/refuse";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "Refuse a call of another operator, or withdraw one",
        details: "Takes a role that the call itself needs. Also takes back an approval that is \
                  granted and not used yet.",
        path: &[ID],
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Uuid;
    type Response = NoContent;

    fn read(input: &Input, _: &Operator) -> Result<Uuid> {
        input.param("id").parse().map_err(|_| Denial::not_found("approval").into())
    }

    async fn call(core: &Core, operator: Operator, id: Uuid) -> Result<NoContent> {
        let requested_by = check(core, &operator, id).await?;
        let mut tx = core.db.begin().await?;
        let refused = sqlx::query!(
            "update approval set granted_by = null, refused_by = $2, decided_at = now() \
             where approval_id = $1 and refused_by is null and used_at is null",
            id,
            operator.actor(),
        )
        .execute(&mut *tx)
        .await?;
        if refused.rows_affected() == 0 {
            return Err(Denial::conflict("the approval is decided already").into());
        }
        let detail = json!({ "requestedBy": requested_by });
        record(&mut tx, core, &operator, "approval.refuse", id, detail).await?;
        tx.commit().await?;
        Ok(NoContent)
    }
}

/// The operator who made the call, if this one has a role that it needs.
async fn check(core: &Core, operator: &Operator, id: Uuid) -> Result<String> {
    let row =
        sqlx::query!("select method, route, requested_by from approval where approval_id = $1", id)
            .fetch_optional(&core.db)
            .await?
            .ok_or_else(|| Denial::not_found("approval"))?;
    let route = route_of(core, &row.method, &row.route);
    operator.check(route.map_or(&[], |route| route.approvers))?;
    Ok(row.requested_by)
}
