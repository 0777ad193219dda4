//! Verification codes of e-mail addresses: mailed to the user, sent back by the partner.

use chrono::TimeDelta;

use super::account::texts_of;
use super::attempts;
use super::personal_data::email_index;
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::crypto::{Purpose, constant_time_eq};
use crate::platform::db::Connection;
use crate::platform::error::Result;
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

/// Checks a code against the last one mailed. A wrong one is counted at once, even if the request
/// fails later, and a new code does not begin the count of the address anew.
///
/// # Errors
/// When the database cannot be used.
pub(super) async fn check(
    core: &Core,
    client: &Client,
    email: &EmailAddress,
    code: &str,
) -> Result<bool> {
    if client.tenant.is_test() && code == SANDBOX_CODE {
        return Ok(true);
    }
    if !attempts::admits_email_code(core, client, email).await? {
        return Ok(false);
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
    Ok(stored.is_some_and(|stored| constant_time_eq(&stored, &sent)))
}

/// Deletes the code of an address, used or not.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn delete(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    email: &EmailAddress,
) -> Result<()> {
    sqlx::query!(
        "delete from email_code where client_id = $1 and email_index = $2",
        client.uuid(),
        email_index(core, client, email)?,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A keyed digest, because six digits are easily guessed from a plain one.
fn digest(core: &Core, client: ClientId, email: &EmailAddress, code: &str) -> Result<Vec<u8>> {
    let message = format!("email-code/{client}/{}/{code}", email.as_str());
    Ok(core.keys.mac(Purpose::BlindIndex, message.as_bytes())?.as_ref().to_vec())
}
