//! Events that the sandbox simulates for a test order.

use crate::trading::orders::state::Cause;

/// A simulated event. The names are those that operators use and timelines show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedEvent {
    /// The exact amount arrives.
    PaymentReceived,
    /// Twice the amount arrives.
    PaymentAmountWrong,
    /// The exact amount arrives after the time to pay.
    PaymentLate,
    /// The payment is denied.
    PaymentDenied,
    /// The time to pay ends.
    Expire,
    /// The user cancels it.
    Cancel,
    /// The coins are sent, in a simulated transaction.
    CoinsSent,
    /// That transaction is confirmed.
    ConfirmedOnChain,
    /// The operator holds it.
    Hold,
    /// The operator releases it.
    Release,
    /// The payment is given back.
    Refund,
}

rampart_types::named_values! {
    pub SimulatedEvent {
        PaymentReceived = "payment-received",
        PaymentAmountWrong = "payment-amount-wrong",
        PaymentLate = "payment-late",
        PaymentDenied = "payment-denied",
        Expire = "expire",
        Cancel = "cancel",
        CoinsSent = "coins-sent",
        ConfirmedOnChain = "confirmed-on-chain",
        Hold = "hold",
        Release = "release",
        Refund = "refund",
    }
}

impl SimulatedEvent {
    /// The cause that it is classified as while the order can be paid.
    pub const fn cause(self) -> Cause {
        match self {
            Self::PaymentReceived => Cause::PaymentReceived,
            Self::PaymentAmountWrong => Cause::PaymentAmountWrong,
            Self::PaymentLate => Cause::PaymentLate,
            Self::PaymentDenied => Cause::PaymentDenied,
            Self::Expire => Cause::Expired,
            Self::Cancel => Cause::Cancelled,
            Self::CoinsSent => Cause::CoinsSent,
            Self::ConfirmedOnChain => Cause::ConfirmedOnChain,
            Self::Hold => Cause::Held,
            Self::Release => Cause::Released,
            Self::Refund => Cause::Refunded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_found_by_its_own_name_alone() {
        for event in SimulatedEvent::ALL {
            assert_eq!(SimulatedEvent::from_name(event.as_str()), Some(event));
        }
        assert_eq!(SimulatedEvent::from_name(""), None);
        assert_eq!(SimulatedEvent::from_name("Cancel"), None);
    }
}
