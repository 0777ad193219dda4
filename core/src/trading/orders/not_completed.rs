//! Reasons that an order is not completed, and the party that can act on them.

use schemars::JsonSchema;
use serde::Serialize;

use super::Order;
use super::status::{Cause, OrderStatus};
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::checks::Hold;
use crate::trading::checks::link;
use crate::trading::quotes::Side;
use rampart_types::{ClientId, OrderKey};

/// A reason, as the API document has it.
#[derive(Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(rename = "OrderNotCompletedReason")]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reason {
    /// Code of the reason.
    code: &'static str,
    /// Sentence that names what is missing.
    description: &'static str,
    /// Advice about it.
    solution: &'static str,
    /// `true` if the user has to act.
    user_action_required: bool,
    /// `true` if the operator has to act.
    support_action_required: bool,
    /// Page on which the user can act, if the user can.
    url: Option<String>,
}

impl Reason {
    /// The reason of an open check; `url` is the page on which the user passes it.
    fn of(hold: Hold, url: Option<String>) -> Self {
        Self {
            code: hold.code(),
            description: hold.description(),
            solution: hold.solution(),
            user_action_required: hold.is_users(),
            support_action_required: hold.is_operators(),
            url,
        }
    }

    /// A reason that support acts on.
    const fn of_support(
        code: &'static str,
        description: &'static str,
        solution: &'static str,
    ) -> Self {
        Self {
            code,
            description,
            solution,
            user_action_required: false,
            support_action_required: true,
            url: None,
        }
    }
}

/// The reason of a sale without an account for the payout. `transfer_gate` in the database holds a user's.
pub(crate) const ACCOUNT_MISSING: Reason = Reason::of_support(
    "017",
    "The sale names no account to pay out to.",
    "Support pays out by hand, or gives the coins back.",
);

/// The reasons of an order of this client; none once it is final.
pub(super) async fn reasons(
    conn: &mut Connection,
    core: &Core,
    client: ClientId,
    order: &Order,
) -> Result<Vec<Reason>> {
    if order.status.is_final() {
        return Ok(Vec::new());
    }
    let mut reasons = Vec::new();
    if order.status == OrderStatus::Blocked {
        reasons.push(blocked(order.cause));
    }
    let key = OrderKey { client, order: order.id };
    for hold in Hold::of_order(conn, key).await? {
        reasons.push(Reason::of(hold, link::url(core, Side::Buy, key, hold)?));
    }
    Ok(reasons)
}

/// The reasons of a sale's open checks, each with its page.
///
/// # Errors
/// Those of the master key.
pub(crate) fn incomplete_checks(core: &Core, sale: OrderKey, open: &[Hold]) -> Result<Vec<Reason>> {
    let reason = |hold: &Hold| Ok(Reason::of(*hold, link::url(core, Side::Sell, sale, *hold)?));
    open.iter().map(reason).collect()
}

/// The reason of a blocked order, by the cause of its status alone: an operator's words could warn
/// a suspect.
pub(crate) fn blocked(cause: Cause) -> Reason {
    let (code, description) = match cause {
        Cause::PaymentLate => ("031", "The payment arrived after the order's time to pay."),
        Cause::PaymentAmountWrong => ("032", "Another amount than the order's was paid."),
        Cause::PriceMoved => ("033", "The price has moved too far before the payment arrived."),
        _ => ("041", "The order is on hold."),
    };
    let solution = "Support releases the order or gives the payment back.";
    Reason::of_support(code, description, solution)
}
