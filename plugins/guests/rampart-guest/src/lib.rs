//! The library for policies in Rust: an author writes only the decision.
//!
//! ```no_run
//! use rampart_guest::fee::*;
//!
//! struct OnePercent;
//! rampart_guest::fee_policy!(OnePercent);
//!
//! impl FeePolicy for OnePercent {
//!     const ABOUT: About = About {
//!         name: "example/one-percent",
//!         version: "1.0.0",
//!         summary: "One percent of everything.",
//!         settings: &[],
//!         keys: &[],
//!     };
//!
//!     fn price(_: CallContext, _: Config, _: FeeRequest) -> Result<FeeSchedule, PolicyError> {
//!         let lines = vec![partner_fee("flat-rate", Charge::Rate(10_000))];
//!         Ok(FeeSchedule { lines, spread: 0, rule: "everyone".into() })
//!     }
//! }
//! ```
//!
//! - `fee`, `method_order`, `signature`: one module per kind of policy
//! - `about`: a policy's description of itself; `config`: the operator's settings
//! - `decimal`: exact comparison of decimal text; `encoding`: percent and base64
//! - `log`: log lines, also of panics
//! - `arena`: the allocator
//!
//! A policy may use `std`, but there is no system behind it: no clock, files, network or randomness.

mod about;
mod arena;
#[doc(hidden)]
pub mod bindings;
mod config;
pub mod decimal;
pub mod encoding;
pub mod fee;
pub mod log;
pub mod method_order;
pub mod signature;

pub use about::{About, Setting, SettingType};
pub use bindings::types::{CallContext, ConfigEntry, ConfigValue, Money, PolicyError, Side};
pub use config::{Config, Problem};
