//! Grants that count no more: calls that an operator has agreed to, and nobody has carried out yet,
//! wait again.

use uuid::Uuid;

use super::{approvers, route_of};
use crate::Core;
use crate::auth::roles::Role;
use crate::platform::db::Connection;
use crate::platform::error::Result;

/// Withdraws the grants of an operator who is disabled, and of people of the provider who have come
/// under that name.
///
/// # Errors
/// When the database cannot be written.
pub(in crate::operate::admin) async fn of_disabled(
    conn: &mut Connection,
    name: &str,
) -> Result<()> {
    sqlx::query!(
        "update approval set granted_by = null, granted_by_identity = null, decided_at = null \
         where (granted_by = $1 or granted_by is not null and granted_by_identity in (\
                 select identity from operator_identity where name = $1)) \
             and used_at is null and expires_at > now()",
        name,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Withdraws the grants of an operator that the roles which they still have do not suffice for, and
/// returns their ids.
///
/// # Errors
/// When the database cannot be used.
pub(in crate::operate::admin) async fn beyond_roles(
    conn: &mut Connection,
    core: &Core,
    identity: &str,
    roles: &[Role],
) -> Result<Vec<Uuid>> {
    let granted = sqlx::query!(
        "select approval_id, method, route, approver_roles from approval \
         where granted_by_identity = $1 and granted_by is not null \
             and used_at is null and expires_at > now()",
        identity,
    )
    .fetch_all(&mut *conn)
    .await?;
    let lost = granted.into_iter().filter(|row| {
        let route = route_of(core, &row.method, &row.route);
        let needed = approvers(route, &row.approver_roles);
        !needed.iter().all(|needed| Role::permits(roles, needed))
    });
    let lost: Vec<Uuid> = lost.map(|row| row.approval_id).collect();
    if lost.is_empty() {
        return Ok(lost);
    }
    sqlx::query!(
        "update approval set granted_by = null, granted_by_identity = null, decided_at = null \
         where approval_id = any ($1) and granted_by_identity = $2 and used_at is null",
        &lost,
        identity,
    )
    .execute(conn)
    .await?;
    Ok(lost)
}
