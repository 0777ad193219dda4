//! Answers of the sandbox about cards and accounts, and the ends of identity checks: magic values
//! decide.

use std::fmt::Write as _;

use rampart_types::{UserId, UserKey};
use serde_json::{Value, json};

use super::report_event;
use crate::Core;
use crate::money::connectors::accounts::NOT_INSTANT;
use crate::money::connectors::identity::{self, IdentityCheck};
use crate::money::connectors::lease::Leased;
use crate::money::connectors::result::Outcome;
use crate::platform::crypto::sha256;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::tenancy::tenants::Tenant;
use crate::users::accounts;

/// Sessions with the card processor, and cards of theirs, with a special outcome. Any other is a valid
/// card.
const SESSION_NOT_INSTANT: &str = "sandbox-not-instant";
const SESSION_REFUSED: &str = "sandbox-refused";
const SESSION_UNVERIFIABLE: &str = "sandbox-unverifiable";
const SESSION_DISABLED: &str = "sandbox-disabled";
/// The only token that the wallet provider refuses.
const TOKEN_REFUSED: &str = "sandbox-refused";
/// Bytes of the digest in a payer id of the wallet provider.
const PAYER_BYTES: usize = 8;

/// The masked number of the card of a session: six digits, six stars, four digits.
fn masked(session: &str) -> String {
    let mut masked = "411111******".to_owned();
    for byte in sha256(session).iter().take(4) {
        let _ = write!(masked, "{}", byte % 10);
    }
    masked
}

/// The answer to `card.verify`, with the reason of a rejection: the card of a session, or its
/// verification.
///
/// # Errors
/// When the database cannot be read.
pub(super) async fn card(
    conn: &mut Connection,
    core: &Core,
    command: &Leased,
) -> Result<(Outcome, Value, Option<&'static str>)> {
    let rejected = |reason| (Outcome::Rejected, json!({}), reason);
    let Some(session) = command.body["sessionIdentifier"].as_str() else {
        let is_verifiable = command.body["token"] != SESSION_UNVERIFIABLE;
        return Ok(if is_verifiable { (Outcome::Done, json!({}), None) } else { rejected(None) });
    };
    let (number, is_disabled) = (masked(session), session == SESSION_DISABLED);
    match session {
        SESSION_NOT_INSTANT => return Ok(rejected(Some(NOT_INSTANT))),
        SESSION_REFUSED => return Ok(rejected(None)),
        _ => {}
    }
    if is_disabled && let Some(user) = command.user {
        let key = UserKey { client: command.client.into(), user: user.into() };
        if accounts::find(conn, core, key, &number).await?.is_some() {
            return Ok(rejected(None));
        }
    }
    let card = json!({
        "accountIdentifier": number,
        "token": session,
        "disabled": is_disabled,
    });
    Ok((Outcome::Done, card, None))
}

/// The answer to `wallet-provider.verify`: the payer of a token.
pub(super) fn wallet_account(command: &Leased) -> (Outcome, Value) {
    let token = command.body["accessToken"].as_str().unwrap_or_default();
    if token == TOKEN_REFUSED {
        return (Outcome::Rejected, json!({}));
    }
    let digest = sha256(token);
    let payer = hex::encode(digest.get(..PAYER_BYTES).unwrap_or_default());
    (Outcome::Done, json!({ "accountIdentifier": format!("payer-{payer}") }))
}

/// Ends the identity check of a test client's user, in the caller's transaction. One that has failed
/// may be made again.
///
/// # Errors
/// When the database cannot be used.
pub async fn end_identity_check(
    conn: &mut Connection,
    core: &Core,
    tenant: &Tenant,
    user: UserId,
    return_url: &str,
    is_verified: bool,
) -> Result<()> {
    let check = identity::start(conn, core, tenant, user, return_url).await?;
    let IdentityCheck::Simulated { command, .. } = check else { return Ok(()) };
    let members = json!({
        "partner": &*tenant.slug,
        "commandId": command,
        "outcome": if is_verified { "verified" } else { "failed" },
    });
    report_event(conn, core, "identity.completed", super::NAME, members).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_always_has_the_same_card() {
        assert_eq!(masked("session-1"), masked("session-1"));
        assert_ne!(masked("session-1"), masked("session-2"));
        assert_eq!(masked("session-1").len(), 16);
    }
}
