//! Dependents of a partner, and of its keys, endpoints, policies and staff.

use rampart_plugins::contract::PolicyKind;
use uuid::Uuid;

use super::{COUNTED_MAX, Dependents, LOOKED_AT_MAX};
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use rampart_types::ClientId;

/// Those of a partner.
pub(super) async fn of_partner(conn: &mut Connection, client: ClientId) -> Result<Dependents> {
    let row = sqlx::query!(
        r#"
        select
            (select count(*) from (
                (select 1 from (select status from buy_order where client_id = $1
                    order by created_at desc, order_id desc limit $3) newest
                 where status = 'pending')
                union all
                (select 1 from buy_order where client_id = $1
                    and status in ('in progress', 'blocked') and status <> 'pending' limit $2)
                union all
                (select 1 from sell_order where client_id = $1
                    and status in ('pending', 'in progress', 'blocked') limit $2)
                limit $2) orders) as "open_orders!",
            (select count(*) from (select from api_key where client_id = $1
                and revoked_at is null and (expires_at is null or expires_at > rampart_now())
                limit $2) keys) as "api_keys!",
            (select count(*) from (select from end_user where client_id = $1
                and deleted_at is null and disabled_at is null limit $2) users) as "users!",
            (select count(*) from (select from webhook_endpoint where client_id = $1
                and disabled_at is null limit $2) endpoints) as "endpoints!",
            (select count(*) from (select from staff_member where client_id = $1
                limit $2) staff) as "staff!"
        "#,
        client.uuid(),
        COUNTED_MAX,
        LOOKED_AT_MAX,
    )
    .fetch_one(conn)
    .await?;
    Ok(Dependents {
        open_orders: Some(row.open_orders),
        api_keys: Some(row.api_keys),
        users: Some(row.users),
        webhook_endpoints: Some(row.endpoints),
        staff: Some(row.staff),
        ..Dependents::default()
    })
}

/// Those of a part of a partner, by its kind and id.
///
/// # Errors
/// 404 when there is none.
pub(super) async fn of_part(
    conn: &mut Connection,
    client: ClientId,
    kind: &str,
    id: &str,
) -> Result<Dependents> {
    let uuid = |what: &str| id.parse::<Uuid>().map_err(|_| Denial::not_found(what));
    match kind {
        "apiKey" => of_api_key(conn, client, uuid("API key")?).await,
        "webhook" => of_webhook(conn, client, uuid("webhook endpoint")?).await,
        "staff" => of_staff(conn, client, uuid("member of the staff")?).await,
        _ => {
            let kind =
                PolicyKind::from_name(id).ok_or_else(|| Denial::not_found("kind of policy"))?;
            of_policy(conn, client, kind).await
        }
    }
}

async fn of_api_key(conn: &mut Connection, client: ClientId, key: Uuid) -> Result<Dependents> {
    let row = sqlx::query!(
        r#"
        select k.last_used_at, (select count(*) from (select from api_key o
            where o.client_id = $1 and o.api_key_id <> $2 and o.revoked_at is null
                and (o.expires_at is null or o.expires_at > rampart_now())
            limit $3) others) as "others!"
        from api_key k where k.client_id = $1 and k.api_key_id = $2 and k.revoked_at is null
        "#,
        client.uuid(),
        key,
        COUNTED_MAX,
    )
    .fetch_optional(conn)
    .await?
    .ok_or_else(|| Denial::not_found("API key"))?;
    let (api_keys, last_used_at) = (Some(row.others), row.last_used_at);
    Ok(Dependents { api_keys, last_used_at, ..Dependents::default() })
}

async fn of_webhook(conn: &mut Connection, client: ClientId, id: Uuid) -> Result<Dependents> {
    let pending = sqlx::query_scalar!(
        r#"
        select (select count(*) from (select from delivery d
            where d.client_id = $1 and d.endpoint_id = $2 and d.state = 'pending'
            limit $3) deliveries) as "deliveries!"
        from webhook_endpoint w where w.client_id = $1 and w.endpoint_id = $2
        "#,
        client.uuid(),
        id,
        COUNTED_MAX,
    )
    .fetch_optional(conn)
    .await?
    .ok_or_else(|| Denial::not_found("webhook endpoint"))?;
    Ok(Dependents { pending_deliveries: Some(pending), ..Dependents::default() })
}

async fn of_staff(conn: &mut Connection, client: ClientId, id: Uuid) -> Result<Dependents> {
    let sessions = sqlx::query_scalar!(
        r#"
        select (select count(*) from (select from staff_session s
            where s.client_id = $1 and s.staff_id = $2 and s.expires_at > rampart_now()
            limit $3) sessions) as "sessions!"
        from staff_member m where m.client_id = $1 and m.staff_id = $2
        "#,
        client.uuid(),
        id,
        COUNTED_MAX,
    )
    .fetch_optional(conn)
    .await?
    .ok_or_else(|| Denial::not_found("member of the staff"))?;
    Ok(Dependents { sessions: Some(sessions), ..Dependents::default() })
}

async fn of_policy(
    conn: &mut Connection,
    client: ClientId,
    kind: PolicyKind,
) -> Result<Dependents> {
    let row = sqlx::query!(
        r#"
        select
            (select count(*) from (select from policy_version where client_id = $1 and kind = $2
                limit $3) versions) as "versions!",
            (select count(*) from (select from end_user where client_id = $1
                and deleted_at is null and disabled_at is null limit $3) users) as "users!"
        "#,
        client.uuid(),
        kind.as_str(),
        COUNTED_MAX,
    )
    .fetch_one(conn)
    .await?;
    let (versions, users) = (Some(row.versions), Some(row.users));
    Ok(Dependents { versions, users, ..Dependents::default() })
}
