//! Signing in with a passkey: after the password of its user, or alone.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sqlx::PgExecutor;

use super::{ACCOUNT_SECONDS, PASSKEYS_MAX, SIGN_IN_SECONDS, random_challenge};
use crate::Core;
use crate::auth::caller::Client;
use crate::auth::webauthn::{Assertion, CREDENTIAL_ID_BYTES_MAX, RelyingParty, decode};
use crate::platform::crypto::sha256;
use crate::platform::error::Result;
use rampart_types::{ClientId, UserId, UserKey};

/// An answer as a form brings it. Nothing of it is verified yet.
pub(crate) struct Answer<'a> {
    pub(crate) challenge: &'a str,
    /// Identifier of the credential, base64url.
    pub(crate) credential: &'a str,
    /// Whose the authenticator says it is, base64url; empty if it does not say.
    pub(crate) user_handle: &'a str,
    pub(crate) assertion: Assertion<'a>,
}

/// A user's name in an authenticator, base64url: the bytes of its id.
pub(crate) fn user_handle(user: UserId) -> String {
    URL_SAFE_NO_PAD.encode(user.uuid().as_bytes())
}

/// A challenge that proves this user, or whose passkey it is without one. That of a sign-in by password
/// is stored under the lock of its user: what ends the user's sessions comes before it, or voids it.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn challenge(
    executor: impl PgExecutor<'_>,
    core: &Core,
    client: ClientId,
    user: Option<UserId>,
) -> Result<String> {
    let challenge = random_challenge(core)?;
    sqlx::query!(
        "insert into passkey_challenge (client_id, challenge_digest, purpose, user_id, expires_at) \
         values ($1, $2, 'sign-in', $3, rampart_now() + make_interval(secs => $4::int))",
        client.uuid(),
        &sha256(&challenge)[..],
        user.map(UserId::uuid),
        SIGN_IN_SECONDS,
    )
    .execute(executor)
    .await?;
    Ok(challenge)
}

/// The identifiers of the user's passkeys; a password alone signs nobody in who has one.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn credentials(core: &Core, key: UserKey) -> Result<Vec<Vec<u8>>> {
    credentials_of_age(core, key, 0).await
}

/// The identifiers of those of the user's passkeys that were there before anybody could have added one
/// by a sign-in that still counts: they alone prove a user who is about to lose something for good.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn older_credentials(core: &Core, key: UserKey) -> Result<Vec<Vec<u8>>> {
    credentials_of_age(core, key, ACCOUNT_SECONDS).await
}

async fn credentials_of_age(
    core: &Core,
    UserKey { client, user }: UserKey,
    seconds_min: i32,
) -> Result<Vec<Vec<u8>>> {
    let ids = sqlx::query_scalar!(
        "select credential_id from passkey where client_id = $1 and user_id = $2 \
             and created_at <= rampart_now() - make_interval(secs => $3::int) limit $4",
        client.uuid(),
        user.uuid(),
        seconds_min,
        PASSKEYS_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(ids)
}

/// Verifies an answer and returns its user; `None` without telling what is wrong. Whatever comes of
/// it, the challenge is used up: of several answers to one, one is looked at.
///
/// # Errors
/// Code 920 after too many attempts for the credential; when the database cannot be used.
pub(crate) async fn verify(
    core: &Core,
    client: &Client,
    party: &RelyingParty,
    answer: &Answer<'_>,
) -> Result<Option<UserId>> {
    let Some(id) = decode(answer.credential, CREDENTIAL_ID_BYTES_MAX) else { return Ok(None) };
    core.user_attempts.count_passkey(core, client, answer.credential).await?;
    let Some(asked) = redeem(core, client.id(), answer.challenge).await? else { return Ok(None) };
    let row = sqlx::query!(
        "select p.user_id, p.public_key from passkey p join end_user u using (client_id, user_id) \
         where p.client_id = $1 and p.credential_id = $2 \
             and u.deleted_at is null and u.disabled_at is null",
        client.id().uuid(),
        id,
    )
    .fetch_optional(&core.db)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let user = UserId::from(row.user_id);
    // Without a password before it, the authenticator has to say whose it is (section 7.2, step 6).
    let is_named = answer.user_handle == user_handle(user)
        || (answer.user_handle.is_empty() && asked.is_some());
    if !is_named || asked.is_some_and(|asked| asked != user) {
        return Ok(None);
    }
    match party.verify(answer.challenge, &row.public_key, &answer.assertion) {
        Some(count) => Ok(advance(core, client.key_of(user), &id, count).await?.then_some(user)),
        None => Ok(None),
    }
}

/// Uses a challenge up and returns the user that it asks for, if any; `None` when it is unknown, used
/// or expired.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn redeem(
    core: &Core,
    client: ClientId,
    challenge: &str,
) -> Result<Option<Option<UserId>>> {
    let asked = sqlx::query_scalar!(
        "delete from passkey_challenge \
         where client_id = $1 and challenge_digest = $2 and purpose = 'sign-in' \
             and expires_at > rampart_now() \
         returning user_id",
        client.uuid(),
        &sha256(challenge)[..],
    )
    .fetch_optional(&core.db)
    .await?;
    Ok(asked.map(|user| user.map(UserId::from)))
}

/// Takes the authenticator's counter over; `false` when it has not advanced, as that of a copy. One
/// that counts nothing stays at zero.
async fn advance(
    core: &Core,
    UserKey { client, user }: UserKey,
    id: &[u8],
    count: u32,
) -> Result<bool> {
    let advanced = sqlx::query!(
        "update passkey set sign_count = $4, last_used_at = rampart_now() \
         where client_id = $1 and user_id = $2 and credential_id = $3 \
             and (sign_count < $4 or (sign_count = 0 and $4 = 0))",
        client.uuid(),
        user.uuid(),
        id,
        i64::from(count),
    )
    .execute(&core.db)
    .await?;
    Ok(advanced.rows_affected() > 0)
}
