//! The sandbox (section 10 of the contract) as test clients call it: a paid order proceeds by itself,
//! by the connector that runs inside (`money::connectors::sandbox`).
//!
//! - `trading::sandbox` is its model: magic values and simulated events
//! - [`scenarios`] lists a scenario for every code and every state
//! - [`order_event`], [`sell_order_event`], [`user_event`]: endpoints that simulate an event
//! - [`signature`] explains why a signature is invalid
//!
//! Simulated events go through the same state machine as an operator's: a real event in between
//! wins.

pub mod order_event;
pub mod scenarios;
pub mod sell_order_event;
pub mod signature;
pub mod user_event;

use http::StatusCode;

use crate::platform::error::{Code, Error};
use crate::trading::orders::status::NotApplied;

/// The actor in the order's timeline.
const ACTOR: &str = "sandbox";

/// The error of an event that was not simulated: 409 where the order's state, or its connector, forbids
/// it.
fn refusal(refused: NotApplied) -> Error {
    match refused {
        NotApplied::NoSuchOrder => Code::OrderNotFound.into(),
        NotApplied::Forbidden { status } => {
            let detail = format!("an order that is {} forbids it", status.as_str());
            Error::with_status(Code::GeneralError, StatusCode::CONFLICT, detail)
        }
        NotApplied::Refused(reason) => {
            Error::with_status(Code::GeneralError, StatusCode::CONFLICT, reason)
        }
        NotApplied::Failed(error) => error,
    }
}
