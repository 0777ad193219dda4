//! The list covers the catalogue of codes and the tables of the state machines.

use std::collections::BTreeSet;

use super::{Kind, SCENARIOS, orders, sales};
use crate::platform::error::Code;
use crate::trading::orders::status::{Cause, Event, OrderEvent, OrderStatus, Transition};
use crate::trading::sandbox::{Scenario, SimulatedEvent};
use crate::trading::sell::status::SaleEvent;

/// Transitions without a scenario: the price of an estimated quote has to move, and the market is
/// the same for test clients and live ones.
const MARKET_MOVES: Cause = Cause::PriceMoved;

/// The transitions of one order that goes through these causes, and its last state.
fn walk(
    table: &'static [Transition],
    causes: impl IntoIterator<Item = Cause>,
) -> (BTreeSet<usize>, OrderStatus) {
    let (mut seen, mut status) = (BTreeSet::new(), OrderStatus::Pending);
    for cause in causes {
        let found = table.iter().position(|row| row.from == status && row.cause == cause);
        let found = found.unwrap_or_else(|| panic!("{status:?} forbids {cause:?}"));
        seen.insert(found);
        status = table[found].to;
    }
    (seen, status)
}

fn assert_covers(table: &'static [Transition], seen: &BTreeSet<usize>) {
    for (index, row) in table.iter().enumerate() {
        assert_eq!(seen.contains(&index), row.cause != MARKET_MOVES, "{row:?}");
    }
}

#[test]
fn every_code_has_a_scenario() {
    for code in Code::ALL {
        let mut scenarios = SCENARIOS.iter();
        assert!(scenarios.any(|scenario| scenario.code == Some(code.as_str())), "{code:?}");
    }
}

#[test]
fn names_are_unique() {
    let names: BTreeSet<_> = SCENARIOS.iter().map(|scenario| &scenario.name).collect();
    assert_eq!(names.len(), SCENARIOS.len());
}

#[test]
fn a_request_that_is_refused_saves_nothing() {
    for scenario in SCENARIOS.iter().filter(|scenario| scenario.kind == Kind::Error) {
        let refused = scenario.requests.last().unwrap();
        let saves = serde_json::to_value(refused).unwrap()["saves"].take();
        assert_eq!(saves, serde_json::json!({}), "{}", scenario.name);
    }
}

#[test]
fn every_transition_of_a_bought_order_has_a_scenario() {
    let table = OrderEvent::TRANSITIONS;
    let mut seen = BTreeSet::new();
    for scenario in Scenario::ALL {
        let (rows, end) = walk(table, scenario.steps().into_iter().map(SimulatedEvent::cause));
        assert_eq!(end, scenario.final_status(), "{scenario:?}");
        seen.extend(rows);
    }
    for path in &orders::PATHS {
        let (rows, end) = walk(table, path.events.iter().map(|event| event.cause()));
        assert_eq!(end, path.status);
        seen.extend(rows);
    }
    assert_covers(table, &seen);
}

#[test]
fn every_transition_of_a_sale_has_a_scenario() {
    let table = SaleEvent::TRANSITIONS;
    let mut seen = BTreeSet::new();
    for path in &sales::PATHS {
        let events = path.events.iter().chain(path.follows.as_ref());
        let (rows, end) = walk(table, events.map(|event| event.cause()));
        assert_eq!(end, path.status);
        seen.extend(rows);
    }
    assert_covers(table, &seen);
}

#[test]
fn every_state_is_shown() {
    for kind in [Kind::BuyOrder, Kind::SellOrder] {
        for status in OrderStatus::ALL {
            let mut scenarios = SCENARIOS.iter().filter(|scenario| scenario.kind == kind);
            let shows = |scenario: &super::ListedScenario| scenario.status == Some(status.as_str());
            assert!(scenarios.any(shows), "{kind:?} {status:?}");
        }
    }
}
