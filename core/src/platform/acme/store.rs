//! Rows by which edges share a certificate that one of them obtains.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use x509_parser::pem::Pem;

use super::{AcmeState, Certificate, Challenge};
use crate::Core;
use crate::platform::crypto::Secret;
use crate::platform::db::Pool;
use crate::platform::error::{Error, Result};

/// Time for which one edge tries alone; longer than an attempt may take.
const LEASE_SECONDS: i32 = 240;
/// Time for which a challenge is answered.
const CHALLENGE_SECONDS: i32 = 600;
/// A certificate is renewed when this part of its life is left: a third.
const RENEW_PART: i32 = 3;

/// The context under which the credentials of an account are sealed.
pub fn account_context(directory_url: &str) -> String {
    format!("ACME account at {directory_url}")
}

/// The context under which the key of a certificate is sealed.
pub fn key_context(domains: &str) -> String {
    format!("key of the certificate for {domains}")
}

/// The end of the lease under which this edge tries; `None` when nothing is due or another edge does.
pub(super) async fn claim(db: &Pool, domains: &str) -> Result<Option<DateTime<Utc>>> {
    let lease = sqlx::query_scalar!(
        r#"
        insert into acme_certificate as c (domains, leased_until)
        values ($1, now() + make_interval(secs => $2::int))
        on conflict (domains) do update set leased_until = excluded.leased_until
            where coalesce(c.leased_until, now()) <= now() and c.next_attempt_at <= now()
                and coalesce(c.renew_at, now()) <= now()
        returning leased_until as "leased_until!"
        "#,
        domains,
        LEASE_SECONDS,
    );
    Ok(lease.fetch_optional(db).await?)
}

/// Stores what was issued and ends the lease.
///
/// # Errors
/// When the authority's answer is no certificate, another edge has taken the lease over, whose challenges
/// stay, or the database cannot be used.
pub(super) async fn keep(
    core: &Core,
    domains: &str,
    lease: DateTime<Utc>,
    issued: &Certificate,
) -> Result<()> {
    let (not_before, not_after) = validity(&issued.chain)?;
    let life = not_after - not_before;
    let sealed =
        core.keys.seal(&core.clock, &key_context(domains), issued.key.expose().as_bytes())?;
    let mut tx = core.db.begin().await?;
    let kept = sqlx::query!(
        "update acme_certificate set chain = $3, sealed_key = $4, not_after = $5, renew_at = $6, \
             leased_until = null, failures = 0 \
         where domains = $1 and leased_until = $2",
        domains,
        lease,
        issued.chain,
        sealed,
        not_after,
        not_after - life / RENEW_PART,
    )
    .execute(&mut *tx)
    .await?;
    if kept.rows_affected() == 0 {
        return Err(Error::invariant("keep a certificate under its lease"));
    }
    let names: Vec<_> = domains.split(',').map(str::to_owned).collect();
    sqlx::query!("delete from acme_challenge where domain = any($1)", &names)
        .execute(&mut *tx)
        .await?;
    Ok(tx.commit().await?)
}

/// Ends the lease of an attempt that failed, so that the next attempt waits; `false` when another edge
/// has taken the lease over.
pub(super) async fn postpone(db: &Pool, domains: &str, lease: DateTime<Utc>) -> Result<bool> {
    let postponed = sqlx::query!(
        "update acme_certificate set leased_until = null, failures = failures + 1, \
             next_attempt_at = now() + least(interval '1 day', \
                 interval '1 minute' * power(2, least(failures, 20))) \
         where domains = $1 and leased_until = $2",
        domains,
        lease,
    )
    .execute(db)
    .await?;
    Ok(postponed.rows_affected() == 1)
}

/// Stores a challenge for every edge to answer.
pub(super) async fn challenge(db: &Pool, domain: &str, digest: &[u8]) -> Result<()> {
    sqlx::query!(
        "insert into acme_challenge (domain, digest, expires_at) \
         values ($1, $2, now() + make_interval(secs => $3::int)) \
         on conflict (domain) do update set digest = excluded.digest, \
             expires_at = excluded.expires_at",
        domain,
        digest,
        CHALLENGE_SECONDS,
    )
    .execute(db)
    .await?;
    Ok(())
}

/// The credentials of the account at an authority, if there is one.
pub(super) async fn account(core: &Core, directory_url: &str) -> Result<Option<Vec<u8>>> {
    let sealed = sqlx::query_scalar!(
        "select sealed from acme_account where directory_url = $1",
        directory_url
    );
    let sealed = sealed.fetch_optional(&core.db).await?;
    sealed.map(|sealed| core.keys.open(&account_context(directory_url), &sealed)).transpose()
}

/// Stores the credentials of a new account.
pub(super) async fn keep_account(core: &Core, directory_url: &str, plain: &[u8]) -> Result<()> {
    let sealed = core.keys.seal(&core.clock, &account_context(directory_url), plain)?;
    sqlx::query!(
        "insert into acme_account (directory_url, sealed) values ($1, $2) \
         on conflict (directory_url) do nothing",
        directory_url,
        sealed,
    )
    .execute(&core.db)
    .await?;
    Ok(())
}

/// The certificate and the challenges as they are now. As long as there is no certificate for these
/// names, such as after a change of the settings, it is the one for others that lasts longest.
pub(super) async fn read(core: &Core, domains: &str) -> Result<AcmeState> {
    let row = sqlx::query!(
        r#"
        select domains, chain as "chain!", sealed_key as "sealed_key!"
        from acme_certificate
        where chain is not null and (domains = $1 or not_after > now())
        order by domains = $1 desc, not_after desc limit 1
        "#,
        domains
    );
    let certificate = row.fetch_optional(&core.db).await?.map(|row| {
        let key = core.keys.open(&key_context(&row.domains), &row.sealed_key)?;
        let key = String::from_utf8(key).map_err(|e| Error::internal("read a key", e))?;
        Ok::<_, Error>(Arc::new(Certificate { chain: row.chain, key: Secret::new(key) }))
    });
    let challenges = sqlx::query_as!(
        Challenge,
        "select domain, digest from acme_challenge where expires_at > now() order by domain"
    );
    Ok(AcmeState {
        certificate: certificate.transpose()?,
        challenges: challenges.fetch_all(&core.db).await?,
    })
}

/// Begin and end of the validity of the first certificate of a chain.
fn validity(chain: &str) -> Result<(DateTime<Utc>, DateTime<Utc>)> {
    let unreadable = || Error::invariant("read the certificate that was issued");
    let pem = Pem::iter_from_buffer(chain.as_bytes()).next().and_then(Result::ok);
    let pem = pem.ok_or_else(unreadable)?;
    let validity = pem.parse_x509().map_err(|_| unreadable())?.validity().clone();
    let time = |seconds| DateTime::from_timestamp(seconds, 0).ok_or_else(unreadable);
    let (begin, end) =
        (time(validity.not_before.timestamp())?, time(validity.not_after.timestamp())?);
    if end - begin < TimeDelta::seconds(1) { Err(unreadable()) } else { Ok((begin, end)) }
}
