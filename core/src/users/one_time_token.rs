//! Opaque bearer tokens for one use, stored as digests.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgExecutor;

use super::account::{self, RowLock};
use crate::Core;
use crate::auth::tokens::opaque::{self, parse_client};
use crate::platform::clock::Clock;
use crate::platform::crypto::sha256;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use rampart_types::{ClientId, UserId, UserKey};

/// Member of a request with a login token.
const LOGIN_TOKEN: &str = "loginToken";

/// The purpose of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Opens a secured page as the user, or binds an offer to the user.
    Login,
    /// Opens the secured pages to a browser that has opened one, as often as the token lives.
    Visit,
    /// Sends a form with the user's accounts as the user.
    Form,
    /// Sets a new password.
    ResetPassword,
    /// Opens the pages of the user's verification, as often as the token lives.
    Checks,
}

impl Purpose {
    /// Every purpose.
    pub(super) const ALL: [Self; 5] =
        [Self::Login, Self::Visit, Self::Form, Self::ResetPassword, Self::Checks];
    /// Those of the tokens with which a user's pages go on.
    pub(super) const OF_PAGES: [Self; 4] = [Self::Login, Self::Visit, Self::Form, Self::Checks];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Visit => "visit",
            Self::Form => "form",
            Self::ResetPassword => "reset-password",
            Self::Checks => "checks",
        }
    }
}

/// A new token. Its text is shown once.
pub(crate) struct OneTimeToken {
    pub(crate) text: String,
    digest: [u8; 32],
    client: ClientId,
}

impl OneTimeToken {
    /// Generates a token of the client: its id, for the statements, and a secret.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn generate(clock: &Clock, client: ClientId) -> Result<Self> {
        let text = opaque::generate(clock, client)?;
        let digest = sha256(&text);
        Ok(Self { text, digest, client })
    }

    /// Stores it for the user, until `lifetime` from now; for nobody, by the same work, if there is no
    /// such user.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub(crate) async fn store(
        &self,
        conn: &mut Connection,
        core: &Core,
        purpose: Purpose,
        user: UserId,
        lifetime: TimeDelta,
    ) -> Result<DateTime<Utc>> {
        let now = core.clock.now();
        let expires_at = now + lifetime;
        sqlx::query!(
            "insert into one_time_token \
             (client_id, token_digest, purpose, user_id, expires_at, created_at) \
             select client_id, $2, $3, user_id, $5, $6 from end_user \
             where client_id = $1 and user_id = $4",
            self.client.uuid(),
            &self.digest[..],
            purpose.as_str(),
            user.uuid(),
            expires_at,
            now,
        )
        .execute(conn)
        .await?;
        Ok(expires_at)
    }
}

/// Issues a token of the user for secured pages and their forms. It lives as long as a login token.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn issue_for_pages(
    conn: &mut Connection,
    core: &Core,
    purpose: Purpose,
    key: UserKey,
) -> Result<String> {
    let token = OneTimeToken::generate(&core.clock, key.client)?;
    let lifetime = TimeDelta::seconds(core.settings.lifetimes.login_token_seconds.into());
    token.store(conn, core, purpose, key.user, lifetime).await?;
    Ok(token.text)
}

/// The user of a token that can be used: it is unused, not expired, and its user exists and is not
/// disabled.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn holder(
    executor: impl PgExecutor<'_>,
    purpose: Purpose,
    text: &str,
) -> Result<Option<UserKey>> {
    let Some(client) = parse_client(text) else { return Ok(None) };
    let user = sqlx::query_scalar!(
        r#"
        select t.user_id as "user_id!" from one_time_token t
        join end_user u using (client_id, user_id)
        where t.client_id = $1 and token_digest = $2 and purpose = $3
            and used_at is null and expires_at > rampart_now()
            and u.deleted_at is null and u.disabled_at is null
        "#,
        client.uuid(),
        &sha256(text)[..],
        purpose.as_str(),
    )
    .fetch_optional(executor)
    .await?;
    Ok(user.map(|user| UserKey { client, user: UserId::from(user) }))
}

/// The same, with the row of the user locked: what ends the user's sessions comes before this, or voids
/// what the transaction stores.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn lock_holder(
    conn: &mut Connection,
    purpose: Purpose,
    text: &str,
) -> Result<Option<UserKey>> {
    let Some(key) = holder(&mut *conn, purpose, text).await? else { return Ok(None) };
    account::lock(conn, key, RowLock::NoKeyUpdate).await?;
    // What the lock has waited for may have voided the token.
    holder(conn, purpose, text).await
}

/// Locks the user's row for what a page of the verification has permitted: what ends the user's sessions
/// comes before this, or after the transaction. The page was opened by this token of a sign-in; without
/// one by the signed link of an order, which no session ends.
///
/// # Errors
/// ER702 when the sign-in has ended, ER709 when the user is deleted.
pub(crate) async fn lock_for_checks(
    conn: &mut Connection,
    key: UserKey,
    token: Option<&str>,
) -> Result<()> {
    if !account::lock(conn, key, RowLock::Update).await? {
        return Err(Code::UserNotFound.into());
    }
    let Some(token) = token else { return Ok(()) };
    match holder(conn, Purpose::Checks, token).await? {
        Some(holder) if holder == key => Ok(()),
        _ => Err(Code::UserTokenInvalid.into()),
    }
}

/// Redeems the token: of several concurrent attempts, one gets its user. Locks the user's row: what ends
/// the user's sessions comes before this, or voids what the transaction stores.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn redeem(
    conn: &mut Connection,
    purpose: Purpose,
    text: &str,
) -> Result<Option<UserKey>> {
    let Some(client) = parse_client(text) else { return Ok(None) };
    let user = sqlx::query_scalar!(
        "with holder as ( \
             select user_id from one_time_token t join end_user u using (client_id, user_id) \
             where t.client_id = $1 and token_digest = $2 and purpose = $3 \
                 and used_at is null and expires_at > rampart_now() \
                 and u.deleted_at is null and u.disabled_at is null \
             for no key update of u \
         ) \
         update one_time_token t set used_at = rampart_now() from holder \
         where t.client_id = $1 and token_digest = $2 and t.user_id = holder.user_id \
             and used_at is null \
         returning t.user_id",
        client.uuid(),
        &sha256(text)[..],
        purpose.as_str(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(user.map(|user| UserKey { client, user: UserId::from(user) }))
}

/// Voids the user's unused tokens of these purposes.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn void(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    purposes: &[Purpose],
) -> Result<()> {
    let purposes: Vec<&str> = purposes.iter().map(|purpose| purpose.as_str()).collect();
    sqlx::query!(
        "update one_time_token set used_at = $3 \
         where client_id = $1 and user_id = $2 and used_at is null and purpose = any($4)",
        key.client.uuid(),
        key.user.uuid(),
        core.clock.now(),
        &purposes as &[&str],
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Redeems a login token that this client presents, and returns its user.
///
/// # Errors
/// ER333 for a token that is unknown, used or another client's, ER334 for an expired one, ER335 for
/// one whose user is deleted or disabled.
pub(crate) async fn redeem_login(
    conn: &mut Connection,
    client: ClientId,
    text: &str,
) -> Result<UserId> {
    if parse_client(text) != Some(client) {
        return Err(Error::of_member(Code::LoginTokenNotFound, LOGIN_TOKEN));
    }
    match redeem(conn, Purpose::Login, text).await? {
        Some(key) => Ok(key.user),
        None => Err(Error::of_member(refusal_code(conn, client, text).await?, LOGIN_TOKEN)),
    }
}

/// The code for a login token that could not be redeemed.
async fn refusal_code(conn: &mut Connection, client: ClientId, text: &str) -> Result<Code> {
    let expired = sqlx::query_scalar!(
        "select expires_at <= rampart_now() as \"expired!\" from one_time_token \
         where client_id = $1 and token_digest = $2 and purpose = $3 and used_at is null",
        client.uuid(),
        &sha256(text)[..],
        Purpose::Login.as_str(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(match expired {
        None => Code::LoginTokenNotFound,
        Some(true) => Code::LoginTokenExpired,
        Some(false) => Code::LoginTokenWithoutUser,
    })
}
