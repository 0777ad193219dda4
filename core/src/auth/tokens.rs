//! Access tokens of clients and users: JWTs (RFC 7519) that every edge with the same master key
//! can read, kept to the advice of RFC 8725: one algorithm, one key per day, one `typ` per kind.
//!
//! [`refresh`] has the opaque tokens by which they are renewed.

mod hmac_sha256;
mod jwt;
pub mod refresh;
#[cfg(test)]
mod tests;

use std::time::Duration;

use chrono::{DateTime, Utc};
use moka::sync::Cache;

use self::jwt::{Authority, Kind, Proof};
use crate::Core;
use crate::platform::crypto::digest_of;
use crate::platform::error::Result;
use crate::platform::settings::Lifetimes;
use rampart_types::{ClientId, UserId};

/// Longest token that is looked at, in bytes.
const TOKEN_BYTES_MAX: usize = 4 * 1024;
/// Tokens remembered as verified; some 150 bytes each.
const VERIFIED_MAX: u64 = 65_536;

/// Whose token it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A client.
    Client(ClientId),
    /// A user who logged in through the client.
    User(ClientId, UserId),
}

/// What a client's token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientClaims {
    /// Whose token it is.
    pub client: ClientId,
    /// When it was issued, to the millisecond.
    pub issued_at: DateTime<Utc>,
}

/// What a user's token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserClaims {
    /// The client through which the user logged in.
    pub client: ClientId,
    /// The user.
    pub user: UserId,
    /// When it was issued, to the millisecond.
    pub issued_at: DateTime<Utc>,
}

/// Verifies tokens, each once: what was verified is remembered by its digest until it ends.
#[derive(Debug)]
pub struct Tokens {
    verified: Cache<[u8; 32], Proof>,
}

impl Tokens {
    /// Nothing verified yet.
    pub fn new(lifetimes: &Lifetimes) -> Self {
        let lifetime = Duration::from_secs(lifetimes.access_token_seconds.into());
        let verified = Cache::builder().max_capacity(VERIFIED_MAX).time_to_live(lifetime).build();
        Self { verified }
    }

    /// The client that a token proves. Whether it may still call is not asked here.
    ///
    /// # Errors
    /// ER800, or ER801 when it has expired.
    pub fn verify_client(&self, core: &Core, token: &str) -> Result<ClientClaims> {
        let proof = self.verify(&Authority::of(core), Kind::Client, token)?;
        match proof.holder {
            Holder::Client(client) => Ok(ClientClaims { client, issued_at: proof.issued_at }),
            Holder::User(..) => Err(Kind::Client.invalid()),
        }
    }

    /// The user that a token proves. Whether the account may still be used is not asked here.
    ///
    /// # Errors
    /// ER702, or ER701 when it has expired.
    pub fn verify_user(&self, core: &Core, token: &str) -> Result<UserClaims> {
        let proof = self.verify(&Authority::of(core), Kind::User, token)?;
        match proof.holder {
            Holder::User(client, user) => {
                Ok(UserClaims { client, user, issued_at: proof.issued_at })
            }
            Holder::Client(_) => Err(Kind::User.invalid()),
        }
    }

    /// What a token of this kind proves now.
    fn verify(&self, authority: &Authority<'_>, kind: Kind, token: &str) -> Result<Proof> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(kind.invalid());
        }
        let digest = digest_of(token);
        let proof = match self.verified.get(&digest) {
            Some(proof) => proof,
            None => {
                let proof = jwt::open(authority, kind, token)?;
                self.verified.insert(digest, proof);
                proof
            }
        };
        if Kind::of(proof.holder) != kind {
            return Err(kind.invalid());
        }
        if proof.has_ended(authority.now) {
            return Err(kind.expired());
        }
        Ok(proof)
    }
}

/// A token for a client that has proven itself.
///
/// # Errors
/// Without entropy for its id.
pub fn issue_client(core: &Core, client: ClientId) -> Result<String> {
    issue(core, Holder::Client(client))
}

/// A token for a user who has logged in through the client.
///
/// # Errors
/// Without entropy for its id.
pub fn issue_user(core: &Core, client: ClientId, user: UserId) -> Result<String> {
    issue(core, Holder::User(client, user))
}

fn issue(core: &Core, holder: Holder) -> Result<String> {
    jwt::issue(&Authority::of(core), core.clock.uuid()?, holder)
}
