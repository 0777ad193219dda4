//! The confirmation of the user's e-mail address on a page, by the code that was mailed to it, or by a
//! link to set a password.

use super::account::Account;
use super::changed;
use super::email_code;
use super::one_time_token::lock_for_checks;
use super::user_update::{EmailProof, UserUpdate, verify_email};
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Result};
use rampart_types::{UserId, UserKey};

/// Mails a new code to the user's address, as often as addresses get codes. The page was opened by this
/// token of a sign-in, or by an order's link.
///
/// # Errors
/// Those of [`lock_for_checks`].
pub(crate) async fn mail_code(
    core: &Core,
    client: &Client,
    user: UserId,
    token: Option<&str>,
) -> Result<()> {
    let key = client.key_of(user);
    let mut tx = core.db.begin().await?;
    lock_for_checks(&mut tx, key, token).await?;
    let known = Account::load(&mut tx, core, key).await?.ok_or(Code::UserNotFound)?;
    if let Some(email) = &known.personal.email {
        email_code::mail(&mut tx, core, client, user, email).await?;
    }
    tx.commit().await?;
    Ok(())
}

/// Marks the user's address as verified if the code was mailed to it, with what follows from it; `false`
/// if it was not, or is used, expired or tried too often. The page was opened by this token of a sign-in,
/// or by an order's link.
///
/// # Errors
/// ER090 when another request has used the code meanwhile; those of [`lock_for_checks`].
pub(crate) async fn confirm(
    core: &Core,
    client: &Client,
    user: UserId,
    token: Option<&str>,
    code: &str,
) -> Result<bool> {
    let key = client.key_of(user);
    let mut conn = core.db.acquire().await?;
    let known = Account::load(&mut conn, core, key).await?;
    drop(conn);
    let email = known.ok_or(Code::UserNotFound)?.personal.email;
    // A wrong code is counted, so this precedes the transaction.
    let proof = EmailProof::check(core, client, email.as_ref(), Some(code)).await?;
    let EmailProof::Verified(checked) = &proof else { return Ok(false) };
    let mut tx = core.db.begin().await?;
    lock_for_checks(&mut tx, key, token).await?;
    let before = Account::load(&mut tx, core, key).await?.ok_or(Code::UserNotFound)?;
    if before.personal.email.as_ref() != Some(&checked.email) {
        return Ok(false);
    }
    // The form was sent twice: the other request has used the code.
    if before.statuses.email == "verified" {
        return Ok(true);
    }
    let update = UserUpdate::start(&mut tx, core, client, user).await?;
    update.settle_email(&mut tx, Some(&checked.email), &proof).await?;
    let after = Account::load(&mut tx, core, key).await?.ok_or(Code::UserNotFound)?;
    changed::record_events(&mut tx, core, &before, &after).await?;
    tx.commit().await?;
    Ok(true)
}

/// Marks the address of a user as verified by a mailed link, in the transaction that has redeemed it
/// and so locks the user's row, and records what follows. `true` if nothing has proven the address
/// before. One that an operator has blocked stays so.
///
/// # Errors
/// ER709 when the user is deleted.
pub(super) async fn confirm_by_link(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
) -> Result<bool> {
    let before = Account::load(conn, core, key).await?.ok_or(Code::UserNotFound)?;
    match &*before.statuses.email {
        "verified" => return Ok(false),
        // A block hides the state before it; the time of the first proof stays.
        "blocked" => return Ok(before.activated_at.is_none()),
        _ => verify_email(conn, core, key).await?,
    }
    let after = Account::load(conn, core, key).await?.ok_or(Code::UserNotFound)?;
    changed::record_events(conn, core, &before, &after).await?;
    Ok(true)
}
