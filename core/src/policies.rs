//! Partners' policies (section 9 of the contract).
//!
//! - [`kinds`]: everything that differs by kind, one file each, and their table. Its calls are those of
//!   live requests, and return `None` when the built-in rule applies; `evaluate`: their common path
//! - `runtime`: a tenant's policies in a snapshot
//! - `shadow`: shadow runs and sampling
//! - `lifecycle`: operations of operators; `manifest`, `statement`, `signed_change`,
//!   `operator_keys`: their signatures
//! - `dry_run`: calls by operators; `check`: the same for an author, without an edge;
//!   `decision_replay`: replay of an order's decisions
//! - `keys`: verification keys; `replay_tokens`: replay protection
//!
//! A failure is fail closed for `signature` (ER324). The other two fall back to the built-in rule,
//! unless a fee policy is set to fail closed (ER328).

mod breakers;
mod check;
pub mod decision_replay;
pub mod dry_run;
mod evaluate;
mod key_name;
pub mod keys;
pub mod kinds;
pub mod lifecycle;
pub mod manifest;
pub mod operator_keys;
mod replay_tokens;
pub mod runtime;
mod shadow;
pub mod signed_change;
pub mod statement;

pub use rampart_plugins::contract::PolicyKind;
pub use rampart_plugins::{Template, compile_as_child};

pub use self::check::{CheckedComponent, check};
pub use self::evaluate::context::Attributes;
pub use self::evaluate::redaction::redacted_comparison;
pub use self::shadow::ShadowQueue;

/// The country that policies are told where none is known (a user-assigned code of ISO 3166-1).
pub(crate) const COUNTRY_UNKNOWN: &str = "ZZ";
/// The tier that policies are told where there is no user.
pub(crate) const GUEST_TIER: &str = "guest";
