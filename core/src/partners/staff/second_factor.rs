//! The second factor of a staff member: codes of an authenticator app, each of which counts once.

use super::session::Session;
use super::{notify, totp_context};
use crate::Core;
use crate::auth::totp::TotpSecret;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::users::security_notice::Changed;
use rampart_types::{ClientId, StaffId};

/// Gives the member a new secret, which is not in use before its first code is shown. `None` while
/// another one is in use, or when the member has another password than the one whose hash was
/// verified.
pub async fn begin(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    staff: StaffId,
    password_hash: &str,
) -> Result<Option<TotpSecret>> {
    let secret = TotpSecret::generate(&core.clock)?;
    let sealed = core.cipher(client).seal(&totp_context(client, staff), secret.bytes())?;
    let stored = sqlx::query!(
        "update staff_member set sealed_totp = $3, totp_step = 0 \
         where client_id = $1 and staff_id = $2 and totp_confirmed_at is null \
             and password_hash = $4",
        client.uuid(),
        staff.uuid(),
        sealed,
        password_hash,
    )
    .execute(conn)
    .await?;
    Ok((stored.rows_affected() > 0).then_some(secret))
}

/// Puts the secret in use if the code is one of its own.
pub async fn confirm(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    staff: StaffId,
    code: &str,
) -> Result<bool> {
    let redeemed = redeem_stored(conn, core, client, staff, code).await?;
    let Some(sealed) = redeemed else { return Ok(false) };
    let confirmed = sqlx::query!(
        "update staff_member set totp_confirmed_at = rampart_now() \
         where client_id = $1 and staff_id = $2 and sealed_totp = $3 and totp_confirmed_at is null",
        client.uuid(),
        staff.uuid(),
        sealed,
    )
    .execute(conn)
    .await?;
    Ok(confirmed.rows_affected() > 0)
}

/// Takes the second factor away if the code is one of its own.
pub async fn remove(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    staff: StaffId,
    code: &str,
) -> Result<bool> {
    if redeem_stored(conn, core, client, staff, code).await?.is_none() {
        return Ok(false);
    }
    sqlx::query!(
        "update staff_member set sealed_totp = null, totp_confirmed_at = null, totp_step = 0 \
         where client_id = $1 and staff_id = $2",
        client.uuid(),
        staff.uuid(),
    )
    .execute(conn)
    .await?;
    Ok(true)
}

/// Ends the member's sessions but the one in which the second factor was changed, and tells the member
/// by mail.
pub async fn follow_change(
    conn: &mut Connection,
    core: &Core,
    session: &Session,
    changed: Changed,
) -> Result<()> {
    session.end_others(conn).await?;
    notify(conn, core, session.client.id(), session.email.clone(), changed).await
}

/// Uses a code of the member's stored secret up; the sealed secret, or `None` for another code.
async fn redeem_stored(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    staff: StaffId,
    code: &str,
) -> Result<Option<Vec<u8>>> {
    let sealed = sqlx::query_scalar!(
        "select sealed_totp from staff_member where client_id = $1 and staff_id = $2",
        client.uuid(),
        staff.uuid(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(sealed) = sealed.flatten() else { return Ok(None) };
    let is_redeemed = redeem(conn, core, client, staff, &sealed, code).await?;
    Ok(is_redeemed.then_some(sealed))
}

/// Uses a code up: of several attempts with one code, one counts.
///
/// # Errors
/// When the secret cannot be read or the database cannot be written.
pub(super) async fn redeem(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    staff: StaffId,
    sealed: &[u8],
    code: &str,
) -> Result<bool> {
    let plain = core.cipher(client).open(&totp_context(client, staff), sealed)?;
    let secret = TotpSecret::from_bytes(&plain)
        .ok_or_else(|| Error::invariant("read the second factor of a staff member"))?;
    let Some(step) = secret.verify(code, core.clock.unix_seconds()) else { return Ok(false) };
    let used = sqlx::query!(
        "update staff_member set totp_step = $3 \
         where client_id = $1 and staff_id = $2 and totp_step < $3",
        client.uuid(),
        staff.uuid(),
        step,
    )
    .execute(conn)
    .await?;
    Ok(used.rows_affected() > 0)
}
