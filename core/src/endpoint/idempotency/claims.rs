//! Keys are claimed in batches, by one statement.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{PgExecutor, PgPool};
use uuid::Uuid;

use crate::platform::batch::{BatchJob, Batcher};
use crate::platform::clock::Clock;
use crate::platform::db::{HeldConnection, retrying_statement};
use crate::platform::error::sqlstate::{Retryable as _, is_unavailable};
use crate::platform::error::{Error, Result};

/// Time that an answer is kept.
const KEPT: TimeDelta = TimeDelta::hours(24);
/// After this time without an answer the request that claimed the key is taken for dead (its edge
/// was killed), and the key may be claimed again. Longer than any request may run.
const CLAIM: TimeDelta = TimeDelta::seconds(60);

/// The queue of keys that are about to be claimed.
#[derive(Debug)]
pub struct KeyClaims(Batcher<KeyClaim>);

impl KeyClaims {
    /// Claims in this database.
    pub(crate) fn start(db: &PgPool, clock: &Clock) -> Self {
        Self(Batcher::start(db, KeyClaim { clock: clock.clone() }))
    }

    /// Claims the key; `false` when somebody has it and has not died with it.
    ///
    /// # Errors
    /// When the database cannot be used, or the queue is full.
    pub(super) async fn submit(&self, key: KeyRow) -> Result<bool> {
        self.0.submit(key).await?
    }
}

/// A key as it is claimed.
#[derive(Debug)]
pub(super) struct KeyRow {
    pub(super) client_id: Uuid,
    pub(super) route: &'static str,
    pub(super) key: String,
    pub(super) digest: Vec<u8>,
}

impl KeyRow {
    fn name(&self) -> (Uuid, &str, &str) {
        (self.client_id, self.route, &self.key)
    }
}

/// Claims batches of keys.
struct KeyClaim {
    clock: Clock,
}

impl BatchJob for KeyClaim {
    type Item = KeyRow;
    type Output = Result<bool>;
    const BATCH_MAX: usize = 64;
    /// A claim takes little beside what it is claimed for: one after the other they share more.
    const WORKERS: usize = 1;
    const NAME: &'static str = "claim an idempotency key";

    async fn run(&self, connection: &mut HeldConnection, keys: Vec<KeyRow>) -> Vec<Result<bool>> {
        // Of several requests with one key the first one has it.
        let mut names = HashSet::new();
        let first: Vec<bool> = keys.iter().map(|key| names.insert(key.name())).collect();
        let rows: Vec<&KeyRow> =
            keys.iter().zip(&first).filter_map(|(key, first)| first.then_some(key)).collect();
        let now = self.clock.now();
        let mut claimed = match connection.get().await {
            Ok(connection) => claim(connection, &rows, now).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &claimed {
            connection.release();
            if error.is_retryable() {
                let db = connection.pool();
                claimed = retrying_statement(|| claim(db, &rows, now)).await;
            }
        }
        match claimed {
            Ok(claimed) => {
                let is_claimed =
                    |key: &KeyRow| claimed.iter().any(|(c, r, k)| (*c, &**r, &**k) == key.name());
                let keys = keys.iter().zip(first);
                keys.map(|(key, first)| Ok(first && is_claimed(key))).collect()
            }
            Err(error) => {
                tracing::error!(%error, keys = keys.len(), "idempotency keys could not be claimed");
                let failed =
                    if is_unavailable(&error) { Error::unavailable } else { Error::broken };
                keys.iter().map(|_| Err(failed(Self::NAME))).collect()
            }
        }
    }
}

/// Claims keys, no two of them alike. Those that were free: client, route and key.
async fn claim(
    executor: impl PgExecutor<'_>,
    rows: &[&KeyRow],
    now: DateTime<Utc>,
) -> Result<Vec<(Uuid, String, String)>, sqlx::Error> {
    let clients: Vec<Uuid> = rows.iter().map(|row| row.client_id).collect();
    let routes: Vec<&str> = rows.iter().map(|row| row.route).collect();
    let keys: Vec<&str> = rows.iter().map(|row| &*row.key).collect();
    let digests: Vec<&[u8]> = rows.iter().map(|row| &*row.digest).collect();
    // In one order, so that two statements never wait for each other.
    let claimed = sqlx::query!(
        r#"
        insert into idempotency_key as known
            (client_id, route, key, body_digest, claimed_at, expires_at)
        select client_id, route, key, body_digest, $5, $6
        from unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[])
            as asked (client_id, route, key, body_digest)
        order by client_id, route, key
        on conflict (client_id, route, key) do update
            set body_digest = excluded.body_digest, claimed_at = excluded.claimed_at,
                expires_at = excluded.expires_at, status = null, body = null
            where known.expires_at < $5 or (known.status is null and known.claimed_at < $7)
        returning client_id, route, key
        "#,
        &clients,
        &routes as &[&str],
        &keys as &[&str],
        &digests as &[&[u8]],
        now,
        now + KEPT,
        now - CLAIM,
    )
    .fetch_all(executor)
    .await?;
    Ok(claimed.into_iter().map(|row| (row.client_id, row.route, row.key)).collect())
}
