//! Verification codes of e-mail addresses: mailed to the user, sent back by the partner.

use chrono::TimeDelta;

use super::account::texts_of;
use super::attempts;
use super::personal_data::email_index;
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::crypto::{Purpose, constant_time_eq};
use crate::platform::db::Connection;
use crate::platform::error::{Code, Error, Result};
use crate::platform::mail::{Kind, Message};
use rampart_types::{ClientId, EmailAddress, UserId};

/// Lifetime of a code.
const LIFETIME: TimeDelta = TimeDelta::hours(24);
/// Most attempts per code, so that one guess in 180,000 succeeds.
const ATTEMPTS_MAX: i16 = 5;
/// Codes have six digits and do not begin with 0.
const FIRST: u64 = 100_000;
const COUNT: u64 = 900_000;
/// Verifies every address of a test client; no mailed code begins with 0.
const SANDBOX_CODE: &str = "000000";

/// Mails a new code to the user's address, which replaces an earlier one. When the address has got
/// enough mail for now, nothing is mailed and the earlier code stays.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn mail(
    conn: &mut Connection,
    core: &Core,
    client: &Client,
    user: UserId,
    email: &EmailAddress,
) -> Result<()> {
    if !attempts::admits_code_mail(conn, core, client, email).await? {
        return Ok(());
    }
    // The bias of the remainder is below one part in 10^13.
    let code = (FIRST + core.clock.random_u64()? % COUNT).to_string();
    sqlx::query!(
        "insert into email_code (client_id, email_index, code_digest, expires_at) \
         values ($1, $2, $3, $4) \
         on conflict (client_id, email_index) do update \
         set code_digest = excluded.code_digest, expires_at = excluded.expires_at, tries = 0",
        client.id().uuid(),
        email_index(core, client.id(), email)?,
        digest(core, client.id(), email, &code)?,
        core.clock.now() + LIFETIME,
    )
    .execute(&mut *conn)
    .await?;
    let texts = texts_of(conn, client.key_of(user)).await?;
    let message = Message {
        to: email.clone(),
        subject: texts.with("mail-code-subject", &[("shop", &client.tenant.name)]),
        text: format!("{}\n", texts.with("mail-code", &[("code", &code)])),
        secrets: Some(vec![code]),
    };
    message.enqueue(conn, core, client.id(), Kind::EmailCode, Some(user)).await
}

/// A code that was right when it was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckedCode {
    /// The address that it was mailed to.
    pub(super) email: EmailAddress,
    /// Digest of the code mailed; `None` for the sandbox's, which is never used up.
    digest: Option<Vec<u8>>,
}

/// Checks a code against the last one mailed; `None` when it is wrong, used, expired or tried too
/// often. A wrong one is counted at once, even if the request fails later, and a new code does not
/// begin the count of the address anew.
///
/// # Errors
/// When the database cannot be used.
pub(super) async fn check(
    core: &Core,
    client: &Client,
    email: &EmailAddress,
    code: &str,
) -> Result<Option<CheckedCode>> {
    if client.tenant.is_test() && code == SANDBOX_CODE {
        return Ok(Some(CheckedCode { email: email.clone(), digest: None }));
    }
    if !attempts::admits_email_code(core, client, email).await? {
        return Ok(None);
    }
    let stored = sqlx::query_scalar!(
        "update email_code set tries = tries + 1 \
         where client_id = $1 and email_index = $2 and expires_at > rampart_now() and tries < $3 \
         returning code_digest",
        client.id().uuid(),
        email_index(core, client.id(), email)?,
        ATTEMPTS_MAX,
    )
    .fetch_optional(&core.db)
    .await?;
    let sent = digest(core, client.id(), email, code)?;
    let stored = stored.filter(|stored| constant_time_eq(stored, &sent));
    Ok(stored.map(|stored| CheckedCode { email: email.clone(), digest: Some(stored) }))
}

/// Uses up a code in the caller's transaction. The sandbox's takes the one mailed with it.
///
/// # Errors
/// ER090 when another request has used it since it was checked, or a new one was mailed.
pub(super) async fn consume(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    code: &CheckedCode,
) -> Result<()> {
    let deleted = sqlx::query!(
        "delete from email_code \
         where client_id = $1 and email_index = $2 and code_digest = coalesce($3, code_digest)",
        client.uuid(),
        email_index(core, client, &code.email)?,
        code.digest.as_deref(),
    )
    .execute(conn)
    .await?;
    match code.digest.is_none() || deleted.rows_affected() == 1 {
        true => Ok(()),
        false => Err(Error::of_member(Code::EmailCodeInvalid, "emailCode")),
    }
}

/// A keyed digest, because six digits are easily guessed from a plain one.
fn digest(core: &Core, client: ClientId, email: &EmailAddress, code: &str) -> Result<Vec<u8>> {
    let message = format!("email-code/{client}/{}/{code}", email.as_str());
    Ok(core.keys.mac(Purpose::BlindIndex, message.as_bytes())?.as_ref().to_vec())
}
