//! Whether this edge should be sent requests: what `/readyz` says.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use sqlx::Connection as _;

use crate::Core;
use crate::tenancy::tenants::load::secret_context;

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
        let looks = async { tokio::join!(self.reaches_database(), self.opens_secrets()) };
        let looks = tokio::time::timeout(DATABASE_MAX, looks).await;
        let (database, keys) = looks.unwrap_or((false, true));
        let checks = vec![
            Check::new("database", database, "Postgres does not answer"),
            Check::new("keys", keys, "keys.master does not open what the database holds"),
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
        ping.await.is_ok()
    }

    /// Whether the newest sealed secret can be opened: not when another edge, with another master
    /// key, has sealed it. A database that cannot be read says nothing about the keys.
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
