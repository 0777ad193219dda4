//! The kinds of events, and the connectors that may report each.

use crate::money::connectors::commands::CommandKind;

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    PaymentReceived,
    PaymentFailed,
    PaymentRefunded,
    PaymentDisputed,
    DisputeClosed,
    DepositReceived,
    PayoutConfirmed,
    PayoutFailed,
    TransferCompleted,
    TransferReturned,
    IdentityCompleted,
    Health,
}

rampart_types::named_values! {
    pub(super) EventKind {
        PaymentReceived = "payment.received",
        PaymentFailed = "payment.failed",
        PaymentRefunded = "payment.refunded",
        PaymentDisputed = "payment.disputed",
        DisputeClosed = "dispute.closed",
        DepositReceived = "deposit.received",
        PayoutConfirmed = "payout.confirmed",
        PayoutFailed = "payout.failed",
        TransferCompleted = "transfer.completed",
        TransferReturned = "transfer.returned",
        IdentityCompleted = "identity.completed",
        Health = "health",
    }
}

impl EventKind {
    /// True if its words are kept, sealed. A check of an identity and a payment that has failed tell of a
    /// person, of no payment by which an erasure would find them, and no more than the outcome and the
    /// reason, which are with the user and the order.
    pub(super) const fn is_kept(self) -> bool {
        !matches!(self, Self::IdentityCompleted | Self::PaymentFailed)
    }

    /// True if it says that money or coins have come or gone by themselves: no command of ours knows
    /// how many.
    pub(super) const fn names_amount(self) -> bool {
        matches!(
            self,
            Self::PaymentReceived
                | Self::PaymentRefunded
                | Self::PaymentDisputed
                | Self::DepositReceived
        )
    }

    /// True if its amount is of coins.
    pub(super) const fn is_of_coins(self) -> bool {
        matches!(
            self,
            Self::DepositReceived | Self::PayoutConfirmed | Self::PayoutFailed | Self::Health
        )
    }

    /// True if a connector with these capabilities may report it: one that only checks has no word
    /// on money, and one that starts no identity checks none on their end.
    pub(super) fn is_within(self, capabilities: &[String]) -> bool {
        let mut kinds = capabilities.iter().map(|name| CommandKind::from_name(name));
        match self {
            Self::Health => true,
            Self::IdentityCompleted => kinds.any(|kind| kind == Some(CommandKind::IdentityStart)),
            Self::PaymentReceived
            | Self::PaymentFailed
            | Self::PaymentRefunded
            | Self::PaymentDisputed
            | Self::DisputeClosed
            | Self::DepositReceived
            | Self::PayoutConfirmed
            | Self::PayoutFailed
            | Self::TransferCompleted
            | Self::TransferReturned => {
                capabilities.is_empty()
                    || !kinds.all(|kind| kind.is_some_and(CommandKind::is_check))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kinds that a connector with these capabilities may not report.
    fn refused(capabilities: &[&str]) -> Vec<&'static str> {
        let capabilities: Vec<_> = capabilities.iter().map(|&name| name.to_owned()).collect();
        let kinds = EventKind::ALL.into_iter().filter(|kind| !kind.is_within(&capabilities));
        kinds.map(EventKind::as_str).collect()
    }

    #[test]
    fn a_connector_that_only_checks_reports_no_money() {
        let money = [
            "payment.received",
            "payment.failed",
            "payment.refunded",
            "payment.disputed",
            "dispute.closed",
            "deposit.received",
            "payout.confirmed",
            "payout.failed",
            "transfer.completed",
            "transfer.returned",
        ];
        assert_eq!(refused(&["identity.start", "screening.check"]), money);
        let identity = ["identity.completed"];
        let without = ["screening.check", "card.verify", "wallet-provider.verify"];
        assert_eq!(refused(&without), [&money[..], &identity].concat());
    }

    #[test]
    fn any_other_capability_reports_money_and_no_check_of_an_identity() {
        for kind in CommandKind::ALL.into_iter().filter(|kind| !kind.is_check()) {
            assert_eq!(
                refused(&[kind.as_str(), "card.verify"]),
                ["identity.completed"],
                "{kind:?}"
            );
            assert!(refused(&[kind.as_str(), "identity.start"]).is_empty(), "{kind:?}");
        }
        for lax in [&["of.another-version"][..], &[]] {
            assert_eq!(refused(lax), ["identity.completed"], "{lax:?}");
        }
    }
}
