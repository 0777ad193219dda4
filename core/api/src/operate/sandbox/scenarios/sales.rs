//! States of sold orders.

use serde_json::json;

use super::recipe::{SELL_CONFIRM, ScenarioRequest, sell_quote, user};
use super::{Kind, ListedScenario, Shown};
use crate::trading::orders::status::OrderStatus;
use crate::trading::sandbox::Scenario;
use crate::trading::sandbox::SimulatedSaleEvent::{
    self, Cancel, DepositAmountWrong, DepositLate, DepositReceived, Expire, Hold, PaidOut, Refund,
    Release,
};

/// A state of a sale.
pub(super) struct Path {
    name: &'static str,
    description: &'static str,
    /// Events that are simulated by request.
    pub(super) events: &'static [SimulatedSaleEvent],
    /// Event that then follows by itself.
    pub(super) follows: Option<SimulatedSaleEvent>,
    /// The scenario that the sale's reference names.
    reference: Option<Scenario>,
    pub(super) status: OrderStatus,
}

const NONE: Path = Path {
    name: "",
    description: "",
    events: &[],
    follows: None,
    reference: None,
    status: OrderStatus::Pending,
};

/// Every state, and every way into it.
pub(super) const PATHS: [Path; 11] = [
    Path { name: "sale-pending", description: "The sale waits for its coins.", ..NONE },
    Path {
        name: "sale-in-progress",
        description: "The coins have arrived; the payout follows by itself.",
        events: &[DepositReceived],
        status: OrderStatus::InProgress,
        ..NONE
    },
    Path {
        name: "sale-completed",
        description: "The user is paid out.",
        events: &[DepositReceived],
        follows: Some(PaidOut),
        status: OrderStatus::Completed,
        ..NONE
    },
    Path {
        name: "sale-expired",
        description: "The coins do not arrive in time.",
        events: &[Expire],
        status: OrderStatus::Cancelled,
        ..NONE
    },
    Path {
        name: "sale-cancelled",
        description: "The operator calls the sale off.",
        events: &[Cancel],
        status: OrderStatus::Cancelled,
        ..NONE
    },
    Path {
        name: "sale-blocked",
        description: "Twice the amount arrives: the sale waits for the operator.",
        events: &[DepositAmountWrong],
        status: OrderStatus::Blocked,
        ..NONE
    },
    Path {
        name: "sale-late",
        description: "The coins arrive after their time: the sale waits for the operator.",
        events: &[DepositLate],
        status: OrderStatus::Blocked,
        ..NONE
    },
    Path {
        name: "sale-held",
        description: "The coins arrive; then the sale is held for compliance.",
        events: &[DepositReceived],
        follows: Some(Hold),
        reference: Some(Scenario::Held),
        status: OrderStatus::Blocked,
    },
    Path {
        name: "sale-released",
        description: "Twice the amount has arrived, and the operator lets the sale go on.",
        events: &[DepositAmountWrong, Release],
        status: OrderStatus::InProgress,
        ..NONE
    },
    Path {
        name: "sale-refunded",
        description: "Twice the amount has arrived, and is sent back.",
        events: &[DepositAmountWrong, Refund],
        status: OrderStatus::Refunded,
        ..NONE
    },
    Path {
        name: "sale-returned",
        description: "The coins arrive, and are sent back before the payout.",
        events: &[DepositReceived],
        follows: Some(Refund),
        reference: Some(Scenario::Returned),
        status: OrderStatus::Refunded,
    },
];

pub(super) fn scenarios() -> Vec<ListedScenario> {
    PATHS.iter().map(scenario).collect()
}

fn scenario(path: &Path) -> ListedScenario {
    let reference = path.reference.map(Scenario::reference);
    let confirm = match &reference {
        None => json!({"quote": "{{quote}}"}),
        Some(reference) => json!({"quote": "{{quote}}", "partnerOrderIdentifier": reference}),
    };
    let sale = ScenarioRequest::post(SELL_CONFIRM, &confirm).for_user().save("order", "/orderId");
    let mut requests = vec![user(), sell_quote(), sale];
    requests.extend(path.events.iter().map(|event| {
        let path = format!("/api/v2/sandbox/sell/orders/{{{{order}}}}/{}", event.as_str());
        ScenarioRequest::post_nothing(&path)
    }));
    let read = || ScenarioRequest::get("/api/v1/user/sell/orders/{{order}}").for_user();
    match (path.follows, path.events) {
        (Some(_), _) => requests.push(read().poll()),
        (None, []) => requests.push(read()),
        (None, _) => {}
    }
    let shown = Shown { status: path.status.as_str(), pointer: "/status" };
    ListedScenario::state(Kind::SellOrder, path.name, path.description, shown, requests)
}
