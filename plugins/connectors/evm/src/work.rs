//! The loop that leases commands and has them carried out.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat};
use rampart_connector::{Client, Command, LeaseRequest, Outcome};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::chain::Chain;
use crate::deposits::Deposits;
use crate::key::Signer;
use crate::nonces::Nonces;
use crate::payout;
use crate::settings::Settings;

/// Longest wait for a command, in seconds.
const WAIT_SECONDS: u16 = 5;

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
        let in_flight_max = usize::from(self.settings.payouts.in_flight_max);
        let mut tasks = JoinSet::new();
        loop {
            while tasks.try_join_next().is_some() {}
            if tasks.len() >= in_flight_max {
                tasks.join_next().await;
                continue;
            }
            let max = u16::try_from(in_flight_max - tasks.len()).unwrap_or(1);
            let lease_seconds = self.settings.payouts.lease_seconds;
            let request = LeaseRequest { max, wait_seconds: WAIT_SECONDS, lease_seconds, kinds };
            let leased = self.edge.lease(&request).await.map_err(|error| error.to_string())?;
            for command in leased {
                let worker = Arc::clone(self);
                tasks.spawn(async move { worker.carry_out(&command).await });
            }
        }
    }

    async fn carry_out(&self, command: &Command) {
        tracing::info!(?command, "leased");
        let outcome = match (command.kind.as_str(), &self.deposits) {
            ("payout.send", _) => return payout::carry_out(self, command).await,
            ("deposit.address", Some(deposits)) => {
                let seconds = self.settings.payouts.lease_seconds;
                match deposits.make(&self.edge, command, seconds).await {
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

/// A block's time as the API writes times.
pub(crate) fn time_of(unix_seconds: u64) -> String {
    let seconds = i64::try_from(unix_seconds).unwrap_or(i64::MAX);
    let time = DateTime::from_timestamp(seconds, 0).unwrap_or(DateTime::UNIX_EPOCH);
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(time_of(1_772_366_400), "2026-03-01T12:00:00Z");
    }
}
