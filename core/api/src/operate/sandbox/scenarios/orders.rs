//! States of bought orders.

use serde_json::json;

use super::recipe::{ScenarioRequest, confirm, quote, user};
use super::{Kind, ListedScenario, Shown};
use crate::trading::orders::status::OrderStatus;
use crate::trading::sandbox::{Scenario, SimulatedEvent};
use rampart_types::JsonDecimal;

/// A state that an order stays in, or is seen in, after these events.
pub(super) struct Path {
    name: &'static str,
    description: &'static str,
    pub(super) events: &'static [SimulatedEvent],
    pub(super) status: OrderStatus,
}

/// States besides those at the end of a scenario's steps.
pub(super) const PATHS: [Path; 4] = [
    Path {
        name: "pending",
        description: "The order waits for its payment.",
        events: &[],
        status: OrderStatus::Pending,
    },
    Path {
        name: "in-progress",
        description: "The payment has arrived; the coins follow by themselves.",
        events: &[SimulatedEvent::PaymentReceived],
        status: OrderStatus::InProgress,
    },
    Path {
        name: "released",
        description: "Twice the amount has arrived, and the operator lets the order go on.",
        events: &[SimulatedEvent::PaymentAmountWrong, SimulatedEvent::Release],
        status: OrderStatus::InProgress,
    },
    Path {
        name: "given-back",
        description: "Twice the amount has arrived, and the operator gives it back.",
        events: &[SimulatedEvent::PaymentAmountWrong, SimulatedEvent::Refund],
        status: OrderStatus::Refunded,
    },
];

pub(super) fn scenarios() -> Vec<ListedScenario> {
    Scenario::ALL.into_iter().map(followed).chain(PATHS.iter().map(moved)).collect()
}

fn read() -> ScenarioRequest {
    ScenarioRequest::get("/api/v2/buy/orders/{{order}}").for_user()
}

/// An order that follows the scenario by itself.
fn followed(scenario: Scenario) -> ListedScenario {
    let reference = json!({"partnerOrderIdentifier": scenario.reference()});
    let order = confirm(reference).save("order", "/orderId");
    let requests = [user(), quote(json!({})), order, read().poll()];
    let shown = Shown { status: scenario.final_status().as_str(), pointer: "/status" };
    ListedScenario {
        partner_order_identifier: Some(scenario.reference()),
        fiat_amount: Some(JsonDecimal(scenario.amount())),
        steps: scenario.steps().into_iter().map(SimulatedEvent::as_str).collect(),
        ..ListedScenario::state(
            Kind::BuyOrder,
            scenario.name(),
            scenario.description(),
            shown,
            requests,
        )
    }
}

/// An order that is moved by events.
fn moved(path: &Path) -> ListedScenario {
    let order = confirm(json!({})).save("order", "/orderId");
    let mut requests = vec![user(), quote(json!({})), order];
    requests.extend(path.events.iter().map(|event| {
        let path = format!("/api/v2/sandbox/orders/{{{{order}}}}/{}", event.as_str());
        ScenarioRequest::post_nothing(&path)
    }));
    if path.events.is_empty() {
        requests.push(read());
    }
    let shown = Shown { status: path.status.as_str(), pointer: "/status" };
    ListedScenario::state(Kind::BuyOrder, path.name, path.description, shown, requests)
}
