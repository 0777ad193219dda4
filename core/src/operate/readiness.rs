//! Readiness of this edge for requests, as `/readyz` reports it.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use sqlx::Connection as _;

use crate::Core;
use crate::tenancy::tenants::load::secret_context;

/// Longest time that Postgres may take to answer.
const DATABASE_MAX: Duration = Duration::from_secs(1);

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
    /// Reason of a failure, without internals; empty if the check passed.
    pub detail: &'static str,
}

impl Check {
    fn new(name: &'static str, ok: bool, detail: &'static str) -> Self {
        Self { name, ok, detail: if ok { "" } else { detail } }
    }
}

impl Core {
    /// Checks everything that requests need. Takes at most a second.
    pub async fn readiness(&self) -> Readiness {
        let checks = async { tokio::join!(self.reaches_database(), self.opens_secrets()) };
        let checks = tokio::time::timeout(DATABASE_MAX, checks).await;
        let (database, keys) = checks.unwrap_or((false, true));
        let checks = vec![
            Check::new("database", database, "Postgres does not answer"),
            Check::new("keys", keys, "keys.master does not open what the database holds"),
            Check::new("prices", self.can_quote(), "no pair has a fresh price"),
            Check::new("policies", self.policies_pending() == 0, "policies are being compiled"),
        ];
        Readiness { ready: checks.iter().all(|check| check.ok), checks }
    }

    /// True if any pair can be quoted. A single stale price puts its pair in maintenance, not the
    /// edge.
    fn can_quote(&self) -> bool {
        let now = self.clock.now();
        let catalogue = Arc::clone(&self.snapshots.current().catalogue);
        catalogue.pairs.values().any(|pair| pair.live_price(now).is_some())
    }

    async fn reaches_database(&self) -> bool {
        let ping = async { self.db.acquire().await?.ping().await };
        ping.await.is_ok()
    }

    /// True if the newest sealed secret can be opened: an edge with another master key may have
    /// sealed it. If the database cannot be read, the keys count as good.
    async fn opens_secrets(&self) -> bool {
        let newest = sqlx::query!(
            r#"
            select client_id, secret_id, sealed as "sealed!" from client_secret
            where sealed is not null order by created_at desc limit 1
            "#
        );
        match newest.fetch_optional(&self.db).await {
            Ok(Some(row)) => {
                let context = secret_context(row.client_id, row.secret_id);
                self.keys.open(&context, &row.sealed).is_ok()
            }
            Ok(None) | Err(_) => true,
        }
    }
}
