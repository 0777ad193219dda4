//! Readiness of this edge for requests, as `/readyz` reports it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use serde::Serialize;
use tokio::time::timeout;

use crate::Core;
use crate::platform::counted::counted;
use crate::platform::crypto::tenant_key::{is_of_tenant_key, tenant_key_context};
use crate::platform::db::PoolKind;
use crate::platform::error::Result;
use crate::platform::heartbeats::SNAPSHOT;
use crate::platform::metrics::Measurement;
use crate::tenancy::tenants::load::secret_context;
use crate::trading::market::feed::PriceFeed;

/// Longest time that Postgres may take to answer.
const DATABASE_MAX: Duration = Duration::from_secs(1);
/// Longest wait for a connection within it, however long requests wait for theirs: a check that gets none
/// cannot tell whether Postgres answers.
const CONNECTION_MAX: Duration = Duration::from_millis(900);
/// Newest secrets of which one must open.
const SECRETS_TRIED: i64 = 16;
/// Age of the snapshot from which an edge is not ready: a suspended partner may still be served.
const SNAPSHOT_AGE_MAX: Duration = Duration::from_secs(3);
/// Largest difference between the clock of this machine and that of the database.
const CLOCK_DIFFERENCE_MAX: TimeDelta = TimeDelta::seconds(2);

/// The result of all checks; ready if each of them passed.
#[derive(Debug, Serialize)]
pub struct Readiness {
    /// True if every check passed.
    pub ready: bool,
    /// The checks.
    pub checks: Vec<Check>,
}

/// The check of one dependency.
#[derive(Debug, Serialize)]
pub struct Check {
    /// `database`, `keys` ...
    pub name: &'static str,
    /// True if it passed.
    pub ok: bool,
    /// The outcome in a word.
    pub status: Status,
    /// Reason of a failure, without internals; empty if all is well.
    pub detail: Cow<'static, str>,
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// All is well.
    Ok,
    /// The edge serves, but somebody must look.
    Degraded,
    /// The edge does not serve as it should.
    Failed,
}

/// Progress of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    Database,
    /// All connections are busy.
    NoConnection,
    Nothing,
}

impl Check {
    fn new(name: &'static str, ok: bool, detail: impl Into<Cow<'static, str>>) -> Self {
        let status = if ok { Status::Ok } else { Status::Failed };
        Self { name, ok, status, detail: if ok { "".into() } else { detail.into() } }
    }

    fn failed(name: &'static str, detail: Option<String>) -> Self {
        Self::new(name, detail.is_none(), detail.unwrap_or_default())
    }

    fn degraded(name: &'static str, detail: Option<String>) -> Self {
        let status = if detail.is_none() { Status::Ok } else { Status::Degraded };
        Self { name, ok: true, status, detail: detail.unwrap_or_default().into() }
    }
}

impl Core {
    /// Checks everything that requests need. Takes at most a second.
    pub async fn readiness(&self) -> Readiness {
        let (reached, keys) = tokio::join!(
            timeout(DATABASE_MAX, self.reaches_database()),
            timeout(DATABASE_MAX, self.opens_secrets()),
        );
        let (reached, keys) = (reached.unwrap_or(Reached::Nothing), keys.unwrap_or(true));
        let checks = vec![
            Check::new("database", reached != Reached::Nothing, "Postgres does not answer"),
            Check::new("keys", keys, "keys.master does not open what the database holds"),
            self.prices(),
            self.policies(),
            Check::new("pool", reached != Reached::NoConnection, "no connection is free"),
            Check::failed("snapshot", self.old_snapshot()),
            Check::degraded("workers", self.stuck_worker()),
            Check::failed("clock", self.wrong_clock()),
            Check::degraded("rows", self.broken_rows()),
            Check::degraded("books", self.finding(Measurement::Books)),
            Check::degraded("audit", self.finding(Measurement::Audit)),
            Check::degraded("rates", self.unshared_rates()),
            Check::degraded("documents", self.unusable_documents()),
            Check::degraded("replicas", self.unusable_replicas()),
        ];
        Readiness { ready: checks.iter().all(|check| check.ok), checks }
    }

    /// Failed while policies are compiled that replace others, degraded while some cannot be.
    fn policies(&self) -> Check {
        let (pending, failed) = (self.policies_pending(), self.policies_failed());
        match pending {
            0 => Check::degraded(
                "policies",
                (failed > 0).then(|| {
                    let policies = counted(failed, "policy", "policies");
                    format!("degraded: {policies} cannot be compiled, older versions serve")
                }),
            ),
            _ => Check::new("policies", false, "policies are being compiled"),
        }
    }

    /// Does once what workers do for [`Core::readiness`], for a look from outside of a running edge:
    /// tries what is beside the database, and reads what the last checks of books and audit found.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn look_once(&self) -> Result<()> {
        tokio::join!(self.shared_rates.check(), self.documents.check());
        self.db.look_at_replicas().await?;
        self.measure_books().await?;
        self.show_audit_check().await
    }

    /// The reason the snapshot is too old, if it is.
    fn old_snapshot(&self) -> Option<String> {
        let age = self.heartbeats.age(SNAPSHOT, self.clock.monotonic_ns())?;
        let seconds = age.as_secs();
        (age > SNAPSHOT_AGE_MAX).then(|| format!("partners and market are {seconds} s old"))
    }

    /// The reason background work is not done, if it is not. Requests do without it, but for what
    /// has a check of its own: a mail server that hangs, or an order of a certificate, takes no edge
    /// away from partners.
    fn stuck_worker(&self) -> Option<String> {
        let (worker, age) = self.heartbeats.stuck(self.clock.monotonic_ns())?;
        Some(format!("degraded: {worker}: no successful run for {} s", age.as_secs()))
    }

    /// The reason this machine's clock cannot be trusted, if it cannot.
    fn wrong_clock(&self) -> Option<String> {
        let ahead = self.clock.database_ahead();
        let seconds = ahead.num_milliseconds().unsigned_abs() / 1_000;
        let side = if ahead > TimeDelta::zero() { "behind" } else { "ahead of" };
        (ahead.abs() > CLOCK_DIFFERENCE_MAX)
            .then(|| format!("this machine's clock is {seconds} s {side} the database's"))
    }

    /// The reason this edge counts its rates alone although it should not, if it does.
    fn unshared_rates(&self) -> Option<String> {
        let reason = self.shared_rates.problem()?;
        Some(format!(
            "degraded: this edge counts its rates alone, because of ratelimit.redis_url: {reason}"
        ))
    }

    /// The reason documents cannot be stored, if they cannot; nor read, where they are in a bucket.
    fn unusable_documents(&self) -> Option<String> {
        Some(format!("degraded: {}", self.documents.problem()?))
    }

    /// The replicas that operators' reads cannot use, if there are any.
    fn unusable_replicas(&self) -> Option<String> {
        let most = self.settings.database.replica_lag_max_ms;
        let unusable = self.db.replica_lags().filter_map(|(at, lag)| match lag {
            None => Some(format!("{at} cannot be read")),
            Some(lag) => (lag.num_milliseconds().unsigned_abs() > most)
                .then(|| format!("{at} is {} s behind", lag.num_seconds())),
        });
        let unusable: Vec<_> = unusable.collect();
        (!unusable.is_empty()).then(|| {
            format!(
                "degraded: operators' reads leave replicas out of database.replica_urls: {}",
                unusable.join(", ")
            )
        })
    }

    /// The number of rows that were left out, if there are any, by table.
    fn broken_rows(&self) -> Option<String> {
        let snapshot = self.snapshots.current();
        let mut tables = BTreeMap::new();
        for row in snapshot.broken_rows() {
            *tables.entry(row.table).or_insert(0_u64) += 1;
        }
        let all: u64 = tables.values().sum();
        let tables: Vec<_> = tables.iter().map(|(table, rows)| format!("{table} {rows}")).collect();
        (all > 0).then(|| {
            format!(
                "degraded: rows that cannot be read are left out: {all} ({})",
                tables.join(", ")
            )
        })
    }

    /// Fails if prices have been set and none can be quoted. A single closed pair is in maintenance,
    /// not the edge; an edge whose prices nobody has set yet can be set up. A pair whose sources are too
    /// few for a price is told of while nothing else is amiss.
    fn prices(&self) -> Check {
        let now = self.clock.now();
        let catalogue = Arc::clone(&self.snapshots.current().catalogue);
        let priced = catalogue.pairs.values().filter_map(|pair| Some((pair, pair.price.as_ref()?)));
        let (open, closed): (Vec<_>, Vec<_>) = priced.partition(|(_, price)| price.is_open(now));
        let closed: Vec<_> = closed
            .into_iter()
            .map(|(pair, price)| match price.deviating {
                Some(deviating) => format!("{}: its sources say {deviating} instead", pair.code),
                None => format!("{}: {} s old", pair.code, (now - price.observed_at).num_seconds()),
            })
            .collect();
        let short: Vec<_> = self.price_feed.iter().flat_map(PriceFeed::short_pairs).collect();
        match (open.is_empty(), closed.is_empty()) {
            (true, true) if short.is_empty() => {
                Check::degraded("prices", Some("no pair has a price".to_owned()))
            }
            (true, true) => {
                let detail = format!("no pair has a price: {}", short.join(", "));
                Check::degraded("prices", Some(detail))
            }
            (true, false) => {
                let detail = format!("no pair has a fresh price: {}", closed.join(", "));
                Check::failed("prices", Some(detail))
            }
            (false, true) => {
                let detail = format!("degraded: {}", short.join(", "));
                Check::degraded("prices", (!short.is_empty()).then_some(detail))
            }
            (false, false) => {
                let detail = format!("degraded: pairs are closed: {}", closed.join(", "));
                Check::degraded("prices", Some(detail))
            }
        }
    }

    /// A sentence for each pair with `prices.sources` that does not exist; `None` where nobody reads any.
    pub fn unknown_priced_pairs(&self) -> Option<Vec<String>> {
        let sources = self.price_feed.as_ref()?.names();
        let catalogue = Arc::clone(&self.snapshots.current().catalogue);
        let unknown = sources.into_keys().filter(|pair| !catalogue.pairs.contains_key(pair));
        Some(unknown.map(|pair| format!("{pair}: there is no such pair")).collect())
    }

    async fn reaches_database(&self) -> Reached {
        if self.db.is_away() {
            return Reached::Nothing;
        }
        let ask = async {
            let acquired = timeout(CONNECTION_MAX, self.db.acquire()).await;
            let mut connection = acquired.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
            sqlx::query_scalar::<_, i32>("select 1").fetch_one(&mut *connection).await
        };
        match PoolKind::Requests.run(ask).await {
            Ok(_) => Reached::Database,
            Err(sqlx::Error::PoolTimedOut) if !self.db.is_away() => Reached::NoConnection,
            Err(_) => Reached::Nothing,
        }
    }

    /// True if the newest secrets and tenants' keys can be opened: an edge with another master key may have
    /// sealed them. One that is broken says nothing about the key as long as another one opens. If
    /// the database cannot be read, the keys count as good. False also without one of the keys that
    /// outlive rotations, which the end of a rotation seals again.
    async fn opens_secrets(&self) -> bool {
        if self.keys.lacks_lasting() {
            return false;
        }
        let newest = sqlx::query!(
            r#"
            (select client_id as "client!", secret_id, sealed as "sealed!", created_at
                from client_secret where sealed is not null order by created_at desc limit $1)
            union all
            (select client_id, null, sealed, created_at
                from tenant_key order by created_at desc limit $1)
            order by created_at desc
            "#,
            SECRETS_TRIED,
        );
        let newest = PoolKind::Snapshot.run(newest.fetch_all(&self.db)).await;
        let Ok(mut newest) = newest else { return true };
        // What a tenant's key has sealed says nothing of the master key.
        newest.retain(|row| !is_of_tenant_key(&row.sealed));
        if newest.first().is_some_and(|row| self.keys.is_of_another_key(&row.sealed)) {
            return false;
        }
        let mut opened = newest.iter().map(|row| {
            let context = match row.secret_id {
                Some(secret) => secret_context(row.client, secret),
                None => tenant_key_context(row.client.into()),
            };
            self.keys.open(&context, &row.sealed).is_ok()
        });
        newest.is_empty() || opened.any(|opens| opens)
    }
}
