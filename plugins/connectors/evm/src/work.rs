//! The loop that leases commands and has them carried out.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat};
use rampart_connector::{Client, Command, LeaseRequest, Outcome};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::chain::Chain;
use crate::deposits::Deposits;
use crate::key::Signer;
use crate::nonces::Nonces;
use crate::payout;
use crate::settings::Settings;

/// Longest wait for a command, in seconds.
const WAIT_SECONDS: u16 = 5;
/// Most commands that are leased at once, those whose transaction only waits for its confirmations
/// included: each has a lease to be renewed, and a question to the node.
const LEASED_MAX: usize = 1_000;

/// Everything that a command needs.
pub(crate) struct Worker {
    pub(crate) settings: Settings,
    pub(crate) edge: Client,
    pub(crate) chain: Chain,
    pub(crate) signer: Signer,
    pub(crate) nonces: Mutex<Nonces>,
    pub(crate) deposits: Option<Deposits>,
}

impl Worker {
    /// Leases commands and carries them out, until the edge refuses.
    ///
    /// # Errors
    /// The edge's refusal.
    pub(crate) async fn run(self: &Arc<Self>) -> Result<(), String> {
        let kinds: &[&str] = match self.deposits {
            Some(_) => &["payout.send", "deposit.address"],
            None => &["payout.send"],
        };
        let slots = Slots::new(self.settings.payouts.in_flight_max);
        let mut tasks = JoinSet::new();
        loop {
            while tasks.try_join_next().is_some() {}
            if tasks.len() >= LEASED_MAX {
                tasks.join_next().await;
                continue;
            }
            let free = slots.free(LEASED_MAX - tasks.len()).await?;
            let max = u16::try_from(free.len()).unwrap_or(1);
            let lease_seconds = self.settings.payouts.lease_seconds;
            let request = LeaseRequest { max, wait_seconds: WAIT_SECONDS, lease_seconds, kinds };
            let leased = self.edge.lease(&request).await.map_err(|error| error.to_string())?;
            for (command, slot) in leased.into_iter().zip(free) {
                let worker = Arc::clone(self);
                tasks.spawn(async move { worker.carry_out(&command, slot).await });
            }
        }
    }

    /// Carries a command out. Its slot is free again once it has ended, or waits for confirmations.
    async fn carry_out(&self, command: &Command, slot: OwnedSemaphorePermit) {
        tracing::info!(?command, "leased");
        let outcome = match (command.kind.as_str(), &self.deposits) {
            ("payout.send", _) => return payout::carry_out(self, command, slot).await,
            ("deposit.address", Some(deposits)) => {
                match deposits.make(&self.settings, &self.edge, command).await {
                    Ok(outcome) => outcome,
                    Err(error) => {
                        tracing::error!(command = command.id, error, "no addresses were made");
                        None
                    }
                }
            }
            (kind, _) => Some(Outcome::rejected(format!("{kind} is not done here"))),
        };
        if let Some(outcome) = outcome
            && let Err(error) = self.edge.report(command, &outcome).await
        {
            tracing::error!(command = command.id, %error, "a result was not taken");
        }
    }
}

/// The slots of what is to be sent. What waits for no more than blocks has none.
struct Slots(Arc<Semaphore>);

impl Slots {
    fn new(count: u16) -> Self {
        Self(Arc::new(Semaphore::new(count.into())))
    }

    /// The slots that are free, at most so many; waits for the first one.
    ///
    /// # Errors
    /// Never while they are in use.
    async fn free(&self, most: usize) -> Result<Vec<OwnedSemaphorePermit>, String> {
        let first = Arc::clone(&self.0).acquire_owned().await;
        let mut free = vec![first.map_err(|error| error.to_string())?];
        while free.len() < most
            && let Ok(slot) = Arc::clone(&self.0).try_acquire_owned()
        {
            free.push(slot);
        }
        Ok(free)
    }
}

/// A block's time as the API writes times.
pub(crate) fn time_of(unix_seconds: u64) -> String {
    let seconds = i64::try_from(unix_seconds).unwrap_or(i64::MAX);
    let time = DateTime::from_timestamp(seconds, 0).unwrap_or(DateTime::UNIX_EPOCH);
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn as_many_slots_are_free_as_none_holds() {
        let slots = Slots::new(3);
        let mut held = slots.free(2).await.unwrap();
        assert_eq!(held.len(), 2, "no more than are wanted");
        assert_eq!(slots.free(9).await.unwrap().len(), 1, "no more than there are");
        held.pop();
        assert_eq!(slots.free(9).await.unwrap().len(), 2);
    }

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(time_of(1_772_366_400), "2026-03-01T12:00:00Z");
    }
}
