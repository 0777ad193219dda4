//! The states of an order and their causes, by the names of the API document, the database and
//! timelines.

use serde::{Serialize, Serializer};

use crate::Core;

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

rampart_types::named_values! {
    pub OrderStatus {
        Pending = "pending",
        InProgress = "in progress",
        Blocked = "blocked",
        Completed = "completed",
        Cancelled = "cancelled",
        Refunded = "refunded",
    }
}

impl OrderStatus {
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

rampart_types::named_values! {
    pub Cause {
        Confirmed = "confirmed",
        PaymentReceived = "payment-received",
        PaymentLate = "payment-late",
        PaymentAmountWrong = "payment-amount-wrong",
        PriceMoved = "price-moved",
        PaymentDenied = "payment-denied",
        Expired = "expired",
        Cancelled = "cancelled",
        CoinsSent = "coins-sent",
        ConfirmedOnChain = "confirmed-on-chain",
        Held = "held",
        Released = "released",
        Refunded = "refunded",
        PaidOut = "paid-out",
    }
}

rampart_types::enum_column!(Cause);

impl Cause {
    /// Counts changes of orders by their causes, after the commit.
    pub fn count(core: &Core, causes: impl IntoIterator<Item = Self>) {
        for cause in causes {
            core.metrics.orders.with_label_values(&[cause.as_str()]).inc();
        }
    }
}

/// Type of the wallet that the coins go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WalletType {
    /// A wallet hosted by a service provider.
    Vasp,
    /// A wallet that the user holds the keys of.
    Unhosted,
}

rampart_types::named_values! {
    pub(crate) WalletType {
        Vasp = "vasp",
        Unhosted = "unhosted",
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
