//! Operators and their tokens.

pub mod create;
pub mod list;
pub mod sessions;
pub mod tokens;
pub mod update;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::login::generate_token;
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Kind, Member, required};
use crate::platform::crypto::sha256;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};

/// Lifetime of a token in seconds, unless the call says otherwise: 90 days.
const TOKEN_SECONDS: i32 = 90 * 86_400;
/// Longest lifetime of a token, in seconds: a year.
const TOKEN_SECONDS_MAX: i32 = 365 * 86_400;

/// The path's `{name}`.
const NAME: Member = required("name", Kind::Text, "The operator's name.");

/// An issued token, in clear.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "IssuedOperatorToken")]
#[serde(rename_all = "camelCase")]
pub struct IssuedToken {
    /// The operator's name.
    name: String,
    /// The token's id, which its revocation names.
    token_id: Uuid,
    /// For `Authorization: Bearer`.
    token: String,
    /// When it ends.
    expires_at: DateTime<Utc>,
}

impl IssuedToken {
    /// Issues a token to an operator.
    async fn issue(
        conn: &mut Connection,
        core: &Core,
        operator: Uuid,
        name: String,
        seconds: i32,
        by: &str,
    ) -> Result<Self> {
        let (token, token_id) = (generate_token(&core.clock)?, core.clock.uuid()?);
        let expires_at = sqlx::query_scalar!(
            "insert into operator_token \
             (operator_id, token_id, digest, expires_at, created_by, created_at) \
             values ($1, $2, $3, now() + make_interval(secs => $4::int), $5, now()) \
             returning expires_at",
            operator,
            token_id,
            &sha256(token.expose())[..],
            seconds,
            by,
        )
        .fetch_one(conn)
        .await?;
        Ok(Self { name, token_id, token: token.expose().to_owned(), expires_at })
    }
}

/// The lifetime that a call asks for.
///
/// # Errors
/// 422 when it is out of bounds.
fn lifetime(asked: Option<i32>) -> Result<i32> {
    let seconds = asked.unwrap_or(TOKEN_SECONDS);
    if (1..=TOKEN_SECONDS_MAX).contains(&seconds) {
        return Ok(seconds);
    }
    Err(Denial::unprocessable(format!("expiresInSeconds: 1 to {TOKEN_SECONDS_MAX}")).into())
}

/// Roles as stored, each once.
///
/// # Errors
/// 422 when there is none.
fn stored(roles: &[Role]) -> Result<Vec<String>> {
    if roles.is_empty() {
        return Err(Denial::unprocessable("roles: at least one").into());
    }
    let mut roles = roles.to_vec();
    roles.sort_unstable();
    roles.dedup();
    Ok(roles.iter().map(|role| role.as_str().to_owned()).collect())
}

/// True if there is an operator of this name.
///
/// # Errors
/// When the database cannot be read.
async fn is_known(core: &Core, name: &str) -> Result<bool> {
    let known = sqlx::query_scalar!(
        r#"select exists (select from operator where name = $1) as "known!""#,
        name,
    );
    Ok(known.fetch_one(&core.db).await?)
}

/// Checks that there is such an operator: nobody is asked to agree to a change of none.
///
/// # Errors
/// 404 when there is none of this name.
async fn check_known(core: &Core, name: &str) -> Result<()> {
    match is_known(core, name).await? {
        true => Ok(()),
        false => Err(Denial::not_found("operator").into()),
    }
}

/// The id of an operator.
///
/// # Errors
/// 404 when there is none of this name.
async fn find(conn: &mut Connection, name: &str) -> Result<Uuid> {
    sqlx::query_scalar!("select operator_id from operator where name = $1 for update", name)
        .fetch_optional(conn)
        .await?
        .ok_or_else(|| Denial::not_found("operator").into())
}
