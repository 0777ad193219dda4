//! Partners' policies (section 9 of the contract).
//!
//! - [`fee_schedule`], [`rank`] and [`verify_signature`] are the calls of live requests. Each returns
//!   `None` when the built-in rule applies; `evaluate`: their common path
//! - `request`: the request to a policy of each kind and its output
//! - `runtime`: a tenant's policies in a snapshot
//! - `shadow`: shadow runs and sampling
//! - `lifecycle`: operations of operators; `manifest`, `operator_keys`: their signatures
//! - `dry_run`: calls by operators; `check`: the same for an author, without an edge;
//!   `decision_replay`: replay of an order's decisions
//! - `keys`: verification keys; `replay_tokens`: replay protection
//!
//! A failure is fail closed for `signature` (ER324). The other two fall back to the built-in rule,
//! unless a fee policy is set to fail closed (ER328).

mod breakers;
mod check;
pub(crate) mod decision_replay;
pub(crate) mod dry_run;
mod evaluate;
mod fee;
pub(crate) mod keys;
pub(crate) mod lifecycle;
pub mod manifest;
mod method_order;
pub(crate) mod operator_keys;
mod replay_tokens;
mod request;
pub mod runtime;
mod shadow;
mod signature;

pub use self::check::{CheckedComponent, check};
pub use self::fee::{PolicyFees, fee_schedule};
pub(crate) use self::method_order::policy_methods;
pub use self::method_order::rank;
pub use self::shadow::ShadowQueue;
pub use self::signature::{SignatureDecision, signed_payload, verify_signature};
