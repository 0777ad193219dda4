//! Keys are claimed in batches, by one statement, and forgotten when their time is over.

use std::collections::HashSet;
use std::time::Duration;

use sqlx::PgExecutor;
use uuid::Uuid;

use super::ClaimedKey;
use crate::Core;
use crate::platform::batch::{BatchJob, Batcher, RunSingly};
use crate::platform::db::{HeldConnection, Pool, retrying_statement};
use crate::platform::error::sqlstate::{Retryable as _, is_unavailable};
use crate::platform::error::{Error, Result};
use rampart_types::ClientId;

/// Time that an answer is kept, in seconds: a day.
const KEPT_SECONDS: i32 = 24 * 60 * 60;
/// Time after which a request without an answer is taken for dead, in seconds, and another one may
/// claim its key: its edge was killed, or Postgres went away under it. Short, because one that lives
/// renews its claim, and cannot have an effect once its key is claimed anew.
const CLAIM_SECONDS: i32 = 3;
/// Time between two renewals of a claim, so that one of them may fail.
pub(super) const RENEWAL_INTERVAL: Duration = Duration::from_secs(1);
/// Most keys that one look forgets.
const FORGOTTEN_MAX: i64 = 10_000;

/// The queue of keys that are about to be claimed.
#[derive(Debug)]
pub struct KeyClaims(Batcher<KeyClaim>);

impl KeyClaims {
    /// Claims in this database.
    pub(crate) fn start(db: &Pool) -> Self {
        Self(Batcher::start(db, KeyClaim))
    }

    /// Items that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.0.waiting()
    }

    /// Claims the key; `false` when somebody has it and has not died with it.
    ///
    /// # Errors
    /// When the database cannot be used, or the queue is full.
    pub(super) async fn submit(&self, key: KeyRow) -> Result<bool> {
        self.0.submit(key).await?
    }
}

/// Claims one key on a connection of the task; `false` when somebody has it and has not died with
/// it.
///
/// # Errors
/// When the database cannot be used.
pub(super) async fn claim_alone(db: &Pool, key: &KeyRow) -> Result<bool> {
    let rows = [key];
    let claimed = retrying_statement(|| claim(db, &rows)).await?;
    Ok(!claimed.is_empty())
}

/// A key as it is claimed.
#[derive(Debug)]
pub(super) struct KeyRow {
    pub(super) client_id: Uuid,
    pub(super) route: &'static str,
    pub(super) key: String,
    pub(super) digest: Vec<u8>,
    /// Id of the claim that the request makes.
    pub(super) claim_id: Uuid,
    /// The user of the request's credential. It is indexed: an answer that leaves it as it is needs
    /// no new entries of indexes.
    pub(super) user_id: Option<Uuid>,
}

impl KeyRow {
    fn name(&self) -> (Uuid, &str, &str) {
        (self.client_id, self.route, &self.key)
    }
}

/// Claims batches of keys.
struct KeyClaim;

impl BatchJob for KeyClaim {
    type Item = KeyRow;
    type Output = Result<bool>;
    const BATCH_MAX: usize = 64;
    /// A claim takes little beside what it is claimed for: one after the other, those of a tenant
    /// share more. The other worker is for other tenants.
    const WORKERS: usize = 2;
    const TENANT_BATCHES_MAX: usize = 1;
    const NAME: &'static str = "claim an idempotency key";

    fn tenant(key: &KeyRow) -> ClientId {
        key.client_id.into()
    }

    async fn run(
        &self,
        connection: &mut HeldConnection,
        keys: &[KeyRow],
    ) -> Result<Vec<Result<bool>>, RunSingly> {
        // Of several requests with one key the first one has it.
        let mut names = HashSet::new();
        let first: Vec<bool> = keys.iter().map(|key| names.insert(key.name())).collect();
        let rows: Vec<&KeyRow> =
            keys.iter().zip(&first).filter_map(|(key, first)| first.then_some(key)).collect();
        let mut claimed = match connection.get().await {
            Ok(connection) => claim(connection, &rows).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &claimed {
            connection.release();
            if connection.has_waited(error) {
                return Err(RunSingly);
            }
            if error.is_retryable() {
                let db = connection.pool();
                claimed = retrying_statement(|| claim(db, &rows)).await;
            }
        }
        Ok(match claimed {
            Ok(claimed) => {
                let is_claimed =
                    |key: &KeyRow| claimed.iter().any(|(c, r, k)| (*c, &**r, &**k) == key.name());
                let keys = keys.iter().zip(first);
                keys.map(|(key, first)| Ok(first && is_claimed(key))).collect()
            }
            Err(error) => {
                tracing::error!(%error, keys = keys.len(), "idempotency keys could not be claimed");
                let failed =
                    if is_unavailable(&error) { Error::unavailable } else { Error::invariant };
                keys.iter().map(|_| Err(failed(Self::NAME))).collect()
            }
        })
    }
}

/// Claims keys, no two of them alike. Those that were free: client, route and key.
async fn claim(
    executor: impl PgExecutor<'_>,
    rows: &[&KeyRow],
) -> Result<Vec<(Uuid, String, String)>, sqlx::Error> {
    let clients: Vec<Uuid> = rows.iter().map(|row| row.client_id).collect();
    let routes: Vec<&str> = rows.iter().map(|row| row.route).collect();
    let keys: Vec<&str> = rows.iter().map(|row| &*row.key).collect();
    let digests: Vec<&[u8]> = rows.iter().map(|row| &*row.digest).collect();
    let claims: Vec<Uuid> = rows.iter().map(|row| row.claim_id).collect();
    let users: Vec<Option<Uuid>> = rows.iter().map(|row| row.user_id).collect();
    let claimed = sqlx::query!(
        r#"
        with asked as materialized (
            select * from unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::uuid[],
                $6::uuid[])
                as asked (client_id, route, key, body_digest, claim_id, user_id)
        ), ended as materialized (
            select k.client_id, k.route, k.key
            from asked a join idempotency_key k
                on k.client_id = a.client_id and k.route = a.route and k.key = a.key
            where k.expires_at <= now()
                or (k.status is null and k.claimed_at <= now() - make_interval(secs => $8::int))
            -- a row that is locked is getting its answer, and nobody waits for it
            for update of k skip locked
        ), taken as (
            update idempotency_key k set body_digest = a.body_digest, claim_id = a.claim_id,
                claimed_at = now(), expires_at = now() + make_interval(secs => $7::int),
                status = null, body = null, user_id = a.user_id
            from ended join asked a using (client_id, route, key)
            where k.client_id = a.client_id and k.route = a.route and k.key = a.key
            returning k.client_id, k.route, k.key
        ), made as (
            insert into idempotency_key
                (client_id, route, key, body_digest, claim_id, user_id, claimed_at, expires_at)
            select client_id, route, key, body_digest, claim_id, user_id, now(),
                now() + make_interval(secs => $7::int)
            from asked
            -- in one order, so that two statements never wait for each other
            order by client_id, route, key
            on conflict (client_id, route, key) do nothing
            returning client_id, route, key
        )
        select client_id as "client_id!", route as "route!", key as "key!" from taken
        union all
        select client_id, route, key from made
        "#,
        &clients,
        &routes as &[&str],
        &keys as &[&str],
        &digests as &[&[u8]],
        &claims,
        &users as &[Option<Uuid>],
        KEPT_SECONDS,
        CLAIM_SECONDS,
    )
    .fetch_all(executor)
    .await?;
    Ok(claimed.into_iter().map(|row| (row.client_id, row.route, row.key)).collect())
}

/// Renews a claim that has not ended. A row that is locked is getting its answer, and needs none.
pub(super) async fn renew(db: &Pool, key: &ClaimedKey) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "with held as materialized ( \
             select client_id, route, key from idempotency_key \
             where client_id = $1 and route = $2 and key = $3 and claim_id = $4 \
                 and status is null and claimed_at > now() - make_interval(secs => $5::int) \
             for no key update skip locked) \
         update idempotency_key k set claimed_at = now() from held h \
         where k.client_id = h.client_id and k.route = h.route and k.key = h.key",
        key.client.uuid(),
        key.route,
        key.key,
        key.claim,
        CLAIM_SECONDS,
    )
    .execute(db)
    .await?;
    Ok(())
}

impl Core {
    /// Deletes keys whose time is over: one run of a worker. True if there may be more.
    pub async fn forget_idempotency_keys(&self) -> Result<bool> {
        let forgotten = sqlx::query!(
            "delete from idempotency_key where (client_id, route, key) in ( \
                 select client_id, route, key from idempotency_key where expires_at < now() \
                 limit $1 for update skip locked)",
            FORGOTTEN_MAX,
        )
        .execute(&self.db)
        .await?;
        Ok(forgotten.rows_affected() >= FORGOTTEN_MAX.unsigned_abs())
    }
}
