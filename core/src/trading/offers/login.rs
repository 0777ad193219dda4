//! The user that an offer or a checkout is bound to by a login token. Nobody else can confirm it,
//! and the order belongs to that user.

use serde_json::Value;

use crate::endpoint::openapi::doc::{Kind, Member, optional};
use crate::http::fields::Fields;
use crate::platform::crypto::Secret;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Result};
use crate::users::one_time_token;
use rampart_types::{ClientId, UserId};

/// The member with the token.
pub(crate) const MEMBERS: &[Member] = &[optional(
    "loginToken",
    Kind::Text,
    "A token of the login-token endpoint: only its user can confirm. It is valid once.",
)];

/// The request's login token, if any.
#[derive(Debug)]
pub(crate) struct Login(Option<Secret>);

impl Login {
    /// Reads the member; ER333 for an empty text or another type.
    pub(crate) fn read(fields: &mut Fields<'_>) -> Self {
        Self(fields.optional("loginToken", Code::LoginTokenNotFound, |value: &Value| {
            value.as_str().filter(|text| !text.is_empty()).map(Secret::new)
        }))
    }

    /// The token's user, if there is one; the token is consumed in the caller's transaction.
    ///
    /// # Errors
    /// ER333, ER334 and ER335.
    pub(crate) async fn user(
        &self,
        conn: &mut Connection,
        client: ClientId,
    ) -> Result<Option<UserId>> {
        match &self.0 {
            None => Ok(None),
            Some(token) => {
                one_time_token::redeem_login(conn, client, token.expose()).await.map(Some)
            }
        }
    }
}
