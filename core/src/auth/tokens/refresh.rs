//! Refresh tokens: opaque, stored as digests, rotated on use.
//!
//! A login starts a token family, and each use of its newest token issues the next one. A used token
//! is accepted again for a grace period, because the response may have been lost; later reuse means
//! theft and revokes the family (RFC 9700, section 4.14.2). So does the use of a second successor of
//! one token: the login is in two hands then.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::{Holder, issue};
use crate::Core;
use crate::platform::clock::Clock;
use crate::platform::crypto::sha256;
use crate::platform::db::{self, tenant};
use crate::platform::error::{Code, Result};
use rampart_types::{ClientId, TokenFamilyId, UserId, UserKey};

const PREFIX: &str = "rr_";
/// Characters of the client's id in a token: a UUID in bare hexadecimal.
const CLIENT_CHARS: usize = 32;
/// Random bytes of a token: 256 bits.
const SECRET_BYTES: usize = 32;
/// The same as base64url without padding.
const SECRET_CHARS: usize = 43;
/// Time for which a used token is accepted again, because the response may have been lost.
const GRACE: TimeDelta = TimeDelta::seconds(30);

/// An access token and its refresh token.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenPair {
    /// Token that proves the client or the user, for an hour.
    token: String,
    /// Token that gets the next pair, once.
    refresh_token: String,
}

/// A user's login as its password was verified.
pub(crate) struct PasswordLogin {
    pub(crate) user: UserId,
    /// Index of the address.
    pub(crate) email_index: Vec<u8>,
    /// The hash that the password has matched.
    pub(crate) password_hash: String,
}

impl PasswordLogin {
    /// True if the password and the address still are the user's, who is neither disabled nor deleted. A
    /// change that is being made is waited for; a later one ends the user's sessions at a later time.
    pub(crate) async fn still_holds(&self, core: &Core, client: ClientId) -> Result<bool> {
        let held = sqlx::query_scalar!(
            "select user_id from end_user \
             where client_id = $1 and user_id = $2 and password_hash = $3 and email_index = $4 \
                 and disabled_at is null and deleted_at is null for share",
            client.uuid(),
            self.user.uuid(),
            self.password_hash,
            self.email_index,
        )
        .fetch_optional(&core.db)
        .await?;
        Ok(held.is_some())
    }
}

/// The proof of a login that must still hold when it begins.
#[derive(Clone, Copy)]
enum Proof<'a> {
    OfUser(&'a PasswordLogin),
    /// The hash that the client's password has matched.
    OfClient(&'a str),
}

impl TokenPair {
    /// Issues the first pair after a login of the client, which starts a family, if the password of this
    /// hash is still good.
    ///
    /// # Errors
    /// ER038 when a rotation has ended it since.
    pub(crate) async fn issue_to_client(
        core: &Core,
        client: ClientId,
        password_hash: &str,
    ) -> Result<Self> {
        let proof = Proof::OfClient(password_hash);
        let begun = Self::begin(core, Holder::Client(client), proof, None).await?;
        begun.ok_or_else(|| Code::ClientCredentialsInvalid.into())
    }

    /// The same after a user's login by password, if that and the address are still the user's: their
    /// change ends every session, of logins under way too. `device` is the user's, in the few words of
    /// `http::device`.
    ///
    /// # Errors
    /// ER005 when either was changed since, or the user is disabled or deleted.
    pub(crate) async fn issue_to_user(
        core: &Core,
        client: ClientId,
        login: &PasswordLogin,
        device: Option<&str>,
    ) -> Result<Self> {
        let holder = Holder::User(UserKey { client, user: login.user });
        let begun = Self::begin(core, holder, Proof::OfUser(login), device).await?;
        begun.ok_or_else(|| Code::LoginInvalid.into())
    }

    /// `None` when what `proof` says has changed. A change that is being made is waited for; one that
    /// waits for this ends it, because its time is later than that of either token.
    async fn begin(
        core: &Core,
        holder: Holder,
        proof: Proof<'_>,
        device: Option<&str>,
    ) -> Result<Option<Self>> {
        let (login, client_hash) = match proof {
            Proof::OfUser(login) => (Some(login), None),
            Proof::OfClient(hash) => (None, Some(hash)),
        };
        let (client, user) = match holder {
            Holder::Client(client) => (client, None),
            Holder::User(key) => (key.client, Some(key.user.uuid())),
        };
        let (text, new) = RefreshToken::generate(&core.clock, client)?;
        let family = TokenFamilyId::from(core.clock.uuid()?);
        let token = issue(core, core.clock.uuid()?, holder)?;
        let now = core.clock.now();
        let begun = db::retrying(async || {
            sqlx::query!(
                "with verified as ( \
                     select 1 from end_user \
                     where client_id = $1 and user_id = $3 and password_hash = $8 \
                         and email_index = $9 and disabled_at is null and deleted_at is null \
                     for share \
                 ), secret as ( \
                     select 1 from client_secret \
                     where client_id = $1 and kind = 'password' and password_hash = $10 \
                         and (valid_until is null or valid_until > rampart_now()) \
                     for share \
                 ), family as ( \
                     insert into refresh_family \
                         (client_id, family_id, user_id, expires_at, created_at, device) \
                     select $1, $2, $3, $4, $5, $7 \
                     where ($8 is null or exists (select from verified)) \
                         and ($10 is null or exists (select from secret)) \
                     returning family_id) \
                 insert into refresh_token \
                     (client_id, token_digest, family_id, user_id, expires_at, created_at, \
                      generation) \
                 select $1, $6, family_id, $3, $4, $5, 0 from family",
                client.uuid(),
                family.uuid(),
                user,
                now + lifetime(core),
                now,
                &new.digest[..],
                device,
                login.map(|login| login.password_hash.as_str()),
                login.map(|login| login.email_index.as_slice()),
                client_hash,
            )
            .execute(&core.db)
            .await
        })
        .await?;
        Ok((begun.rows_affected() > 0).then_some(Self { token, refresh_token: text }))
    }

    /// Issues the next pair for a presented refresh token.
    ///
    /// # Errors
    /// ER036 when it is unknown, expired or was used before, when the client is suspended, and when
    /// the user is disabled, deleted or has logged out since.
    pub async fn renew(core: &Core, presented: &RefreshToken) -> Result<Self> {
        tenant::enter(presented.client);
        let (text, next) = RefreshToken::generate(&core.clock, presented.client)?;
        // Before its login is looked at: who ends that meanwhile ends this token too.
        let id = core.clock.uuid()?;
        let now = core.clock.now();
        match rotate(core, presented, &next, now).await? {
            Rotation::Renewed(holder) => {
                Ok(Self { token: issue(core, id, holder)?, refresh_token: text })
            }
            Rotation::Revoked => Err(Code::RefreshTokenInvalid.into()),
            Rotation::Refused => {
                revoke_if_reused(core, presented, now).await?;
                Err(Code::RefreshTokenInvalid.into())
            }
        }
    }
}

/// A refresh token as presented: its claimed client and its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefreshToken {
    /// The client in its text, for the statements. Not verified.
    pub client: ClientId,
    digest: [u8; 32],
}

impl RefreshToken {
    /// Parses `rr_<client>_<secret>`; `None` when it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let (client, rest) = text.strip_prefix(PREFIX)?.split_at_checked(CLIENT_CHARS)?;
        let secret = rest.strip_prefix('_')?;
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if secret.len() != SECRET_CHARS || !secret.bytes().all(allowed) {
            return None;
        }
        let client = ClientId::from(Uuid::try_parse(client).ok()?);
        Some(Self { client, digest: sha256(text) })
    }

    /// True if it was issued to the client itself and not to a user, be it used or expired since.
    pub(crate) async fn is_of_client_login(&self, core: &Core) -> Result<bool> {
        tenant::enter(self.client);
        let found = sqlx::query_scalar!(
            r#"
            select exists (select from refresh_token
                where client_id = $1 and token_digest = $2 and user_id is null) as "found!"
            "#,
            self.client.uuid(),
            &self.digest[..],
        )
        .fetch_one(&core.db)
        .await?;
        Ok(found)
    }

    fn generate(clock: &Clock, client: ClientId) -> Result<(String, Self)> {
        let secret = URL_SAFE_NO_PAD.encode(clock.random_bytes::<SECRET_BYTES>()?);
        let text = format!("{PREFIX}{}_{secret}", client.uuid().simple());
        let digest = sha256(&text);
        Ok((text, Self { client, digest }))
    }
}

fn lifetime(core: &Core) -> TimeDelta {
    TimeDelta::seconds(core.settings.lifetimes.refresh_token_seconds.into())
}

/// The outcome of presenting a refresh token.
enum Rotation {
    /// Its successor is stored.
    Renewed(Holder),
    /// Another token of its generation was used before: the login is in two hands, and has ended.
    Revoked,
    /// The token is not valid.
    Refused,
}

/// Marks the token as used and stores its successor in one statement: of two concurrent requests,
/// the second waits for the first and then finds a token that was just used, or a family in which
/// another token of the same generation was.
///
/// A logout applies to the time of login, not of the last renewal, so that no renewal can evade it. One
/// under way is waited for: its time may be earlier than that of the access token to be issued.
async fn rotate(
    core: &Core,
    presented: &RefreshToken,
    next: &RefreshToken,
    now: DateTime<Utc>,
) -> Result<Rotation> {
    let client = presented.client;
    let renewed = db::retrying(async || {
        sqlx::query!(
            r#"
            with holder as (
                select 1 from refresh_token t
                join refresh_family f on f.client_id = t.client_id and f.family_id = t.family_id
                join end_user u on u.client_id = t.client_id and u.user_id = t.user_id
                where t.client_id = $1 and t.token_digest = $2
                    and u.deleted_at is null and u.disabled_at is null
                    and f.created_at >= u.tokens_valid_from
                for share of u
            ), used as (
                update refresh_token t
                set used_at = coalesce(t.used_at, $3),
                    first_successor_digest = coalesce(t.first_successor_digest, $5)
                from refresh_family f, client c
                where t.client_id = $1 and t.token_digest = $2 and t.expires_at > rampart_now()
                    and (t.used_at is null or t.used_at > $4)
                    and f.client_id = $1 and f.family_id = t.family_id and f.revoked_at is null
                    and c.client_id = $1 and c.status = 'active'
                    and (t.user_id is not null or f.created_at >= c.tokens_valid_from)
                    and (t.user_id is null or exists (select from holder))
                returning t.family_id, t.user_id, t.generation as counted,
                    coalesce(t.generation, f.used_generation + 1) as generation,
                    t.first_successor_digest = $5 as is_first_use
            ), successor as (
                insert into refresh_token
                    (client_id, token_digest, family_id, user_id, expires_at, created_at, generation)
                select $1, $5, used.family_id, used.user_id, $6, $3, used.generation + 1 from used
            )
            update refresh_family f
            set expires_at = $6, used_generation = greatest(f.used_generation, used.generation),
                revoked_at = case when used.is_first_use and used.counted <= f.used_generation
                    then $3::timestamptz end
            from used
            where f.client_id = $1 and f.family_id = used.family_id and f.revoked_at is null
            returning f.family_id, f.user_id, f.revoked_at is not null as "is_revoked!"
            "#,
            client.uuid(),
            &presented.digest[..],
            now,
            now - GRACE,
            &next.digest[..],
            now + lifetime(core),
        )
        .fetch_optional(&core.db)
        .await
    })
    .await?;
    let Some(login) = renewed else { return Ok(Rotation::Refused) };
    if login.is_revoked {
        let family = login.family_id;
        tracing::warn!(%client, %family, "two successors of one refresh token: the login has ended");
        return Ok(Rotation::Revoked);
    }
    Ok(Rotation::Renewed(match login.user_id {
        Some(user) => Holder::User(UserKey { client, user: user.into() }),
        None => Holder::Client(client),
    }))
}

/// Revokes the family of a token that was used before the grace period.
async fn revoke_if_reused(core: &Core, presented: &RefreshToken, now: DateTime<Utc>) -> Result<()> {
    let revoked = db::retrying(async || {
        sqlx::query_scalar!(
            "update refresh_family f set revoked_at = $3 \
             from refresh_token t \
             where t.client_id = $1 and t.token_digest = $2 and t.used_at <= $4 \
                 and f.client_id = $1 and f.family_id = t.family_id and f.revoked_at is null \
             returning f.family_id",
            presented.client.uuid(),
            &presented.digest[..],
            now,
            now - GRACE,
        )
        .fetch_optional(&core.db)
        .await
    })
    .await?;
    if let Some(family) = revoked {
        let client = presented.client;
        tracing::warn!(%client, %family, "a used refresh token came again: its login has ended");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
