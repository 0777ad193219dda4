//! Erasure of a user: deleting the data key makes everything sealed with it unreadable in every copy
//! of the database that was made without the table of keys, or whose master key is gone. Anonymous
//! records that anti-money-laundering law requires stay: orders, level, country, dates and results of
//! verifications. Who has ordered is kept as a retained record, under a key of its own.

use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::object_store::remove_later;
use crate::users::{authenticator_app, passkeys, retained_record, search_index};
use rampart_types::{UserId, UserKey};

/// Carries out a statement about the user: `$1` is the client, `$2` the user.
macro_rules! of_user {
    ($conn:ident, $key:ident, $statement:literal) => {
        sqlx::query!($statement, $key.client.uuid(), $key.user.uuid()).execute(&mut *$conn).await?
    };
}

/// Erases the user in the caller's transaction.
///
/// # Errors
/// When the database cannot be written.
pub async fn erase(conn: &mut Connection, core: &Core, key: UserKey) -> Result<()> {
    // What is kept is read before anything is gone.
    let kept = retained_record::keep(conn, core, key).await?;
    // The code is found by the address, so it is deleted before that.
    of_user!(
        conn,
        key,
        "delete from email_code where client_id = $1 and email_index in ( \
             select email_index from end_user where client_id = $1 and user_id = $2)"
    );
    sqlx::query!(
        "update end_user set sealed_key = null, personal = null, email_index = null, \
             password_hash = null, region = null, newsletter = false, \
             tokens_valid_from = $3, deleted_at = $3 \
         where client_id = $1 and user_id = $2 and deleted_at is null",
        key.client.uuid(),
        key.user.uuid(),
        core.clock.now(),
    )
    .execute(&mut *conn)
    .await?;
    of_user!(conn, key, "delete from personal_key where client_id = $1 and user_id = $2");
    // Identifiers stay, as keyed digests, so that their use is reported with ER709. A login token has
    // no personal data either; it stays so that its use is reported with ER335.
    of_user!(
        conn,
        key,
        "delete from one_time_token \
         where client_id = $1 and user_id = $2 and purpose = 'reset-password'"
    );
    of_user!(conn, key, "delete from mail_outbox where client_id = $1 and user_id = $2");
    of_user!(
        conn,
        key,
        "update payment_account set sealed = null, identifier_index = null \
         where client_id = $1 and user_id = $2"
    );
    delete_details(conn, key).await?;
    delete_payloads(conn, key).await?;
    delete_held_calls(conn, key.user).await?;
    delete_reports(conn, key).await?;
    // Images that are not kept are unreadable by now; they are removed as well.
    remove_later(conn, key, &kept, core.clock.now()).await?;
    of_user!(
        conn,
        key,
        "update user_document set sealed_digest = null where client_id = $1 and user_id = $2"
    );
    Ok(())
}

/// Deletes what the user is found by, second factors, saved answers, devices of sessions, what the
/// user called savings plans, what came with checkouts from elsewhere, and what providers were told of
/// the user.
async fn delete_details(conn: &mut Connection, key: UserKey) -> Result<()> {
    search_index::delete(conn, key).await?;
    passkeys::remove_all(conn, key).await?;
    authenticator_app::remove(conn, key).await?;
    // A repeated registration would show its answer again, with address, name and telephone. The key of
    // a request that is under way, as the erasure's own, has no answer yet; saving one that tells of the
    // user waits for the user's row, which is locked, and finds nobody.
    of_user!(
        conn,
        key,
        "delete from idempotency_key \
         where client_id = $1 and user_id = $2 and status is not null"
    );
    of_user!(
        conn,
        key,
        "update refresh_family set device = null \
         where client_id = $1 and user_id = $2 and device is not null"
    );
    of_user!(
        conn,
        key,
        "update dca_plan set name = null \
         where client_id = $1 and user_id = $2 and name is not null"
    );
    of_user!(conn, key, "delete from command where client_id = $1 and user_id = $2");
    delete_of_checkouts(conn, key).await?;
    Ok(())
}

/// Deletes what came with checkouts from elsewhere: with those of the user, and with those that the
/// partner made for an identifier of the user's, whoever has bought there.
async fn delete_of_checkouts(conn: &mut Connection, key: UserKey) -> Result<(), sqlx::Error> {
    of_user!(
        conn,
        key,
        "update checkout c set identifier_digest = null, sealed_share_token = null \
         where c.client_id = $1 and c.offer_id in ( \
             select offer_id from offer where client_id = $1 and user_id = $2 \
             union all select offer_id from buy_order \
             where client_id = $1 and user_id = $2 and offer_id is not null \
             union all select k.offer_id from user_identifier i \
             join checkout k using (client_id, identifier_digest) \
             where i.client_id = $1 and i.user_id = $2)"
    );
    Ok(())
}

/// Locks the user's orders, after offers and in the order in which others lock them. Whoever commands a
/// transfer, has it tried again, or is told of a payment, holds its order's row: what came before is
/// deleted by the statements that follow, and what comes later sees that the user is gone.
async fn lock_orders(
    conn: &mut Connection,
    UserKey { client, user }: UserKey,
) -> Result<(), sqlx::Error> {
    sqlx::query_scalar!(
        "select order_id from buy_order where client_id = $1 and user_id = $2 \
         order by order_id for update",
        client.uuid(),
        user.uuid(),
    )
    .fetch_all(&mut *conn)
    .await?;
    sqlx::query_scalar!(
        "select order_id from sell_order where client_id = $1 and user_id = $2 \
         order by order_id for update",
        client.uuid(),
        user.uuid(),
    )
    .fetch_all(conn)
    .await?;
    Ok(())
}

/// Deletes payloads that partners signed for the user: offers and orders keep the decisions.
async fn delete_payloads(conn: &mut Connection, key: UserKey) -> Result<(), sqlx::Error> {
    of_user!(
        conn,
        key,
        "update offer set signature_decision = signature_decision - 'input' \
         where client_id = $1 and user_id = $2 and signature_decision is not null"
    );
    lock_orders(conn, key).await?;
    of_user!(
        conn,
        key,
        r#"
        update buy_order set policy_decisions = (
            select jsonb_agg(
                case when decision ->> 'kind' = 'signature' then decision - 'input' else decision end
                order by place)
            from jsonb_array_elements(policy_decisions) with ordinality as d (decision, place))
        where client_id = $1 and user_id = $2
            and policy_decisions @> '[{"kind": "signature"}]'
        "#
    );
    Ok(())
}

/// Deletes the bodies of operators' calls about the user that needed a second person: they may name an
/// account, its holder, or an address.
async fn delete_held_calls(conn: &mut Connection, user: UserId) -> Result<(), sqlx::Error> {
    // A path has the user's id as it was typed, in any notation of a UUID.
    sqlx::query!(
        "update approval set sealed_body = null \
         where sealed_body is not null and strpos(replace(lower(path), '-', ''), $1) > 0",
        user.uuid().simple().to_string(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes what providers have reported of the user's payments, and who the user's sales were paid out
/// to: the payments stay, with amount and reference.
async fn delete_reports(conn: &mut Connection, key: UserKey) -> Result<(), sqlx::Error> {
    of_user!(
        conn,
        key,
        r#"
        with traded as materialized (
            select order_id from buy_order where client_id = $1 and user_id = $2
            union all
            select order_id from sell_order where client_id = $1 and user_id = $2
        ), paid as materialized (
            select client_id, payment_id from payment
            where client_id = $1 and order_id in (select order_id from traded)
            union
            select client_id, payment_id from payment_match
            where to_client_id = $1 and order_id in (select order_id from traded)
        ), told as (
            update connector_event e set sealed_report = null from paid
            where e.payment_client_id = paid.client_id and e.payment_id = paid.payment_id
        ), sent as (
            -- of a transfer that ended before its end deleted it, and of one that no connector has begun:
            -- it has no recipient any more
            update command set sealed_body = null, checkpoint = null,
                state = case state when 'open' then 'rejected' else state end,
                finished_at = coalesce(finished_at, now())
            where client_id = $1 and order_id in (select order_id from traded)
                and kind = 'transfer.send' and (state <> 'open' or attempt = retries)
        )
        delete from payment_report r using paid
        where r.client_id = paid.client_id and r.payment_id = paid.payment_id
        "#
    );
    // A provider's words about a payer whom it has refused.
    of_user!(
        conn,
        key,
        "with denied as ( \
             update buy_order set status_reason = null \
             where client_id = $1 and user_id = $2 and status_cause = 'payment-denied' \
                 and status_reason is not null \
             returning order_id) \
         update order_transition t set reason = null from denied \
         where t.client_id = $1 and t.order_id = denied.order_id and t.cause = 'payment-denied'"
    );
    Ok(())
}
