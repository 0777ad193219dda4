//! The states of an order and their causes, by the names of the API document, the database and
//! timelines.

use serde::{Serialize, Serializer};

/// The state of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderStatus {
    /// Waits for the payment.
    Pending,
    /// Paid; the coins are on their way.
    InProgress,
    /// Waits for the operator.
    Blocked,
    /// The coins have arrived. Final.
    Completed,
    /// Ended without a payment. Final.
    Cancelled,
    /// The payment was given back. Final.
    Refunded,
}

impl OrderStatus {
    /// Every state.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::InProgress,
        Self::Blocked,
        Self::Completed,
        Self::Cancelled,
        Self::Refunded,
    ];

    /// Every name.
    pub const NAMES: [&'static str; 6] = rampart_types::enum_names!(Self);

    /// On the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in progress",
            Self::Blocked => "blocked",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Refunded => "refunded",
        }
    }

    /// The state of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// True if the order cannot change any more.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled | Self::Refunded)
    }
}

rampart_types::enum_column!(OrderStatus);

rampart_types::inline_schema!(
    OrderStatus,
    {"type": "string", "enum": OrderStatus::NAMES}
);

impl Serialize for OrderStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Cause of an order's state: an event, classified by amount and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A quote was confirmed: the order's first state.
    Confirmed,
    /// The right amount arrived in time.
    PaymentReceived,
    /// The right amount arrived after the order's time to pay.
    PaymentLate,
    /// Another amount than the order's arrived.
    PaymentAmountWrong,
    /// The right amount arrived in time, but the price has moved too far for an estimate.
    PriceMoved,
    /// The payment was denied.
    PaymentDenied,
    /// The time to pay has passed.
    Expired,
    /// The user or the operator cancelled it.
    Cancelled,
    /// The coins were sent.
    CoinsSent,
    /// The coins are confirmed on chain.
    ConfirmedOnChain,
    /// The operator holds it.
    Held,
    /// The operator released it.
    Released,
    /// The payment was given back in full.
    Refunded,
    /// A sale's user was paid.
    PaidOut,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 14] = [
        Self::Confirmed,
        Self::PaymentReceived,
        Self::PaymentLate,
        Self::PaymentAmountWrong,
        Self::PriceMoved,
        Self::PaymentDenied,
        Self::Expired,
        Self::Cancelled,
        Self::CoinsSent,
        Self::ConfirmedOnChain,
        Self::Held,
        Self::Released,
        Self::Refunded,
        Self::PaidOut,
    ];

    /// Name in the database, in timelines, and as the `event` label of the orders' metric.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::PaymentReceived => "payment-received",
            Self::PaymentLate => "payment-late",
            Self::PaymentAmountWrong => "payment-amount-wrong",
            Self::PriceMoved => "price-moved",
            Self::PaymentDenied => "payment-denied",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::CoinsSent => "coins-sent",
            Self::ConfirmedOnChain => "confirmed-on-chain",
            Self::Held => "held",
            Self::Released => "released",
            Self::Refunded => "refunded",
            Self::PaidOut => "paid-out",
        }
    }

    /// The cause of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.as_str() == name)
    }
}

rampart_types::enum_column!(Cause);

/// Type of the wallet that the coins go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WalletType {
    /// A wallet hosted by a service provider.
    Vasp,
    /// A wallet that the user holds the keys of.
    Unhosted,
}

impl WalletType {
    /// On the wire and in the database.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Vasp => "vasp",
            Self::Unhosted => "unhosted",
        }
    }

    /// The type of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Vasp, Self::Unhosted].into_iter().find(|kind| kind.as_str() == name)
    }
}

rampart_types::enum_column!(WalletType);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::metrics::Metrics;

    #[test]
    fn every_cause_is_counted_from_the_start() {
        let metrics = Metrics::new(1).unwrap().render();
        for cause in Cause::ALL {
            let counted = format!("rampart_orders_total{{event=\"{}\"}} 0", cause.as_str());
            assert!(metrics.contains(&counted), "{counted} is not in {metrics}");
        }
        let lines = metrics.matches("\nrampart_orders_total{").count();
        assert_eq!(lines, Cause::ALL.len());
    }
}
