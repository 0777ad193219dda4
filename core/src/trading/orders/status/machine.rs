//! The transitions of a bought order: section 8 of the contract as data.

use chrono::{DateTime, Utc};

use super::{Facts, OrderEvent};
use crate::notify::events::EventType;
use crate::trading::orders::state::{Cause, OrderStatus};

/// A transition: one row of the contract's table.
#[derive(Debug, PartialEq, Eq)]
pub struct Transition {
    /// Status before.
    pub from: OrderStatus,
    /// Cause of the change.
    pub cause: Cause,
    /// Status after.
    pub to: OrderStatus,
    /// The event sent, if any; a release sends none.
    pub(crate) event_type: Option<EventType>,
}

impl Transition {
    /// True if no coins or money may be sent by command once it is made: the order waits, is given
    /// back, or has been paid out by hand.
    pub(crate) const fn ends_payout(&self) -> bool {
        matches!(self.from, OrderStatus::InProgress | OrderStatus::Blocked)
            && !matches!(self.cause, Cause::Released)
    }
}

/// A row of the table.
pub const fn transition(
    from: OrderStatus,
    cause: Cause,
    to: OrderStatus,
    event_type: Option<EventType>,
) -> Transition {
    Transition { from, cause, to, event_type }
}

/// Every permitted transition; any other is refused.
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
        transition(Pending, PriceMoved, Blocked, Some(OrderBlocked)),
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

/// True if an order in this state takes an event of this cause.
pub fn takes(status: OrderStatus, cause: Cause) -> bool {
    TRANSITIONS.iter().any(|row| row.from == status && row.cause == cause)
}

/// Classifies an event of an order at `now`; `None` if it has no effect on such an order.
pub(super) fn cause(facts: &Facts, event: &OrderEvent, now: DateTime<Utc>) -> Option<Cause> {
    let late = facts.expires_at.is_some_and(|end| end < now);
    let cause = match event {
        OrderEvent::PaymentReceived { amount: Some(amount), .. } if *amount != facts.amount => {
            Cause::PaymentAmountWrong
        }
        OrderEvent::PaymentReceived { .. } if late => Cause::PaymentLate,
        OrderEvent::PaymentReceived { .. } if facts.price_moved => Cause::PriceMoved,
        OrderEvent::PaymentReceived { .. } => Cause::PaymentReceived,
        OrderEvent::PaymentDenied { .. } => Cause::PaymentDenied,
        // Coins that are sent twice are paid twice.
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

    use super::super::next_transition;
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    /// An order over 100 that can be paid until second 900.
    fn order(status: OrderStatus, coins_sent: bool) -> Facts {
        let amount = Decimal::ONE_HUNDRED;
        Facts {
            status,
            amount,
            expires_at: Some(at(900)),
            read_at: at(0),
            coins_sent,
            live_price: None,
            price_moved: false,
        }
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
        next_transition(facts, event, now).map(|row| row.to)
    }

    #[test]
    fn every_pair_of_state_and_event_has_a_result() {
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
    fn a_payment_is_classified_by_amount_and_time() {
        let facts = order(OrderStatus::Pending, false);
        let cause =
            |event: &OrderEvent, now| next_transition(&facts, event, now).map(|row| row.cause);
        assert_eq!(cause(&paid(None), at(900)), Some(Cause::PaymentReceived));
        assert_eq!(cause(&paid(Some(100)), at(900)), Some(Cause::PaymentReceived));
        assert_eq!(cause(&paid(None), at(901)), Some(Cause::PaymentLate));
        assert_eq!(cause(&paid(Some(101)), at(0)), Some(Cause::PaymentAmountWrong));
        let moved = Facts { price_moved: true, ..facts.clone() };
        let row = next_transition(&moved, &paid(None), at(900)).unwrap();
        assert_eq!((row.cause, row.to), (Cause::PriceMoved, OrderStatus::Blocked));
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
    fn names_round_trip() {
        for cause in Cause::ALL {
            assert_eq!(Cause::from_name(cause.as_str()), Some(cause));
        }
    }

    proptest! {
        #[test]
        fn no_event_changes_a_final_state(
            steps in proptest::collection::vec((0_usize..10, 0_i64..2000), 0..30),
        ) {
            let events = events();
            let mut facts = order(OrderStatus::Pending, false);
            let mut ended = None;
            for (step, seconds) in steps {
                let event = &events[step];
                if let Some(row) = next_transition(&facts, event, at(seconds)) {
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
                if let Some(row) = next_transition(&facts, &events[step], at(0)) {
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
