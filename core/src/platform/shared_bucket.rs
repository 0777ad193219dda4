//! Rate limits that hold for all edges together: the buckets are rows, and take a statement each. For
//! what is rare and must not be tried once more on every edge, such as passwords. `shared_rates` has
//! those that every request takes from.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;

use crate::Core;
use crate::platform::crypto::Purpose;
use crate::platform::error::Result;
use crate::platform::rate_limit::{Decision, Quota};
use crate::platform::sweeps::DELETED_MAX;

/// Takes one request from the bucket of this digest, exactly: of N racing requests on any edges no
/// more pass than fit (GCRA, as in `rate_limit`). A refused one takes nothing. With another quota it
/// is another bucket, so that a changed rate does not wait for what was taken at the old one.
pub(crate) async fn take(core: &Core, bucket: &[u8; 32], quota: Quota) -> Result<Decision> {
    take_within(&core.db, core, bucket, quota).await
}

/// As [`take`], in the caller's transaction: nothing is taken unless it is committed. The bucket is
/// locked until then.
pub(crate) async fn take_within(
    executor: impl PgExecutor<'_>,
    core: &Core,
    bucket: &[u8; 32],
    quota: Quota,
) -> Result<Decision> {
    let digest = row_digest(core, bucket, quota)?;
    let row = sqlx::query!(
        r#"
        with taken as (
            insert into attempt_bucket as b (bucket_digest, full_at)
            values ($1, rampart_now() + $2::bigint * interval '1 microsecond')
            on conflict (bucket_digest) do update set full_at =
                    greatest(b.full_at, rampart_now()) + $2::bigint * interval '1 microsecond'
                where greatest(b.full_at, rampart_now()) + $2::bigint * interval '1 microsecond'
                    <= rampart_now() + $3::bigint * interval '1 microsecond'
            returning full_at
        )
        select (select full_at from taken) as taken,
            (select full_at from attempt_bucket where bucket_digest = $1) as before,
            rampart_now() as "now!"
        "#,
        digest,
        micros(quota.interval_ns()),
        micros(quota.tolerance_ns()),
    )
    .fetch_one(executor)
    .await?;
    let backlog_ns = |full_at: DateTime<Utc>| {
        let micros = (full_at - row.now).num_microseconds().and_then(|us| u64::try_from(us).ok());
        micros.unwrap_or(0).saturating_mul(1_000)
    };
    Ok(match row.taken {
        Some(full_at) => Decision::admitted(quota, backlog_ns(full_at)),
        // A bucket that was made by a racing request is not seen yet: as if it were as full as can be.
        None => {
            let backlog = row.before.map_or(quota.tolerance_ns(), backlog_ns);
            Decision::refused(quota, backlog)
        }
    })
}

/// True if a request was taken from the bucket of this digest and has not come back yet. Takes nothing.
pub(crate) async fn is_taken_from(core: &Core, bucket: &[u8; 32], quota: Quota) -> Result<bool> {
    let found = sqlx::query_scalar!(
        r#"
        select exists (select from attempt_bucket
            where bucket_digest = $1 and full_at > rampart_now()) as "found!"
        "#,
        row_digest(core, bucket, quota)?,
    )
    .fetch_one(&core.db)
    .await?;
    Ok(found)
}

/// The digest of the row that a bucket has for this quota. Keyed, because a bucket may be a person's: an
/// e-mail address is easily guessed from a plain one.
fn row_digest(core: &Core, bucket: &[u8; 32], quota: Quota) -> Result<Vec<u8>> {
    let (interval, tolerance) = (quota.interval_ns(), quota.tolerance_ns());
    let message = format!("attempts/{bucket:02x?}/{interval}/{tolerance}");
    Ok(core.keys.mac(Purpose::BlindIndex, message.as_bytes())?.as_ref().to_vec())
}

fn micros(ns: u64) -> i64 {
    i64::try_from((ns / 1_000).max(1)).unwrap_or(i64::MAX)
}

impl Core {
    /// Deletes buckets that are full again: one run of a worker. True if there may be more.
    ///
    /// # Errors
    /// When the database cannot be written; the next run continues.
    pub(crate) async fn delete_full_buckets(&self) -> Result<bool> {
        let deleted = sqlx::query!(
            "delete from attempt_bucket where bucket_digest in ( \
                 select bucket_digest from attempt_bucket where full_at <= rampart_now() \
                 limit $1 for update skip locked)",
            DELETED_MAX,
        )
        .execute(&self.db)
        .await?;
        Ok(deleted.rows_affected() >= DELETED_MAX.unsigned_abs())
    }
}
