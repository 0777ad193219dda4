//! Checks that the sandbox has simulated: they prove nothing once the partner is live.

use uuid::Uuid;

use crate::platform::db::Connection;
use crate::platform::error::Result;

/// Most users or accounts that one statement resets, so that each ends in time.
const ROWS_MAX: i64 = 5_000;

/// Resets the checks that users of a test client have passed, and the marks of their accounts, in the
/// transaction that makes it live; nothing for a partner that is live. What operators have blocked
/// stays so.
///
/// # Errors
/// When the database cannot be written.
pub async fn reset(conn: &mut Connection, slug: &str) -> Result<()> {
    let client = sqlx::query_scalar!(
        "select client_id from client where slug = $1 and mode = 'test' for no key update",
        slug,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(client) = client else { return Ok(()) };
    let mut after = Uuid::nil();
    while let Some(last) = reset_users(conn, client, after).await? {
        // A check that is under way would stand in the way of the provider's. After the users: whoever
        // ends one has locked its user.
        end_checks(conn, client, after, last).await?;
        after = last;
    }
    // After the users: whoever opens an account locks its user.
    while reset_accounts(&mut *conn, client).await? > 0 {}
    Ok(())
}

/// Resets the next users after this one, locked in the order of their ids; the last of them, if there
/// are any. Every row is written: that of a user whose check is about to be simulated is waited for.
async fn reset_users(conn: &mut Connection, client: Uuid, after: Uuid) -> Result<Option<Uuid>> {
    let last = sqlx::query_scalar!(
        r#"
        with page as materialized (
            select user_id from end_user where client_id = $1 and user_id > $2
            order by user_id limit $3 for no key update
        ), reset as (
            update end_user u set
                activated_at = case when email_status = 'verified' then null
                    else activated_at end,
                email_status = case email_status when 'verified' then 'pending'
                    else email_status end,
                identity_status = case identity_status when 'verified' then 'pending'
                    else identity_status end,
                amld5_status = case amld5_status when 'verified' then 'pending'
                    else amld5_status end,
                privacy_agreement_status = case privacy_agreement_status
                    when 'verified' then 'pending' else privacy_agreement_status end,
                residential_address_status = case residential_address_status
                    when 'verified' then 'missing' else residential_address_status end,
                dac8_status = case dac8_status when 'present' then 'unknown'
                    else dac8_status end
            from page p
            where u.client_id = $1 and u.user_id = p.user_id and u.deleted_at is null
        )
        select user_id as "user_id!" from page order by user_id desc limit 1
        "#,
        client,
        after,
        ROWS_MAX,
    )
    .fetch_optional(conn)
    .await?;
    Ok(last)
}

/// Ends the identity checks of the users after the one and up to the other.
async fn end_checks(conn: &mut Connection, client: Uuid, after: Uuid, last: Uuid) -> Result<()> {
    sqlx::query!(
        "update command set state = 'rejected', finished_at = coalesce(finished_at, now()) \
         where client_id = $1 and user_id > $2 and user_id <= $3 and connector = 'sandbox' \
             and kind = 'identity.start' and state <> 'rejected'",
        client,
        after,
        last,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Resets accounts; the number of them.
async fn reset_accounts(conn: &mut Connection, client: Uuid) -> Result<u64> {
    let reset = sqlx::query!(
        "update payment_account set verified_at = null, limit_raised = false \
         where client_id = $1 and (user_id, account_id) in ( \
             select user_id, account_id from payment_account \
             where client_id = $1 and (verified_at is not null or limit_raised) limit $2)",
        client,
        ROWS_MAX,
    )
    .execute(conn)
    .await?;
    Ok(reset.rows_affected())
}
