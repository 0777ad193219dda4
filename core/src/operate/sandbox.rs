//! The sandbox (section 10 of the contract): a paid order of a test tenant proceeds by itself, as a
//! live one does on the reports of the payment provider and the chain.
//!
//! - `trading::sandbox` is its model: steps, magic values; [`settle`] runs a step when it is due
//! - [`scenarios`] lists a scenario for every code and every state
//! - [`order_event`], [`sell_order_event`], [`user_event`]: endpoints that simulate an event;
//!   `apply_event` applies one of an order
//! - [`signature`] explains why a signature is invalid
//!
//! Simulated events go through the same state machine as an operator's: a real event in between
//! wins.

pub(super) mod apply_event;
pub mod order_event;
pub mod scenarios;
pub mod sell_order_event;
pub mod settle;
pub mod signature;
pub mod user_event;

use crate::auth::caller::Client;
use crate::platform::clock::{Clock, NoEntropy};
use crate::platform::error::{Code, Result};

/// Bytes of a Bitcoin transaction id; simulated ones have the same form.
const TRANSACTION_ID_BYTES: usize = 32;
/// The actor in the order's timeline.
const ACTOR: &str = "sandbox";

/// A random transaction id, which no chain has.
fn transaction_id(clock: &Clock) -> Result<String, NoEntropy> {
    Ok(hex::encode(clock.random_bytes::<TRANSACTION_ID_BYTES>()?))
}

/// Refuses live tenants: for them the route does not exist.
fn only_for_tests(client: &Client) -> Result<()> {
    if client.tenant.is_test() { Ok(()) } else { Err(Code::RouteNotFound.into()) }
}
