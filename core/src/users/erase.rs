//! Erasure of a user: deleting the data key makes everything sealed with it unreadable in every copy
//! of the database. Anonymous records that anti-money-laundering law requires stay: orders, level,
//! country, dates and results of verifications.

use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::object_store::remove_later;
use rampart_types::{ClientId, UserId};

/// Erases the user in the caller's transaction; `false` when it was erased before.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn erase(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    user: UserId,
) -> Result<bool> {
    // The code is found by the address, so it is deleted first.
    sqlx::query!(
        "delete from email_code where client_id = $1 and email_index in ( \
             select email_index from end_user where client_id = $1 and user_id = $2)",
        client.uuid(),
        user.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    let erased = sqlx::query!(
        "update end_user set sealed_key = null, personal = null, email_index = null, \
             password_hash = null, region = null, newsletter = false, \
             tokens_valid_from = $3, deleted_at = $3 \
         where client_id = $1 and user_id = $2 and deleted_at is null",
        client.uuid(),
        user.uuid(),
        core.clock.now(),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "delete from user_identifier where client_id = $1 and user_id = $2",
        client.uuid(),
        user.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    // A login token has no personal data; it stays so that its use is reported with ER335.
    sqlx::query!(
        "delete from one_time_token \
         where client_id = $1 and user_id = $2 and purpose = 'reset-password'",
        client.uuid(),
        user.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "delete from mail_outbox where client_id = $1 and user_id = $2",
        client.uuid(),
        user.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update payment_account set sealed = null, identifier_index = null \
         where client_id = $1 and user_id = $2",
        client.uuid(),
        user.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    delete_payloads(conn, client, user).await?;
    // The images are unreadable by now; they are removed as well.
    remove_later(conn, (client, user), core.clock.now()).await?;
    sqlx::query!(
        "update user_document set sealed_digest = null where client_id = $1 and user_id = $2",
        client.uuid(),
        user.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(erased.rows_affected() == 1)
}

/// Deletes payloads that partners signed for the user: offers and orders keep the decisions.
async fn delete_payloads(
    conn: &mut Connection,
    client: ClientId,
    user: UserId,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "update offer set signature_decision = signature_decision - 'input' \
         where client_id = $1 and user_id = $2 and signature_decision is not null",
        client.uuid(),
        user.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        r#"
        update buy_order set policy_decisions = (
            select jsonb_agg(
                case when decision ->> 'kind' = 'signature' then decision - 'input' else decision end
                order by place)
            from jsonb_array_elements(policy_decisions) with ordinality as d (decision, place))
        where client_id = $1 and user_id = $2
            and policy_decisions @> '[{"kind": "signature"}]'
        "#,
        client.uuid(),
        user.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(())
}
