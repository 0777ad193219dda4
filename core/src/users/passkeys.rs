//! Passkeys of users: they stand beside the password of who has one, and sign in without it.
//!
//! A challenge is a row that is deleted by who answers, so it is good once; one of the account's kind
//! also shows that its user has just signed in.

pub(crate) mod sign_in;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};

use super::account::{RowLock, lock};
use super::personal_data::load_key;
use super::second_factor_change;
use super::security_notice::Changed;
use crate::Core;
use crate::auth::webauthn::Credential;
use crate::platform::crypto::sha256;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use rampart_types::{ClientId, UserId, UserKey};

/// Most passkeys of one user.
pub(crate) const PASSKEYS_MAX: i64 = 10;
/// Longest name of a passkey, in characters.
pub(crate) const NAME_CHARS_MAX: usize = 60;
/// Lifetime of a challenge that proves a user, in seconds.
pub(crate) const SIGN_IN_SECONDS: i32 = 300;
/// Time after a sign-in in which a user may use the account's page, in seconds.
const ACCOUNT_SECONDS: i32 = 600;
/// Random bytes of a challenge: 256 bits.
const CHALLENGE_BYTES: usize = 32;

/// A user's passkey.
#[derive(Debug)]
pub(crate) struct Passkey {
    pub(crate) id: Vec<u8>,
    /// Name that the user has given it.
    pub(crate) name: String,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) last_used_at: Option<DateTime<Utc>>,
}

/// The outcome of adding a passkey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// It is stored.
    Stored,
    /// The credential is somebody's already, or the user has [`PASSKEYS_MAX`].
    Refused,
}

fn random_challenge(core: &Core) -> Result<String> {
    Ok(URL_SAFE_NO_PAD.encode(core.clock.random_bytes::<CHALLENGE_BYTES>()?))
}

/// A challenge for a user's changes, which shows that the user has just signed in.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn account_challenge(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
) -> Result<String> {
    let challenge = random_challenge(core)?;
    sqlx::query!(
        "insert into passkey_challenge (client_id, challenge_digest, purpose, user_id, expires_at) \
         values ($1, $2, 'account', $3, rampart_now() + make_interval(secs => $4::int))",
        key.client.uuid(),
        &sha256(&challenge)[..],
        key.user.uuid(),
        ACCOUNT_SECONDS,
    )
    .execute(conn)
    .await?;
    Ok(challenge)
}

/// Locks the user's row for what a challenge for changes has permitted; `false` when that has ended, by
/// its time or with the user's sessions.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn lock_visit(
    conn: &mut Connection,
    key: UserKey,
    challenge: &str,
    strength: RowLock,
) -> Result<bool> {
    if !lock(conn, key, strength).await? {
        return Ok(false);
    }
    let lasts = sqlx::query_scalar!(
        r#"
        select exists (select from passkey_challenge
            where client_id = $1 and challenge_digest = $2 and purpose = 'account'
                and user_id = $3 and expires_at > rampart_now()) as "lasts!"
        "#,
        key.client.uuid(),
        &sha256(challenge)[..],
        key.user.uuid(),
    )
    .fetch_one(conn)
    .await?;
    Ok(lasts)
}

/// The user of a challenge for changes, which stays good for one. `None` when it is unknown, used or
/// expired.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn account_challenge_holder(
    core: &Core,
    client: ClientId,
    challenge: &str,
) -> Result<Option<UserId>> {
    let user = sqlx::query_scalar!(
        r#"
        select user_id as "user_id!" from passkey_challenge
        where client_id = $1 and challenge_digest = $2 and purpose = 'account'
            and expires_at > rampart_now()
        "#,
        client.uuid(),
        &sha256(challenge)[..],
    )
    .fetch_optional(&core.db)
    .await?;
    Ok(user.map(UserId::from))
}

/// Uses a challenge for changes up and gives its user the next one, which ends when this one would
/// have. `None` when it is unknown, used or expired. Locks the user's row meanwhile: what ends the user's
/// sessions comes first, or voids the next one.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn renew_account_challenge(
    core: &Core,
    client: ClientId,
    challenge: &str,
) -> Result<Option<(UserId, String)>> {
    let next = random_challenge(core)?;
    let user = sqlx::query_scalar!(
        r#"
        with holder as (
            select user_id from passkey_challenge c join end_user u using (client_id, user_id)
            where c.client_id = $1 and challenge_digest = $2 and purpose = 'account'
                and expires_at > rampart_now()
            for no key update of u
        ), used as (
            delete from passkey_challenge c using holder
            where c.client_id = $1 and c.challenge_digest = $2 and c.user_id = holder.user_id
            returning c.user_id, c.expires_at
        )
        insert into passkey_challenge (client_id, challenge_digest, purpose, user_id, expires_at)
        select $1, $3, 'account', user_id, expires_at from used
        returning user_id as "user_id!"
        "#,
        client.uuid(),
        &sha256(challenge)[..],
        &sha256(&next)[..],
    )
    .fetch_optional(&core.db)
    .await?;
    Ok(user.map(|user| (user.into(), next)))
}

/// The user's passkeys, oldest first.
///
/// # Errors
/// When the database cannot be read, or a name cannot be opened.
pub(crate) async fn list(conn: &mut Connection, core: &Core, key: UserKey) -> Result<Vec<Passkey>> {
    let rows = sqlx::query!(
        "select credential_id, sealed_name, created_at, last_used_at from passkey \
         where client_id = $1 and user_id = $2 order by created_at, credential_id limit $3",
        key.client.uuid(),
        key.user.uuid(),
        PASSKEYS_MAX,
    )
    .fetch_all(&mut *conn)
    .await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let personal_key = load_key(conn, core, key).await?;
    let passkeys = rows.into_iter().map(|row| {
        let name =
            personal_key.open_sealed(&name_location(&row.credential_id), &row.sealed_name)?;
        let name = String::from_utf8(name)
            .map_err(|error| Error::internal("read the name of a passkey", error))?;
        Ok(Passkey {
            id: row.credential_id,
            name,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
        })
    });
    passkeys.collect()
}

/// Stores a verified credential as the user's passkey, as long as the visit of this challenge lasts.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn add(
    core: &Core,
    key: UserKey,
    visit: &str,
    name: &str,
    credential: &Credential,
) -> Result<Added> {
    let mut tx = core.db.begin().await?;
    // Additions of one user follow each other, so that none exceeds the limit.
    if !lock_visit(&mut tx, key, visit, RowLock::Update).await? {
        return Ok(Added::Refused);
    }
    let personal_key = load_key(&mut tx, core, key).await?;
    let sealed = personal_key.seal(&core.clock, &name_location(&credential.id), name.as_bytes())?;
    let stored = sqlx::query!(
        "insert into passkey (client_id, credential_id, user_id, sealed_name, public_key, \
             sign_count, created_at) \
         select $1, $2, $3, $4, $5, $6, rampart_now() \
         where (select count(*) from passkey where client_id = $1 and user_id = $3) < $7 \
         on conflict (client_id, credential_id) do nothing",
        key.client.uuid(),
        credential.id,
        key.user.uuid(),
        sealed,
        credential.public_key,
        i64::from(credential.sign_count),
        PASSKEYS_MAX,
    )
    .execute(&mut *tx)
    .await?;
    if stored.rows_affected() == 0 {
        return Ok(Added::Refused);
    }
    second_factor_change::follow(&mut tx, core, key, visit, Changed::PasskeyAdded).await?;
    tx.commit().await?;
    Ok(Added::Stored)
}

/// Removes one of the user's passkeys; `false` when the user has none of this id, or the visit of this
/// challenge has ended.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn remove(core: &Core, key: UserKey, visit: &str, id: &[u8]) -> Result<bool> {
    let mut tx = core.db.begin().await?;
    if !lock_visit(&mut tx, key, visit, RowLock::Update).await? {
        return Ok(false);
    }
    let removed = sqlx::query!(
        "delete from passkey where client_id = $1 and user_id = $2 and credential_id = $3",
        key.client.uuid(),
        key.user.uuid(),
        id,
    )
    .execute(&mut *tx)
    .await?;
    if removed.rows_affected() == 0 {
        return Ok(false);
    }
    second_factor_change::follow(&mut tx, core, key, visit, Changed::PasskeyRemoved).await?;
    tx.commit().await?;
    Ok(true)
}

/// Removes all of the user's passkeys; `true` if there were any.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn remove_all(conn: &mut Connection, key: UserKey) -> Result<bool> {
    let removed = sqlx::query!(
        "delete from passkey where client_id = $1 and user_id = $2",
        key.client.uuid(),
        key.user.uuid(),
    )
    .execute(&mut *conn)
    .await?;
    end_challenges(conn, key).await?;
    Ok(removed.rows_affected() > 0)
}

/// Makes the user's challenges void, as a changed password does.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn end_challenges(
    conn: &mut Connection,
    UserKey { client, user }: UserKey,
) -> Result<()> {
    sqlx::query!(
        "delete from passkey_challenge where client_id = $1 and user_id = $2",
        client.uuid(),
        user.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes the client's challenges that have expired, at most `rows_max`; their number.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn delete_expired_challenges(
    core: &Core,
    client: ClientId,
    rows_max: i64,
) -> Result<u64> {
    let deleted = sqlx::query!(
        "delete from passkey_challenge where client_id = $1 and challenge_digest in ( \
             select challenge_digest from passkey_challenge \
             where client_id = $1 and expires_at <= rampart_now() \
             limit $2 for update skip locked)",
        client.uuid(),
        rows_max,
    )
    .execute(&core.db)
    .await?;
    Ok(deleted.rows_affected())
}

/// The place that a name is sealed for.
fn name_location(id: &[u8]) -> String {
    format!("passkey/name/{}", URL_SAFE_NO_PAD.encode(id))
}
