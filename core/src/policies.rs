//! Partners' policies (section 9 of the contract): what a request asks of them, and what it gets
//! when there is none or it malfunctions.
//!
//! - [`fee_schedule`], [`rank`] and [`verify_signature`] are the calls. Each answers `None` when
//!   the built-in rule applies.
//! - `active`: the policies of one tenant in a snapshot; `compiled`: native code, shared by digest;
//!   `load`: from Postgres
//! - `ask`: a question of each kind and its answer
//! - `call`: one question on the request path, with breaker, metrics and log
//! - `trial`: a version that answers a share of the users or runs in the shadow; `aside`: what is
//!   done with live questions off the request path
//! - `lifecycle`: what operators do: push, stage, activate, share, shadow, configure, roll back,
//!   remove; `manifest`, `operator_keys`: what they sign
//! - `rehearsal`: dry runs; `check`: the same for an author, without an edge; `order_replay`: an
//!   order's decisions made again
//! - `configuration`: an operator's JSON as the entries a policy is given
//! - `keys`: keys that a signature policy may name; `replay`: payloads that were seen before
//!
//! A malfunction fails closed for `signature` (ER324) and falls back to the built-in for the other
//! two, unless a fee policy is set to fail closed (ER328).

mod ask;
mod breakers;
mod call;
mod check;
pub(crate) mod decision_replay;
pub(crate) mod dry_run;
mod fee;
pub(crate) mod keys;
pub(crate) mod lifecycle;
pub mod manifest;
mod method_order;
pub(crate) mod operator_keys;
mod replay;
pub mod runtime;
mod shadow;
mod signature;

pub use self::check::{Checked, check};
pub use self::fee::{PolicyFees, fee_schedule};
pub use self::method_order::rank;
pub(crate) use self::method_order::{method_kind, policy_methods};
pub use self::shadow::ShadowQueue;
pub use self::signature::{SignatureDecision, signed_payload, verify_signature};
