//! Verdicts: the state of a command after a result, and the reason for which support looks at it.

use rampart_types::OrderKey;

use super::Outcome;
use crate::Core;
use crate::money::connectors::commands::CommandKind;
use crate::money::connectors::finished::Finished;
use crate::money::connectors::payouts::is_owed;
use crate::money::payments::refund_withdrawals::is_told;
use crate::platform::db::Connection;
use crate::platform::error::Result;

/// Reason for a review: nobody knows if money or coins have left.
const UNKNOWN: &str = "unknown";
/// Reason for a review: no payer can be told where to pay.
const UNPAYABLE: &str = "unpayable";

/// Attempts at a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempts {
    /// Attempts that were begun, the one at hand too.
    pub(super) begun: i32,
    /// Attempts that have asked for another one, the one at hand among them.
    pub(super) retries: i32,
}

/// The state of a command after a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The state of the command, as stored.
    pub(super) state: &'static str,
    /// The reason that support has to look at it, as stored.
    pub(super) review: Option<&'static str>,
    /// True if its end has effects.
    pub(super) has_effects: bool,
}

impl Verdict {
    const OPEN: Self = Self { state: "open", review: None, has_effects: false };
    const REJECTED: Self = Self { state: "rejected", review: None, has_effects: true };
    const DONE: Self = Self { state: "done", review: None, has_effects: true };

    /// The verdict on an outcome.
    ///
    /// # Errors
    /// The database's, or when the command's body cannot be opened.
    pub(super) async fn new(
        conn: &mut Connection,
        core: &Core,
        outcome: Outcome,
        attempts: Attempts,
        command: &Finished,
    ) -> Result<Self> {
        Ok(match outcome {
            Outcome::Done if command.is_unpayable() => {
                Self { review: Some(UNPAYABLE), ..Self::DONE }
            }
            Outcome::Done => Self::DONE,
            Outcome::Rejected => Self::REJECTED,
            Outcome::Retry => Self::on_retry(conn, core, attempts, command).await?,
        })
    }

    async fn on_retry(
        conn: &mut Connection,
        core: &Core,
        attempts: Attempts,
        command: &Finished,
    ) -> Result<Self> {
        let Attempts { begun, retries } = attempts;
        // After an attempt that reported nothing money may have left: then only another one can find
        // out, however many there have been.
        let is_unknown = begun > retries && command.sends();
        if !is_unknown && is_not_owed(conn, core, command).await? {
            // The order of a payout that is withdrawn waits, or is over: its state is another's word.
            return Ok(Self { has_effects: command.is_refund(), ..Self::REJECTED });
        }
        let attempts_max = i32::try_from(core.settings.connectors.attempts_max);
        let is_last = retries >= attempts_max.unwrap_or(i32::MAX);
        Ok(match (is_last, is_unknown) {
            (true, false) => Self::REJECTED,
            (true, true) => Self { review: Some(UNKNOWN), ..Self::OPEN },
            (false, _) => Self::OPEN,
        })
    }
}

/// True if the command sends what its order does not owe any more, or must not send now, or gives
/// back what was given back at its provider: it is withdrawn in place of another attempt. The
/// order's row stays locked until the transaction ends.
///
/// # Errors
/// The database's, or when the command's body cannot be opened.
async fn is_not_owed(conn: &mut Connection, core: &Core, command: &Finished) -> Result<bool> {
    match (CommandKind::from_name(&command.kind), command.order) {
        (Some(kind @ (CommandKind::PayoutSend | CommandKind::TransferSend)), Some(order)) => {
            let key = OrderKey { client: command.client, order };
            Ok(!is_owed(conn, key, kind, command.amount(core)?).await?)
        }
        (Some(CommandKind::PaymentRefund), _) => {
            Ok(is_told(conn, command.client, command.command).await?)
        }
        _ => Ok(false),
    }
}
