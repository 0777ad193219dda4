//! Whether this edge should be sent requests: what `/readyz` says.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use sqlx::Connection as _;

use crate::Core;

/// Time in which Postgres must answer.
const DATABASE_MAX: Duration = Duration::from_secs(1);

/// Ready when every check is.
#[derive(Debug, Serialize)]
pub struct Readiness {
    /// Whether requests should come.
    pub ready: bool,
    /// What was looked at.
    pub checks: Vec<Check>,
}

/// One thing that requests need.
#[derive(Debug, Serialize)]
pub struct Check {
    /// `database`, `keys` ...
    pub name: &'static str,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What is missing, without anything of the inside; empty when nothing is.
    pub detail: &'static str,
}

impl Check {
    fn new(name: &'static str, ok: bool, detail: &'static str) -> Self {
        Self { name, ok, detail: if ok { "" } else { detail } }
    }
}

impl Core {
    /// Looks at everything that requests need. Takes at most a second.
    pub async fn readiness(&self) -> Readiness {
        let checks = vec![
            Check::new("database", self.reaches_database().await, "Postgres does not answer"),
            // A core without its keys does not start.
            Check::new("keys", true, ""),
            Check::new("prices", self.can_quote(), "no pair has a fresh price"),
            Check::new("policies", self.policies_pending() == 0, "policies are being compiled"),
        ];
        Readiness { ready: checks.iter().all(|check| check.ok), checks }
    }

    /// Whether there is a pair to quote. One stale price is that pair's maintenance, not ours.
    fn can_quote(&self) -> bool {
        let now = self.clock.now();
        let catalogue = Arc::clone(&self.snapshots.current().catalogue);
        catalogue.pairs.values().any(|pair| pair.live_price(now).is_some())
    }

    async fn reaches_database(&self) -> bool {
        let ping = async { self.db.acquire().await?.ping().await };
        matches!(tokio::time::timeout(DATABASE_MAX, ping).await, Ok(Ok(())))
    }
}
