//! `POST /admin/v1/approvals/{id}/grant` and `POST …/refuse`

use http::{Method, StatusCode};
use serde_json::json;
use uuid::Uuid;

use super::{check_approver, identities, record, route_of};
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
        details: "Takes a role that the call itself needs, and every one that a configuration needs \
                  for what it changes; never the operator who made it. That operator then makes \
                  the same call again, once, within a day of the first.",
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
        let identity = operator.known_identity()?;
        let call = check(core, &operator, id).await?;
        if call.is_own {
            let reason = "you have made this call yourself: another operator must agree to it";
            return Err(Denial::new(StatusCode::FORBIDDEN, reason).into());
        }
        let declared: Vec<_> = call
            .declared
            .iter()
            .chain(&[Role::Owner])
            .map(|role| role.as_str().to_owned())
            .collect();
        let mut tx = core.db.begin().await?;
        // Whoever disables the operator, takes their roles or ends their session comes first, or
        // takes this grant back.
        let granted = sqlx::query!(
            "with granter as (\
                 select operator_id, roles, disabled_at from operator where name = $2 \
                     or name in (select name from operator_identity where identity = $3) \
                 for share), \
             own_session as (\
                 select session_id from operator_session \
                 where session_id = $4 and expires_at > now() for share) \
             update approval set granted_by = $2, granted_by_identity = $3, decided_at = now() \
             where approval_id = $1 and granted_by is null \
                 and refused_by is null and used_at is null and expires_at > now() \
                 and not exists (select from granter where disabled_at is not null \
                     or operator_id::text = $3 and not (roles && $5::text[] \
                         and (roles @> approval.approver_roles or 'owner' = any (roles)))) \
                 and ($4::uuid is null or exists (select from own_session))",
            id,
            operator.actor(),
            identity,
            operator.session(),
            &declared,
        )
        .execute(&mut *tx)
        .await?;
        if granted.rows_affected() == 0 {
            let reason = "the approval is not pending: it was decided, has expired, or you may \
                          decide no more";
            return Err(Denial::conflict(reason).into());
        }
        let detail = json!({ "requestedBy": call.requested_by });
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
        details: "Takes the roles that the second person needs, but for one's own call. Also takes \
                  back an approval that is granted and not used yet.",
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
        let HeldCall { requested_by, .. } = check(core, &operator, id).await?;
        let mut tx = core.db.begin().await?;
        let refused = sqlx::query!(
            "update approval set granted_by = null, granted_by_identity = null, refused_by = $2, \
                 decided_at = now() \
             where approval_id = $1 and refused_by is null and used_at is null",
            id,
            operator.actor(),
        )
        .execute(&mut *tx)
        .await?;
        if refused.rows_affected() == 0 {
            return Err(Denial::conflict("the approval was refused or used already").into());
        }
        let detail = json!({ "requestedBy": requested_by });
        record(&mut tx, core, &operator, "approval.refuse", id, detail).await?;
        tx.commit().await?;
        Ok(NoContent)
    }
}

/// A call that waits for a second person.
struct HeldCall {
    /// The name of the operator who made the call.
    requested_by: String,
    /// True if the one who decides is that person.
    is_own: bool,
    /// The roles that its endpoint declares for those who decide.
    declared: &'static [Role],
}

/// The call, if this operator has the roles that may decide, or has made it.
async fn check(core: &Core, operator: &Operator, id: Uuid) -> Result<HeldCall> {
    let own = identities(core, operator.identity()).await?;
    let row = sqlx::query!(
        r#"
        select a.method, a.route, a.requested_by, a.approver_roles,
            coalesce(a.requested_by_identity = any ($2), a.requested_by = $3) as "is_own!"
        from approval a where a.approval_id = $1
        "#,
        id,
        &own,
        operator.actor(),
    )
    .fetch_optional(&core.db)
    .await?
    .ok_or_else(|| Denial::not_found("approval"))?;
    let route = route_of(core, &row.method, &row.route);
    if !row.is_own {
        check_approver(operator, route, &row.approver_roles)?;
    }
    let declared: &[Role] = route.map_or(&[], |route| route.approvers);
    Ok(HeldCall { requested_by: row.requested_by, is_own: row.is_own, declared })
}
