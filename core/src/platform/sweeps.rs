//! Sweeps: workers that settle rows of many clients. A row, or a client, that cannot be settled is
//! counted and passed over; the next run tries it again.

use std::collections::HashSet;
use std::fmt::Display;

use uuid::Uuid;

use crate::platform::error::Result;
use crate::platform::metrics::Metrics;
use rampart_types::ClientId;

/// Most rows of one table, or of one client in it, that one run deletes of what has expired.
pub(crate) const DELETED_MAX: i64 = 5_000;
/// The sweeps that delete what has expired, in metrics and logs.
const EXPIRED: &str = "expired tokens";

/// One run of a sweep.
pub(crate) struct Sweep<'a> {
    metrics: &'a Metrics,
    name: &'static str,
    /// Clients whose rows somebody holds: one wait for each is enough.
    held: HashSet<Uuid>,
}

impl<'a> Sweep<'a> {
    /// Begins a run; the name is that in metrics and logs.
    pub(crate) fn new(metrics: &'a Metrics, name: &'static str) -> Self {
        Self { metrics, name, held: HashSet::new() }
    }

    /// Settles these rows, each given by its client and its number or id, one after the other; returns
    /// the number of those of which `settle` says that it has changed them.
    pub(crate) async fn settle<R, F, Fut>(&mut self, rows: Vec<(Uuid, R)>, settle: F) -> Result<u32>
    where
        R: Copy + Display,
        F: Fn(ClientId, R) -> Fut,
        Fut: Future<Output = Result<bool>>,
    {
        let mut changed = 0;
        for (client, row) in rows {
            if self.held.contains(&client) {
                continue;
            }
            match settle(client.into(), row).await {
                Ok(settled) => changed += u32::from(settled),
                Err(error) => {
                    if error.is_lock_timeout() {
                        self.held.insert(client);
                    }
                    self.metrics.row_failed(self.name, client, &row, error)?;
                }
            }
        }
        Ok(changed)
    }
}

/// Deletes what has expired of each of these clients; `kind` names it in logs. True if `delete` says
/// of a client that there may be more.
///
/// # Errors
/// When the database cannot be written; the next run continues.
pub(crate) async fn delete_expired<F, Fut>(
    metrics: &Metrics,
    kind: &'static str,
    clients: Vec<Uuid>,
    delete: F,
) -> Result<bool>
where
    F: Fn(ClientId) -> Fut,
    Fut: Future<Output = Result<bool>>,
{
    let mut has_more = false;
    for client in clients {
        match delete(client.into()).await {
            Ok(more) => has_more |= more,
            Err(error) => metrics.row_failed(EXPIRED, client, &kind, error)?,
        }
    }
    Ok(has_more)
}

/// Runs transactions until one says that nothing is left, at most so many. A lock that is not free in
/// time ends the run.
///
/// # Errors
/// When the database cannot be used; the next run continues.
pub async fn run_batches<F, Fut>(
    metrics: &Metrics,
    name: &'static str,
    batches_max: usize,
    batch: F,
) -> Result<()>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<bool>>,
{
    for _ in 0..batches_max {
        match batch().await {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) if error.is_lock_timeout() => {
                return metrics.row_failed(name, Uuid::nil(), &"locked", error);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
