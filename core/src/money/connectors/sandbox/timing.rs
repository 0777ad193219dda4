//! The time that the sandbox takes for its commands.

use crate::Core;
use crate::money::connectors::commands::CommandKind;

/// The sandbox's name among the connectors. No program outside has it.
pub const NAME: &str = "sandbox";

/// The time of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// It is done as it is commanded: its end has no effect that anybody waits for.
    pub(crate) is_done: bool,
    /// Time until it may be leased, in milliseconds.
    pub(crate) delay_ms: i64,
}

impl Timing {
    /// The time of a command of this kind: none, unless it is the sandbox's.
    pub(crate) fn of(core: &Core, kind: CommandKind, is_simulated: bool) -> Self {
        let (is_done, delay_ms) = match kind {
            _ if !is_simulated => (false, 0),
            // It is paid, and an identity is checked, on our own pages; a payment that nobody makes
            // needs no cancellation; what is screened has its decision with the command.
            CommandKind::PaymentCreate
            | CommandKind::PaymentCancel
            | CommandKind::IdentityStart
            | CommandKind::ScreeningCheck => (true, 0),
            CommandKind::PayoutSend | CommandKind::TransferSend | CommandKind::PaymentRefund => {
                (false, step_ms(core))
            }
            _ => (false, 0),
        };
        Self { is_done, delay_ms }
    }
}

/// Time between two steps of the sandbox, in milliseconds.
pub(crate) fn step_ms(core: &Core) -> i64 {
    core.settings.sandbox.step_ms.into()
}
