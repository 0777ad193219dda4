//! Events that the sandbox simulates for a sale of a test client.

#[cfg(test)]
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

impl SimulatedSaleEvent {
    const ALL: [Self; 9] = [
        Self::DepositReceived,
        Self::DepositAmountWrong,
        Self::DepositLate,
        Self::PaidOut,
        Self::Expire,
        Self::Hold,
        Self::Release,
        Self::Refund,
        Self::Cancel,
    ];

    /// Every name.
    pub(crate) const NAMES: [&'static str; 9] = rampart_types::enum_names!(Self);

    /// Name in paths.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::DepositReceived => "deposit-received",
            Self::DepositAmountWrong => "deposit-amount-wrong",
            Self::DepositLate => "deposit-late",
            Self::PaidOut => "paid-out",
            Self::Expire => "expire",
            Self::Hold => "hold",
            Self::Release => "release",
            Self::Refund => "refund",
            Self::Cancel => "cancel",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == name)
    }

    /// The cause that it is classified as.
    #[cfg(test)]
    pub(crate) const fn cause(self) -> Cause {
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
