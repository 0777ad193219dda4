//! Events that the sandbox simulates for a sale of a test client.

use crate::trading::orders::state::Cause;

/// A simulated event of a sale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedSaleEvent {
    /// The exact amount of coins arrives.
    DepositReceived,
    /// Twice the amount arrives.
    DepositAmountWrong,
    /// The exact amount of coins arrives after the time to deposit.
    DepositLate,
    /// The payout arrives.
    PaidOut,
    /// The time to deposit ends.
    Expire,
    /// The operator holds it.
    Hold,
    /// The operator releases it.
    Release,
    /// The coins are sent back.
    Refund,
    /// The operator cancels it.
    Cancel,
}

rampart_types::named_values! {
    pub SimulatedSaleEvent {
        DepositReceived = "deposit-received",
        DepositAmountWrong = "deposit-amount-wrong",
        DepositLate = "deposit-late",
        PaidOut = "paid-out",
        Expire = "expire",
        Hold = "hold",
        Release = "release",
        Refund = "refund",
        Cancel = "cancel",
    }
}

impl SimulatedSaleEvent {
    /// The cause that it is classified as.
    pub const fn cause(self) -> Cause {
        match self {
            Self::DepositReceived => Cause::PaymentReceived,
            Self::DepositAmountWrong => Cause::PaymentAmountWrong,
            Self::DepositLate => Cause::PaymentLate,
            Self::PaidOut => Cause::PaidOut,
            Self::Expire => Cause::Expired,
            Self::Hold => Cause::Held,
            Self::Release => Cause::Released,
            Self::Refund => Cause::Refunded,
            Self::Cancel => Cause::Cancelled,
        }
    }
}
