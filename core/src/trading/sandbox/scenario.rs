//! Magic values: a test order with one follows a scenario from its confirm on, without the payment
//! page.
//!
//! The scenario is derived from the order after each event, so that it needs no storage and events
//! of partners and operators in between count.

use rust_decimal::Decimal;

use super::simulated_event::SimulatedEvent;
use crate::trading::orders::state::{Cause, OrderStatus};

/// Base of the magic amounts in the order's fiat currency; each scenario adds a cent.
const AMOUNT_CENTS: i64 = 10_100;
/// Prefix of the magic references; any text may follow the scenario's name and a dash, so that
/// references can differ.
const REFERENCE_PREFIX: &str = "sandbox-";

/// A path through the order's states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Paid and paid out.
    Completed,
    /// The payment is denied.
    Denied,
    /// Nobody pays in time.
    Expired,
    /// Cancelled by the user.
    Cancelled,
    /// Paid, and blocked for a review.
    Blocked,
    /// Paid, blocked and refunded.
    Refunded,
    /// Paid, and held for compliance.
    Held,
    /// Paid after its time.
    Late,
    /// Paid, and given back before coins are sent.
    Returned,
}

impl Scenario {
    /// Every scenario; its position decides its amount.
    pub const ALL: [Self; 9] = [
        Self::Completed,
        Self::Denied,
        Self::Expired,
        Self::Cancelled,
        Self::Blocked,
        Self::Refunded,
        Self::Held,
        Self::Late,
        Self::Returned,
    ];

    /// The scenario of an order with this partner reference and this fiat amount. The reference
    /// has precedence.
    pub(crate) fn detect(reference: Option<&str>, fiat: Decimal) -> Option<Self> {
        Self::named(reference)
            .or_else(|| Self::ALL.into_iter().find(|scenario| scenario.amount() == fiat))
    }

    /// The scenario that this partner reference names.
    pub(crate) fn named(reference: Option<&str>) -> Option<Self> {
        let name = reference?.strip_prefix(REFERENCE_PREFIX)?.split('-').next();
        Self::ALL.into_iter().find(|scenario| name == Some(scenario.name()))
    }

    /// The name, as a partner reference carries it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Blocked => "blocked",
            Self::Refunded => "refunded",
            Self::Held => "held",
            Self::Late => "late",
            Self::Returned => "returned",
        }
    }

    /// The `partnerOrderIdentifier` that selects it.
    pub fn reference(self) -> String {
        format!("{REFERENCE_PREFIX}{}", self.name())
    }

    /// The `fiatAmount` that selects it.
    pub fn amount(self) -> Decimal {
        let position = Self::ALL.into_iter().position(|scenario| scenario == self);
        let cents =
            position.and_then(|position| i64::try_from(position + 1).ok()).unwrap_or_default();
        Decimal::new(AMOUNT_CENTS + cents, 2)
    }

    /// The order's last status.
    pub const fn final_status(self) -> OrderStatus {
        match self {
            Self::Completed => OrderStatus::Completed,
            Self::Denied | Self::Expired | Self::Cancelled => OrderStatus::Cancelled,
            Self::Blocked | Self::Held | Self::Late => OrderStatus::Blocked,
            Self::Refunded | Self::Returned => OrderStatus::Refunded,
        }
    }

    /// A description for developers.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Completed => "The payment arrives without the payment page; the coins follow.",
            Self::Denied => "The payment is denied.",
            Self::Expired => "The order is not paid in time.",
            Self::Cancelled => "The user calls the order off.",
            Self::Blocked => "Twice the amount arrives: the order waits for the operator.",
            Self::Refunded => "Twice the amount arrives and is given back in full.",
            Self::Held => "The payment arrives; then the order is held for compliance.",
            Self::Late => {
                "The payment arrives after the time to pay: the order waits for the operator."
            }
            Self::Returned => "The payment arrives and is given back before coins are sent.",
        }
    }

    /// The simulated events, in order.
    pub fn steps(self) -> Vec<SimulatedEvent> {
        let (mut steps, mut cause) = (Vec::new(), Cause::Confirmed);
        while let Some(step) = next(Some(self), cause, steps.contains(&SimulatedEvent::CoinsSent)) {
            steps.push(step);
            cause = step.cause();
        }
        steps
    }
}

/// The next simulated event of an order whose status has this cause; `None` while it waits for
/// people, or is final.
pub fn next(scenario: Option<Scenario>, cause: Cause, coins_sent: bool) -> Option<SimulatedEvent> {
    use Scenario::{
        Blocked, Cancelled, Completed, Denied, Expired, Held, Late, Refunded, Returned,
    };
    match (cause, scenario) {
        (Cause::Confirmed, Some(Completed | Held | Returned)) => {
            Some(SimulatedEvent::PaymentReceived)
        }
        (Cause::Confirmed, Some(Late)) => Some(SimulatedEvent::PaymentLate),
        (Cause::Confirmed, Some(Denied)) => Some(SimulatedEvent::PaymentDenied),
        (Cause::Confirmed, Some(Expired)) => Some(SimulatedEvent::Expire),
        (Cause::Confirmed, Some(Cancelled)) => Some(SimulatedEvent::Cancel),
        (Cause::Confirmed, Some(Blocked | Refunded)) => Some(SimulatedEvent::PaymentAmountWrong),
        (Cause::PaymentReceived, Some(Held)) => Some(SimulatedEvent::Hold),
        (Cause::PaymentAmountWrong, Some(Refunded)) | (Cause::PaymentReceived, Some(Returned)) => {
            Some(SimulatedEvent::Refund)
        }
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
            let detect = |reference: &str| Scenario::detect(Some(reference), Decimal::ONE_HUNDRED);
            assert_eq!(detect(&scenario.reference()), Some(scenario));
            assert_eq!(detect(&format!("{}-7", scenario.reference())), Some(scenario));
            assert_eq!(detect(&format!("{}7", scenario.reference())), None);
            assert_eq!(Scenario::detect(None, scenario.amount()), Some(scenario));
        }
        assert_eq!(
            Scenario::detect(Some("sandbox-denied"), Scenario::Held.amount()),
            Some(Scenario::Denied)
        );
        assert_eq!(Scenario::detect(Some("sandbox"), Decimal::ONE_HUNDRED), None);
    }

    #[test]
    fn an_order_without_magic_value_waits_for_its_payment_and_then_proceeds() {
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
