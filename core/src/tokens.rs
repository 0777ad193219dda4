//! Access tokens of clients and users.

use crate::Core;
use crate::error::{Code, Result};
use crate::types::{ClientId, UserId};

/// Issues and verifies tokens.
#[derive(Debug, Default)]
pub struct Tokens;

/// What a client's token says.
#[derive(Clone, Copy, Debug)]
pub struct ClientClaims {
    /// Whose token it is.
    pub client: ClientId,
    /// When it was issued, in seconds since 1970.
    pub issued_at: i64,
}

/// What a user's token says.
#[derive(Clone, Copy, Debug)]
pub struct UserClaims {
    /// The client through which the user logged in.
    pub client: ClientId,
    /// The user.
    pub user: UserId,
    /// When it was issued, in seconds since 1970.
    pub issued_at: i64,
}

impl Tokens {
    /// # Errors
    /// ER800, or ER801 when it has expired.
    pub fn verify_client(&self, _core: &Core, _token: &str) -> Result<ClientClaims> {
        Err(Code::ER800.into())
    }

    /// # Errors
    /// ER702, or ER701 when it has expired.
    pub fn verify_user(&self, _core: &Core, _token: &str) -> Result<UserClaims> {
        Err(Code::ER702.into())
    }
}
