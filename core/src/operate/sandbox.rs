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

/// The actor in the order's timeline.
const ACTOR: &str = "sandbox";
