//! The authenticator app of a user: a second factor beside the password, on the pages for shoppers.
//! Each of its codes counts once.

use chrono::{DateTime, Utc};

use super::account::RowLock;
use super::passkeys::lock_visit;
use super::personal_data::load_key;
use super::second_factor_change;
use super::security_notice::Changed;
use crate::Core;
use crate::auth::caller::Client;
use crate::auth::totp::TotpSecret;
use crate::platform::crypto::personal_data_key::PersonalDataKey;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use rampart_types::{UserId, UserKey};

/// The place that a secret is sealed for.
const LOCATION: &str = "authenticator_app/secret";

/// Gives the user a new secret, whose codes are asked for once the user has entered the first one.
/// `None` while another one is in use, of a user who is gone, or when the visit of this challenge has
/// ended.
///
/// # Errors
/// Without entropy; when the database cannot be written.
pub(crate) async fn begin(core: &Core, key: UserKey, visit: &str) -> Result<Option<TotpSecret>> {
    let secret = TotpSecret::generate(&core.clock)?;
    let mut tx = core.db.begin().await?;
    if !lock_visit(&mut tx, key, visit, RowLock::Update).await? {
        return Ok(None);
    }
    let personal_key = load_key(&mut tx, core, key).await?;
    let begun = sqlx::query!(
        "insert into authenticator_app as app (client_id, user_id, sealed_secret) \
         values ($1, $2, $3) \
         on conflict (client_id, user_id) do update \
             set sealed_secret = excluded.sealed_secret, last_step = 0 \
             where app.confirmed_at is null",
        key.client.uuid(),
        key.user.uuid(),
        personal_key.seal(&core.clock, LOCATION, secret.bytes())?,
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok((begun.rows_affected() > 0).then_some(secret))
}

/// The secret that is not in use yet.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn begun(core: &Core, key: UserKey) -> Result<Option<TotpSecret>> {
    let mut conn = core.db.acquire().await?;
    let sealed = sealed(&mut conn, key, false).await?;
    let Some(sealed) = sealed else { return Ok(None) };
    open(&load_key(&mut conn, core, key).await?, &sealed).map(Some)
}

/// Since when codes of an app are asked for; `None` if they are not.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn in_use_since(
    conn: &mut Connection,
    UserKey { client, user }: UserKey,
) -> Result<Option<DateTime<Utc>>> {
    let since = sqlx::query_scalar!(
        "select confirmed_at from authenticator_app where client_id = $1 and user_id = $2",
        client.uuid(),
        user.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(since.flatten())
}

/// Puts the secret that was given last in use, if the code is one of its own and the visit of this
/// challenge lasts.
///
/// # Errors
/// Code 920 after too many attempts; when the database cannot be used.
pub(crate) async fn confirm(
    core: &Core,
    client: &Client,
    user: UserId,
    visit: &str,
    code: &str,
) -> Result<bool> {
    core.user_attempts.count_code(core, client, user).await?;
    let key = client.key_of(user);
    let mut tx = core.db.begin().await?;
    if !lock_visit(&mut tx, key, visit, RowLock::NoKeyUpdate).await?
        || !redeem(&mut tx, core, key, code, false).await?
    {
        return Ok(false);
    }
    let changed = Changed::AuthenticatorAppAdded;
    second_factor_change::follow(&mut tx, core, key, visit, changed).await?;
    tx.commit().await?;
    Ok(true)
}

/// True if the code is one of the app in use, and has not counted before.
///
/// # Errors
/// Code 920 after too many attempts; when the database cannot be used.
pub(crate) async fn verify(core: &Core, client: &Client, user: UserId, code: &str) -> Result<bool> {
    core.user_attempts.count_code(core, client, user).await?;
    let mut conn = core.db.acquire().await?;
    redeem(&mut conn, core, client.key_of(user), code, true).await
}

/// Uses a code up: of several attempts with one code, one counts.
async fn redeem(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    code: &str,
    in_use: bool,
) -> Result<bool> {
    let sealed = sealed(conn, key, in_use).await?;
    let Some(sealed) = sealed else { return Ok(false) };
    let secret = open(&load_key(conn, core, key).await?, &sealed)?;
    let Some(step) = secret.verify(code, core.clock.unix_seconds()) else { return Ok(false) };
    let used = sqlx::query!(
        "update authenticator_app \
         set last_step = $4, confirmed_at = coalesce(confirmed_at, rampart_now()) \
         where client_id = $1 and user_id = $2 and sealed_secret = $3 and last_step < $4",
        key.client.uuid(),
        key.user.uuid(),
        sealed,
        step,
    )
    .execute(conn)
    .await?;
    Ok(used.rows_affected() > 0)
}

/// Removes the user's app: the password suffices again. `true` if one was in use.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn remove(
    conn: &mut Connection,
    UserKey { client, user }: UserKey,
) -> Result<bool> {
    let removed = sqlx::query_scalar!(
        r#"
        delete from authenticator_app where client_id = $1 and user_id = $2
        returning confirmed_at is not null as "was_in_use!"
        "#,
        client.uuid(),
        user.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(removed.unwrap_or(false))
}

/// The sealed secret of a user who may sign in.
async fn sealed(conn: &mut Connection, key: UserKey, in_use: bool) -> Result<Option<Vec<u8>>> {
    let sealed = sqlx::query_scalar!(
        "select a.sealed_secret from authenticator_app a \
         join end_user u using (client_id, user_id) \
         where a.client_id = $1 and a.user_id = $2 and (a.confirmed_at is not null) = $3 \
             and u.deleted_at is null and u.disabled_at is null",
        key.client.uuid(),
        key.user.uuid(),
        in_use,
    )
    .fetch_optional(conn)
    .await?;
    Ok(sealed)
}

fn open(key: &PersonalDataKey, sealed: &[u8]) -> Result<TotpSecret> {
    TotpSecret::from_bytes(&key.open_sealed(LOCATION, sealed)?)
        .ok_or_else(|| Error::invariant("read the secret of an authenticator app"))
}
