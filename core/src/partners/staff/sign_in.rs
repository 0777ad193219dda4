//! Proof of a staff member: address, password, and the code of a second factor if there is one.
//! Attempts have the edge's own rate: one that a partner has for its users counts for them alone.

use std::net::IpAddr;

use super::email_index;
use super::second_factor;
use super::session::Session;
use crate::Core;
use crate::auth::caller::Client;
use crate::auth::totp::DAY_QUOTA;
use crate::endpoint::FormUse;
use crate::platform::crypto::{Secret, sha256};
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::platform::network::surrounding_network;
use crate::platform::rate_limit::{Decision, Quota};
use crate::platform::shared_bucket;
use rampart_types::{EmailAddress, StaffId};

/// Limit of attempts to sign in under one name from all networks together.
const NAME_QUOTA: Quota = Quota::new(60, 60, 60);
/// Limit of mails to one address that strangers and owners ask for.
const MAIL_QUOTA: Quota = Quota::new(5, 3_600, 5);

/// The outcome of an attempt.
#[derive(Debug)]
pub enum SignIn {
    /// The value of the new session's cookie.
    Done(String),
    /// The password is right, and a code is needed besides.
    CodeNeeded,
    /// Something is wrong; nothing says which.
    Wrong,
}

/// Signs a staff member in who comes from `peer`. An unknown address takes as long as a wrong
/// password.
///
/// # Errors
/// Code 920 after too many attempts; when the database cannot be used.
pub async fn sign_in(
    core: &Core,
    client: &Client,
    email: &EmailAddress,
    peer: IpAddr,
    password: Secret,
    code: &str,
) -> Result<SignIn> {
    let digests = login_buckets(peer).map(|bucket| digest_of(client, email.as_str(), &bucket));
    count_login(core, &client.tenant.slug, digests).await?;
    let row = sqlx::query!(
        "select staff_id, password_hash, sealed_totp, totp_confirmed_at from staff_member \
         where client_id = $1 and email_index = $2",
        client.id().uuid(),
        email_index(core, client.id(), email)?,
    )
    .fetch_optional(&core.db)
    .await?;
    let hash = row.as_ref().and_then(|row| row.password_hash.clone());
    let verified = core.passwords.verify(password, hash.clone()).await?;
    let (Some(row), Some(hash), true) = (row, hash, verified) else { return Ok(SignIn::Wrong) };
    let staff = StaffId::from(row.staff_id);
    if row.totp_confirmed_at.is_some() {
        if code.trim().is_empty() {
            return Ok(SignIn::CodeNeeded);
        }
        count_code(core, client, staff).await?;
        let sealed = row.sealed_totp.unwrap_or_default();
        let mut conn = core.db.acquire().await?;
        if !second_factor::redeem(&mut conn, core, client.id(), staff, &sealed, code).await? {
            return Ok(SignIn::Wrong);
        }
    }
    let mut tx = core.db.begin().await?;
    let since = row.totp_confirmed_at;
    let cookie = Session::begin(&mut tx, core, client.id(), staff, &hash, since).await?;
    tx.commit().await?;
    Ok(cookie.map_or(SignIn::Wrong, SignIn::Done))
}

/// The hash of the session's member's password, if this is the password. Attempts are counted apart
/// from those at signing in: strangers who guess there lock nobody out here.
///
/// # Errors
/// Code 920 after too many attempts for the address; when the database cannot be used.
pub async fn verify_password(
    core: &Core,
    session: &Session,
    password: Secret,
) -> Result<Option<String>> {
    let client = &session.client;
    count(core, client, session.email.as_str(), "password", core.settings.ratelimit.login).await?;
    let hash = sqlx::query_scalar!(
        "select password_hash from staff_member where client_id = $1 and staff_id = $2",
        client.id().uuid(),
        session.staff.uuid(),
    )
    .fetch_optional(&core.db)
    .await?
    .flatten();
    let verified = core.passwords.verify(password, hash.clone()).await?;
    Ok(hash.filter(|_| verified))
}

/// Counts a mail of this kind that a stranger or an owner asks for, in its transaction: a form that is
/// sent twice counts once. The partner's staff is locked before.
///
/// # Errors
/// Code 920 after too many for the address.
pub async fn count_mail(
    conn: &mut Connection,
    core: &Core,
    client: &Client,
    email: &EmailAddress,
    kind: &str,
) -> Result<()> {
    let bucket = digest_of(client, email.as_str(), kind);
    let decision = shared_bucket::take_within(conn, core, &bucket, MAIL_QUOTA).await?;
    admit(core, &client.tenant.slug, decision)
}

/// Counts an attempt to sign in at a partner that does not exist, as one at any other: nobody learns by
/// refusals which partners exist.
///
/// # Errors
/// Code 920 after too many.
pub async fn count_unknown(
    core: &Core,
    partner: &str,
    email: &EmailAddress,
    peer: IpAddr,
) -> Result<()> {
    let digests = login_buckets(peer).map(|bucket| digest_of_unknown(partner, email, &bucket));
    count_login(core, "", digests).await
}

/// The same for a mail to somebody of such a partner, which this form asks for.
///
/// # Errors
/// Code 920 after too many for the address.
pub async fn count_unknown_mail(
    conn: &mut Connection,
    core: &Core,
    partner: &str,
    email: &EmailAddress,
    form: &str,
) -> Result<()> {
    let sent = digest_of_unknown(partner, email, &format!("form/{form}"));
    if !shared_bucket::take_within(&mut *conn, core, &sent, FormUse::QUOTA).await?.allowed {
        return Ok(());
    }
    let bucket = digest_of_unknown(partner, email, "mail");
    let decision = shared_bucket::take_within(conn, core, &bucket, MAIL_QUOTA).await?;
    admit(core, "", decision)
}

/// Counts a code that a member shows.
///
/// # Errors
/// Code 920 after too many.
pub async fn count_code(core: &Core, client: &Client, staff: StaffId) -> Result<()> {
    let staff = staff.to_string();
    count(core, client, &staff, "code", core.settings.ratelimit.login).await?;
    count(core, client, &staff, "codes-of-a-day", DAY_QUOTA).await
}

/// The buckets of an attempt to sign in under a name: that of the network around the address that it
/// comes from (/24 in IPv4, /48 in IPv6), and that of all networks.
fn login_buckets(peer: IpAddr) -> [String; 2] {
    [format!("login/{}", surrounding_network(peer)), "login".to_owned()]
}

/// Counts an attempt to sign in under one name, by its network and then by all together. Somebody who
/// goes on guessing in one network keeps the member out there alone, at 300 guesses an hour with
/// `ratelimit.login` as it comes; from any number of networks 3,600 an hour remain, which takes twelve
/// networks or more and keeps the member out everywhere.
async fn count_login(core: &Core, partner: &str, digests: [[u8; 32]; 2]) -> Result<()> {
    let quotas = [core.settings.ratelimit.login, NAME_QUOTA];
    for (digest, quota) in digests.iter().zip(quotas) {
        admit(core, partner, shared_bucket::take(core, digest, quota).await?)?;
    }
    Ok(())
}

/// Counts an attempt for this name on all edges together, before anything is looked up.
async fn count(
    core: &Core,
    client: &Client,
    name: &str,
    bucket: &'static str,
    quota: Quota,
) -> Result<()> {
    let digest = digest_of(client, name, bucket);
    let decision = shared_bucket::take(core, &digest, quota).await?;
    admit(core, &client.tenant.slug, decision)
}

fn digest_of(client: &Client, name: &str, bucket: &str) -> [u8; 32] {
    sha256(&format!("staff/{bucket}/{}/{name}", client.id()))
}

fn digest_of_unknown(partner: &str, email: &EmailAddress, bucket: &str) -> [u8; 32] {
    sha256(&format!("staff/unknown/{bucket}/{}/{partner}", email.as_str()))
}

fn admit(core: &Core, partner: &str, decision: Decision) -> Result<()> {
    if decision.allowed {
        return Ok(());
    }
    core.metrics.rate_limited("login", partner);
    Err(Error::rate_limited("login", decision))
}
