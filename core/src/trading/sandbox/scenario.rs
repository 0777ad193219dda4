//! Magic values: a test order that carries one follows a path of its own, from its confirm on and
//! without anybody at the payment page.
//!
//! What an order is to follow is read off the order whenever something has happened to it, so
//! there is nothing to store, and what a partner or an operator does in between counts.

use rust_decimal::Decimal;

use super::simulated_event::SimulatedEvent;
use crate::trading::orders::state::{Cause, OrderStatus};

/// Every magic amount is this much in the order's fiat currency, and a cent more for each scenario.
const AMOUNT_CENTS: i64 = 10_100;
/// Every magic reference starts like this; anything may follow the scenario's name behind a dash,
/// so that references can differ.
const REFERENCE_PREFIX: &str = "sandbox-";

/// A path that an order follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    Completed,
    Denied,
    Expired,
    Cancelled,
    Blocked,
    Refunded,
    Held,
}

impl Scenario {
    /// Every scenario; the place of one decides its amount.
    pub(crate) const ALL: [Self; 7] = [
        Self::Completed,
        Self::Denied,
        Self::Expired,
        Self::Cancelled,
        Self::Blocked,
        Self::Refunded,
        Self::Held,
    ];

    /// The scenario of an order with this reference of its partner's and this fiat amount. The
    /// reference goes first.
    pub(crate) fn of(reference: Option<&str>, fiat: Decimal) -> Option<Self> {
        let named = reference.and_then(|text| text.strip_prefix(REFERENCE_PREFIX));
        let named = named.and_then(|text| text.split('-').next());
        let by_name = |scenario: &Self| named == Some(scenario.name());
        Self::ALL
            .into_iter()
            .find(by_name)
            .or_else(|| Self::ALL.into_iter().find(|scenario| scenario.amount() == fiat))
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Blocked => "blocked",
            Self::Refunded => "refunded",
            Self::Held => "held",
        }
    }

    /// The `partnerOrderIdentifier` that asks for it.
    pub(crate) fn reference(self) -> String {
        format!("{REFERENCE_PREFIX}{}", self.name())
    }

    /// The `fiatAmount` that asks for it.
    pub(crate) fn amount(self) -> Decimal {
        let place = Self::ALL.into_iter().position(|scenario| scenario == self);
        let cents = place.and_then(|place| i64::try_from(place + 1).ok()).unwrap_or_default();
        Decimal::new(AMOUNT_CENTS + cents, 2)
    }

    /// What the order comes to in the end.
    pub(crate) const fn ends(self) -> OrderStatus {
        match self {
            Self::Completed => OrderStatus::Completed,
            Self::Denied | Self::Expired | Self::Cancelled => OrderStatus::Cancelled,
            Self::Blocked | Self::Held => OrderStatus::Blocked,
            Self::Refunded => OrderStatus::Refunded,
        }
    }

    /// In words, for developers.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Completed => "The payment arrives without the payment page; the coins follow.",
            Self::Denied => "The payment is denied.",
            Self::Expired => "The order is not paid in time.",
            Self::Cancelled => "The user calls the order off.",
            Self::Blocked => "Twice the amount arrives: the order waits for the operator.",
            Self::Refunded => "Twice the amount arrives and is given back in full.",
            Self::Held => "The payment arrives; then the order is held for compliance.",
        }
    }

    /// All that happens, in order.
    pub(crate) fn steps(self) -> Vec<SimulatedEvent> {
        let (mut steps, mut cause) = (Vec::new(), Cause::Confirmed);
        while let Some(step) = next(Some(self), cause, steps.contains(&SimulatedEvent::CoinsSent)) {
            steps.push(step);
            cause = step.cause();
        }
        steps
    }
}

/// What happens next by itself to an order that `cause` brought where it is; `None` while people
/// are waited for, or for nothing at all.
pub(crate) fn next(
    scenario: Option<Scenario>,
    cause: Cause,
    coins_sent: bool,
) -> Option<SimulatedEvent> {
    use Scenario::{Blocked, Cancelled, Completed, Denied, Expired, Held, Refunded};
    match (cause, scenario) {
        (Cause::Confirmed, Some(Completed | Held)) => Some(SimulatedEvent::PaymentReceived),
        (Cause::Confirmed, Some(Denied)) => Some(SimulatedEvent::PaymentDenied),
        (Cause::Confirmed, Some(Expired)) => Some(SimulatedEvent::Expire),
        (Cause::Confirmed, Some(Cancelled)) => Some(SimulatedEvent::Cancel),
        (Cause::Confirmed, Some(Blocked | Refunded)) => Some(SimulatedEvent::PaymentAmountWrong),
        (Cause::PaymentReceived, Some(Held)) => Some(SimulatedEvent::Hold),
        (Cause::PaymentAmountWrong, Some(Refunded)) => Some(SimulatedEvent::Refund),
        (Cause::CoinsSent, _) => Some(SimulatedEvent::ConfirmedOnChain),
        (Cause::Released, _) if coins_sent => Some(SimulatedEvent::ConfirmedOnChain),
        (Cause::PaymentReceived | Cause::Released, _) => Some(SimulatedEvent::CoinsSent),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_scenario_has_its_own_values() {
        let amounts: BTreeSet<_> = Scenario::ALL.map(Scenario::amount).into();
        assert_eq!(amounts.len(), Scenario::ALL.len());
        for scenario in Scenario::ALL {
            let of = |reference: &str| Scenario::of(Some(reference), Decimal::ONE_HUNDRED);
            assert_eq!(of(&scenario.reference()), Some(scenario));
            assert_eq!(of(&format!("{}-7", scenario.reference())), Some(scenario));
            assert_eq!(of(&format!("{}7", scenario.reference())), None);
            assert_eq!(Scenario::of(None, scenario.amount()), Some(scenario));
        }
        assert_eq!(
            Scenario::of(Some("sandbox-denied"), Scenario::Held.amount()),
            Some(Scenario::Denied)
        );
        assert_eq!(Scenario::of(Some("sandbox"), Decimal::ONE_HUNDRED), None);
    }

    #[test]
    fn an_order_without_magic_waits_for_its_payment_and_then_goes_on() {
        assert_eq!(next(None, Cause::Confirmed, false), None);
        assert_eq!(next(None, Cause::PaymentReceived, false), Some(SimulatedEvent::CoinsSent));
        assert_eq!(next(None, Cause::CoinsSent, true), Some(SimulatedEvent::ConfirmedOnChain));
        assert_eq!(next(None, Cause::Released, false), Some(SimulatedEvent::CoinsSent));
        assert_eq!(next(None, Cause::Released, true), Some(SimulatedEvent::ConfirmedOnChain));
        for cause in [Cause::Held, Cause::PaymentLate, Cause::PaymentAmountWrong] {
            assert_eq!(next(None, cause, false), None, "{cause:?} waits for the operator");
        }
    }

    #[test]
    fn nothing_follows_the_end_of_an_order() {
        let ends = [
            Cause::PaymentDenied,
            Cause::Expired,
            Cause::Cancelled,
            Cause::ConfirmedOnChain,
            Cause::Refunded,
        ];
        let scenarios = Scenario::ALL.map(Some).into_iter().chain([None]);
        for (scenario, end) in scenarios.flat_map(|scenario| ends.map(|end| (scenario, end))) {
            assert_eq!(next(scenario, end, true), None, "{scenario:?} {end:?}");
        }
    }
}
