//! Access tokens of clients and users: JWTs (RFC 7519) that every edge with the same master key can
//! verify. They follow RFC 8725: one algorithm, one key per day, one `typ` per kind.
//!
//! [`refresh`] has the opaque refresh tokens, `users/one_time_token.rs` those of a login link or a
//! password reset, in the form of `opaque`.

mod expiry;
mod hmac_sha256;
mod jwt;
pub(crate) mod opaque;
pub mod refresh;
#[cfg(test)]
mod tests;

use std::time::Duration;

use chrono::{DateTime, Utc};
use moka::sync::Cache;
use uuid::Uuid;

use self::jwt::{Authority, Kind, VerifiedToken};
use crate::Core;
use crate::platform::crypto::sha256;
use crate::platform::error::Result;
use crate::platform::settings::Lifetimes;
use rampart_types::{ClientId, UserId, UserKey};

/// Longest token that is verified, in bytes.
const TOKEN_BYTES_MAX: usize = 4 * 1024;
/// Capacity of the cache of verified tokens; some 150 bytes each.
const VERIFIED_MAX: u64 = 65_536;

/// The holder of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A client.
    Client(ClientId),
    /// A user who logged in through the client.
    User(UserKey),
}

/// The claims of a client's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientClaims {
    /// The holder.
    pub client: ClientId,
    /// Time of issue, to the millisecond.
    pub issued_at: DateTime<Utc>,
}

/// The claims of a user's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserClaims {
    /// The client through which the user logged in.
    pub client: ClientId,
    /// The user.
    pub user: UserId,
    /// Time of issue, to the millisecond.
    pub issued_at: DateTime<Utc>,
}

/// Verifies tokens, with a cache of verified ones by digest until they expire.
#[derive(Debug)]
pub struct Tokens {
    verified: Cache<[u8; 32], VerifiedToken>,
}

impl Tokens {
    /// A verifier with an empty cache.
    pub fn new(lifetimes: &Lifetimes) -> Self {
        let lifetime = Duration::from_secs(lifetimes.access_token_seconds.into());
        let verified = Cache::builder().max_capacity(VERIFIED_MAX).time_to_live(lifetime).build();
        Self { verified }
    }

    /// Verifies a client's token. The caller checks if the client is still active.
    ///
    /// # Errors
    /// ER800, or ER801 when it has expired.
    pub fn verify_client(&self, core: &Core, token: &str) -> Result<ClientClaims> {
        let verified = self.verify(&Authority::new(core), Kind::Client, token)?;
        match verified.holder {
            Holder::Client(client) => Ok(ClientClaims { client, issued_at: verified.issued_at }),
            Holder::User(..) => Err(Kind::Client.invalid()),
        }
    }

    /// Verifies a user's token. The caller checks if the account is still active.
    ///
    /// # Errors
    /// ER702, or ER701 when it has expired.
    pub fn verify_user(&self, core: &Core, token: &str) -> Result<UserClaims> {
        let verified = self.verify(&Authority::new(core), Kind::User, token)?;
        match verified.holder {
            Holder::User(UserKey { client, user }) => {
                Ok(UserClaims { client, user, issued_at: verified.issued_at })
            }
            Holder::Client(_) => Err(Kind::User.invalid()),
        }
    }

    /// Verifies a token of this kind.
    fn verify(&self, authority: &Authority<'_>, kind: Kind, token: &str) -> Result<VerifiedToken> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(kind.invalid());
        }
        let digest = sha256(token);
        let verified = match self.verified.get(&digest) {
            Some(verified) => verified,
            None => {
                let verified = jwt::verify(authority, kind, token)?;
                self.verified.insert(digest, verified);
                verified
            }
        };
        if Kind::from_holder(verified.holder) != kind {
            return Err(kind.invalid());
        }
        if verified.is_expired(authority.now) {
            return Err(kind.expired());
        }
        Ok(verified)
    }
}

/// Issues a token of the time in `id`.
fn issue(core: &Core, id: Uuid, holder: Holder) -> Result<String> {
    jwt::issue(&Authority::new(core), id, holder)
}
