//! The order's states and what leads from one to the next: section 8 of the contract as data.

use chrono::{DateTime, Utc};

use super::{Facts, OrderEvent, OrderStatus};
use crate::events::EventType;

/// Why an order came to its state: an event, judged by what the order says.
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
    /// The payment was denied.
    PaymentDenied,
    /// The time to pay has passed.
    Expired,
    /// The user or the operator called it off.
    Cancelled,
    /// The coins were sent.
    CoinsSent,
    /// The coins are confirmed on chain.
    ConfirmedOnChain,
    /// The operator holds it.
    Held,
    /// The operator lets it go on.
    Released,
    /// The payment was given back in full.
    Refunded,
    /// A sale's user was paid.
    PaidOut,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 13] = [
        Self::Confirmed,
        Self::PaymentReceived,
        Self::PaymentLate,
        Self::PaymentAmountWrong,
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

    /// As stored, in timelines, and as the `event` of the orders' metric.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::PaymentReceived => "payment-received",
            Self::PaymentLate => "payment-late",
            Self::PaymentAmountWrong => "payment-amount-wrong",
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

crate::types::word_column!(Cause);

/// One row of the contract's table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Transition {
    pub(crate) from: OrderStatus,
    pub(crate) cause: Cause,
    pub(crate) to: OrderStatus,
    /// What the partner is told; a release is told by what follows it.
    pub(crate) tells: Option<EventType>,
}

/// A row.
pub(crate) const fn transition(
    from: OrderStatus,
    cause: Cause,
    to: OrderStatus,
    tells: Option<EventType>,
) -> Transition {
    Transition { from, cause, to, tells }
}

/// Everything that may happen to an order once it exists. What is not here is refused.
pub(super) const TRANSITIONS: &[Transition] = {
    use Cause::*;
    use EventType::*;
    use OrderStatus::{Blocked, Completed, InProgress, Pending};
    const CANCELLED: OrderStatus = OrderStatus::Cancelled;
    const REFUNDED: OrderStatus = OrderStatus::Refunded;
    &[
        transition(Pending, PaymentReceived, InProgress, Some(OrderPaid)),
        transition(Pending, PaymentLate, Blocked, Some(OrderBlocked)),
        transition(Pending, PaymentAmountWrong, Blocked, Some(OrderBlocked)),
        transition(Pending, PaymentDenied, CANCELLED, Some(OrderCancelled)),
        transition(Pending, Expired, CANCELLED, Some(OrderCancelled)),
        transition(Pending, Cancelled, CANCELLED, Some(OrderCancelled)),
        transition(InProgress, CoinsSent, InProgress, Some(OrderSent)),
        transition(InProgress, ConfirmedOnChain, Completed, Some(OrderCompleted)),
        transition(InProgress, Held, Blocked, Some(OrderBlocked)),
        transition(InProgress, Refunded, REFUNDED, Some(OrderRefunded)),
        transition(Blocked, Released, InProgress, None),
        transition(Blocked, Refunded, REFUNDED, Some(OrderRefunded)),
    ]
};

/// What an event is judged to be for an order at `now`; `None` when it can be nothing.
pub(super) fn cause(facts: &Facts, event: &OrderEvent, now: DateTime<Utc>) -> Option<Cause> {
    let late = facts.expires_at.is_some_and(|end| end < now);
    let cause = match event {
        OrderEvent::PaymentReceived { amount: Some(amount), .. } if *amount != facts.amount => {
            Cause::PaymentAmountWrong
        }
        OrderEvent::PaymentReceived { .. } if late => Cause::PaymentLate,
        OrderEvent::PaymentReceived { .. } => Cause::PaymentReceived,
        OrderEvent::PaymentDenied { .. } => Cause::PaymentDenied,
        // Sending twice would be paying twice.
        OrderEvent::CoinsSent { .. } if facts.coins_sent => return None,
        OrderEvent::CoinsSent { .. } => Cause::CoinsSent,
        OrderEvent::ConfirmedOnChain => Cause::ConfirmedOnChain,
        OrderEvent::Hold { .. } => Cause::Held,
        OrderEvent::Release => Cause::Released,
        // In progress, a refund is for coins that never left. A blocked order may have had its
        // delivery fail: there the operator decides.
        OrderEvent::Refund { .. }
            if facts.coins_sent && facts.status == OrderStatus::InProgress =>
        {
            return None;
        }
        OrderEvent::Refund { .. } => Cause::Refunded,
        OrderEvent::Cancel { .. } => Cause::Cancelled,
        OrderEvent::Expire if !late => return None,
        OrderEvent::Expire => Cause::Expired,
    };
    Some(cause)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use proptest::prelude::*;
    use rust_decimal::Decimal;

    use super::super::judge;
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    /// An order over 100 that can be paid until second 900.
    fn order(status: OrderStatus, coins_sent: bool) -> Facts {
        let amount = Decimal::ONE_HUNDRED;
        Facts { status, amount, expires_at: Some(at(900)), coins_sent }
    }

    fn paid(amount: Option<i64>) -> OrderEvent {
        OrderEvent::PaymentReceived { amount: amount.map(Decimal::from), reference: None }
    }

    fn events() -> Vec<OrderEvent> {
        vec![
            paid(None),
            paid(Some(99)),
            OrderEvent::PaymentDenied { reason: None },
            OrderEvent::CoinsSent { transaction_id: "ab12".to_owned() },
            OrderEvent::ConfirmedOnChain,
            OrderEvent::Hold { reason: None },
            OrderEvent::Release,
            OrderEvent::Refund { reason: None },
            OrderEvent::Cancel { reason: None },
            OrderEvent::Expire,
        ]
    }

    fn to(facts: &Facts, event: &OrderEvent, now: DateTime<Utc>) -> Option<OrderStatus> {
        judge(facts, event, now).map(|row| row.to)
    }

    #[test]
    fn every_pair_of_state_and_event_is_decided() {
        use OrderStatus::*;
        // Columns as in `events`, at a moment when the time to pay has not passed.
        let table = [
            (
                order(Pending, false),
                [
                    Some(InProgress),
                    Some(Blocked),
                    Some(Cancelled),
                    None,
                    None,
                    None,
                    None,
                    None,
                    Some(Cancelled),
                    None,
                ],
            ),
            (
                order(InProgress, false),
                [
                    None,
                    None,
                    None,
                    Some(InProgress),
                    Some(Completed),
                    Some(Blocked),
                    None,
                    Some(Refunded),
                    None,
                    None,
                ],
            ),
            (
                order(InProgress, true),
                [None, None, None, None, Some(Completed), Some(Blocked), None, None, None, None],
            ),
            (
                order(Blocked, false),
                [None, None, None, None, None, None, Some(InProgress), Some(Refunded), None, None],
            ),
            (
                order(Blocked, true),
                [None, None, None, None, None, None, Some(InProgress), Some(Refunded), None, None],
            ),
            (order(Completed, true), [None; 10]),
            (order(Cancelled, false), [None; 10]),
            (order(Refunded, false), [None; 10]),
        ];
        for (facts, expected) in table {
            for (event, expected) in events().iter().zip(expected) {
                assert_eq!(to(&facts, event, at(0)), expected, "{facts:?} {event:?}");
            }
        }
    }

    #[test]
    fn a_payment_is_judged_by_amount_and_time() {
        let facts = order(OrderStatus::Pending, false);
        let cause = |event: &OrderEvent, now| judge(&facts, event, now).map(|row| row.cause);
        assert_eq!(cause(&paid(None), at(900)), Some(Cause::PaymentReceived));
        assert_eq!(cause(&paid(Some(100)), at(900)), Some(Cause::PaymentReceived));
        assert_eq!(cause(&paid(None), at(901)), Some(Cause::PaymentLate));
        assert_eq!(cause(&paid(Some(101)), at(0)), Some(Cause::PaymentAmountWrong));
        let unlimited = Facts { expires_at: None, ..facts.clone() };
        let much_later = at(0) + TimeDelta::days(400);
        assert_eq!(to(&unlimited, &paid(None), much_later), Some(OrderStatus::InProgress));
    }

    #[test]
    fn an_order_expires_after_its_time_and_never_without_one() {
        let facts = order(OrderStatus::Pending, false);
        assert_eq!(to(&facts, &OrderEvent::Expire, at(900)), None);
        assert_eq!(to(&facts, &OrderEvent::Expire, at(901)), Some(OrderStatus::Cancelled));
        let unlimited = Facts { expires_at: None, ..facts };
        assert_eq!(to(&unlimited, &OrderEvent::Expire, at(10_000_000)), None);
    }

    #[test]
    fn names_are_found_again() {
        for cause in Cause::ALL {
            assert_eq!(Cause::from_name(cause.as_str()), Some(cause));
        }
    }

    proptest! {
        #[test]
        fn whatever_happens_a_final_state_stays(
            steps in proptest::collection::vec((0_usize..10, 0_i64..2000), 0..30),
        ) {
            let events = events();
            let mut facts = order(OrderStatus::Pending, false);
            let mut ended = None;
            for (step, seconds) in steps {
                let event = &events[step];
                if let Some(row) = judge(&facts, event, at(seconds)) {
                    prop_assert_eq!(ended, None);
                    prop_assert_eq!(row.from, facts.status);
                    facts.status = row.to;
                    facts.coins_sent |= row.cause == Cause::CoinsSent;
                }
                ended = facts.status.is_final().then_some(facts.status);
            }
        }

        #[test]
        fn coins_leave_at_most_once(steps in proptest::collection::vec(0_usize..10, 0..40)) {
            let events = events();
            let mut facts = order(OrderStatus::Pending, false);
            let mut sent = 0;
            for step in steps {
                if let Some(row) = judge(&facts, &events[step], at(0)) {
                    facts.status = row.to;
                    if row.cause == Cause::CoinsSent {
                        facts.coins_sent = true;
                        sent += 1;
                    }
                }
            }
            prop_assert!(sent <= 1);
        }
    }
}
