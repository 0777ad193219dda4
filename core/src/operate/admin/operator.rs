//! The caller of the operators' API.

use crate::Core;
use crate::auth::caller::{Caller, Client, UserProof};
use crate::auth::client_credentials::bearer;
use crate::http::Surface;
use crate::http::request::{Head, Input};
use crate::platform::crypto::{constant_time_eq, digest_of};
use crate::platform::error::{Code, Denial, Result};
use http::StatusCode;
use rampart_types::UserId;

/// An operator, proven by the bearer token of `admin.token`.
#[derive(Clone, Copy, Debug)]
pub struct Operator {
    actor: &'static str,
}

impl Operator {
    /// Compares the token in constant time.
    ///
    /// # Errors
    /// 401 without the token, or with another.
    pub(crate) fn identify(core: &Core, head: &Head) -> Result<Self> {
        let given = head.header("authorization").and_then(bearer).map(digest_of);
        let wanted = core.settings.admin_token.as_ref().map(|token| digest_of(token.expose()));
        match (given, wanted) {
            (Some(given), Some(wanted)) if constant_time_eq(&given, &wanted) => {
                Ok(Self { actor: "admin" })
            }
            _ => {
                let reason = "the admin token is missing or wrong";
                Err(Denial::new(StatusCode::UNAUTHORIZED, reason).into())
            }
        }
    }

    /// The author of a change, for the audit. There is one token, and so one author.
    pub const fn actor(self) -> &'static str {
        self.actor
    }
}

impl Caller for Operator {
    const SURFACE: Surface = Surface::Operators;
    const CLIENT: bool = false;
    const USER: UserProof = UserProof::None;
    const ERRORS: &'static [Code] = &[];

    fn user(&self) -> Option<UserId> {
        None
    }

    async fn identify(core: &Core, _: Option<Client>, input: &Input) -> Result<Self> {
        Self::identify(core, &input.head)
    }
}
