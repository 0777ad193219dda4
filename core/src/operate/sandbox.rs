//! The sandbox (section 10 of the contract): a test client's order that is paid goes on by itself,
//! as a live one does by what the payment provider and the chain report.
//!
//! - `trading::sandbox` is its model: steps, magic values; [`settle`] takes a step when it is due
//! - [`scenarios`] lists the magic values
//! - [`order_event`], [`sell_order_event`]: what a partner makes happen; `apply_event`: how
//! - [`signature`]: why a signature does not fit
//!
//! Everything goes through the same state machine as an operator's event: what happens to the
//! order in between wins.

mod apply_event;
pub mod order_event;
pub mod scenarios;
pub mod sell_order_event;
pub mod settle;
pub mod signature;

use crate::auth::caller::Client;
use crate::platform::clock::{Clock, NoEntropy};
use crate::platform::error::{Code, Result};

/// Bytes of a Bitcoin transaction's id, whose form the simulated ones have.
const TRANSACTION_ID_BYTES: usize = 32;
/// Who did it, in the order's timeline.
const ACTOR: &str = "sandbox";

/// An id that no transaction of a chain has.
fn transaction_id(clock: &Clock) -> Result<String, NoEntropy> {
    Ok(hex::encode(clock.random_bytes::<TRANSACTION_ID_BYTES>()?))
}

/// For a live client there is no such route.
fn only_for_tests(client: &Client) -> Result<()> {
    if client.tenant.is_test() { Ok(()) } else { Err(Code::RouteNotFound.into()) }
}
