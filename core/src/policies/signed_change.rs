//! Checks of signed statements, where changes of policies must be signed. A statement is valid for a
//! quarter of an hour, and once.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::lifecycle::error::LifecycleError;
use super::lifecycle::target::Target;
use super::manifest::{self, digest_hex};
use super::operator_keys;
use super::runtime;
use super::statement::{ChangeStatement, DOMAIN, SignedChange};
use crate::Core;
use crate::platform::crypto::Purpose;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use rampart_types::ClientId;

/// Largest statement, in bytes.
const STATEMENT_BYTES_MAX: usize = 4 << 10;
/// Longest distance of the time of a signature from now, either way, in seconds.
const SIGNED_AT_WINDOW_SECONDS: i64 = 900;

/// Checks that an operator has signed this change of a partner's policy, where that is required, and
/// uses the statement up. The caller holds the row lock of the client.
///
/// # Errors
/// [`LifecycleError::Conflict`] where one is required or was used, [`LifecycleError::Invalid`] with
/// the problem.
pub(super) async fn check(
    core: &Core,
    conn: &mut Connection,
    target: Target<'_>,
    expected: ChangeStatement,
) -> Result<(), LifecycleError> {
    check_of_partner(core, conn, target.client, target.signed, expected).await
}

/// Checks a change of a partner's requirement itself, as [`check`]. The caller holds the row lock of
/// the client, which has the earlier requirement still.
///
/// # Errors
/// As [`check`].
pub async fn check_requirement(
    core: &Core,
    conn: &mut Connection,
    client: ClientId,
    slug: &str,
    signed: Option<&SignedChange>,
) -> Result<(), LifecycleError> {
    let expected = ChangeStatement {
        action: "policy.waive-signature".to_owned(),
        partner: Some(slug.to_owned()),
        ..ChangeStatement::default()
    };
    check_of_partner(core, conn, client, signed, expected).await
}

/// Checks a change of what a partner's policies rely on, as [`check`]. The caller holds the row lock
/// of the client.
///
/// # Errors
/// As [`check`].
pub(super) async fn check_of_partner(
    core: &Core,
    conn: &mut Connection,
    client: ClientId,
    signed: Option<&SignedChange>,
    expected: ChangeStatement,
) -> Result<(), LifecycleError> {
    let is_required = manifest::is_required(core, conn, client).await?;
    check_statement(core, conn, is_required, signed, expected).await
}

/// The same for a change of the operators' keys, which are of all partners: required where any
/// partner's policies must be signed.
///
/// # Errors
/// As [`check`].
pub(super) async fn check_of_keys(
    core: &Core,
    conn: &mut Connection,
    signed: Option<&SignedChange>,
    expected: ChangeStatement,
) -> Result<(), LifecycleError> {
    let any_partner = sqlx::query_scalar!(
        r#"select exists (select from client where policy_signature_required) as "any!""#,
    )
    .fetch_one(&mut *conn)
    .await?;
    let is_required = any_partner || core.settings.policy.require_signature;
    check_statement(core, conn, is_required, signed, expected).await
}

async fn check_statement(
    core: &Core,
    conn: &mut Connection,
    is_required: bool,
    signed: Option<&SignedChange>,
    expected: ChangeStatement,
) -> Result<(), LifecycleError> {
    match signed {
        Some(signed) => signed.consume(core, conn, expected).await,
        None if is_required => Err(LifecycleError::Conflict(
            "a statement signed by a registered key is required here: `signed`",
        )),
        None => Ok(()),
    }
}

impl SignedChange {
    /// Verifies the signature and the content, and uses the statement up.
    async fn consume(
        &self,
        core: &Core,
        conn: &mut Connection,
        expected: ChangeStatement,
    ) -> Result<(), LifecycleError> {
        let invalid = |reason: String| LifecycleError::Invalid(format!("signed: {reason}"));
        if self.statement.len() > STATEMENT_BYTES_MAX {
            return Err(invalid(format!("at most {STATEMENT_BYTES_MAX} bytes")));
        }
        let signature =
            STANDARD.decode(&self.value).map_err(|_| invalid("not base64".to_owned()))?;
        let key = operator_keys::find(core, conn, &self.key)
            .await?
            .ok_or_else(|| invalid("its key is not registered".to_owned()))?;
        let message = [DOMAIN, &self.statement].concat();
        if key.public.verifies(message.as_bytes(), &signature) != Some(true) {
            return Err(invalid("its signature is not good".to_owned()));
        }
        let stated: ChangeStatement =
            serde_json::from_str(&self.statement).map_err(|error| invalid(error.to_string()))?;
        if stated != (ChangeStatement { at: stated.at, ..expected }) {
            return Err(invalid("it is about another change".to_owned()));
        }
        // The key of the table is the digest: of two requests with one statement one wins.
        let (digest, text) = self.stored(core, &stated)?;
        let used = sqlx::query!(
            "insert into signed_change (digest, statement, signed_by, signed_with, at) \
             select $1, $2, $3, $4, now() \
             where abs(extract(epoch from now())::bigint - $5) <= $6 \
             on conflict (digest) do nothing",
            digest,
            text,
            self.key,
            key.fingerprint,
            stated.at,
            SIGNED_AT_WINDOW_SECONDS,
        )
        .execute(conn)
        .await?;
        match used.rows_affected() {
            0 => Err(LifecycleError::Conflict(
                "the statement was used before, or not signed within the last 15 minutes",
            )),
            _ => Ok(()),
        }
    }

    /// The digest and the text of the statement to be stored. A weak HMAC secret could be guessed from
    /// its fingerprint: the text of a statement about one leaves it out, and the digest is keyed.
    fn stored(&self, core: &Core, stated: &ChangeStatement) -> Result<(String, String)> {
        let algorithm = stated.algorithm.as_deref().and_then(runtime::algorithm);
        if !algorithm.is_some_and(runtime::is_secret) {
            return Ok((digest_hex(self.statement.as_bytes()), self.statement.clone()));
        }
        let message = format!("signed-change/{}", self.statement);
        let digest = core.keys.mac(Purpose::BlindIndex, message.as_bytes())?;
        let known = ChangeStatement { fingerprint: None, ..stated.clone() };
        Ok((hex::encode(digest), json!(known).to_string()))
    }
}
