//! Runs a partner's policy: a WebAssembly component that prices, orders payment methods or decides
//! whether a payload is genuine, and can do nothing else. The contract is `wit/`.
//!
//! - `host`: the WebAssembly host: engine, limits, calls, breaker
//! - `kinds`: everything that differs by policy kind, one file each
//! - `admission`: the checks a component must pass before it may serve
//! - `config`: an operator's configuration against the policy's declaration
//! - `bindings`: generated from `wit/`
//!
//! Input has the generated types of the contract, re-exported here, because copying every request
//! into a twin would cost more than it hides. Output is checked, and where the check changes the
//! type (decimal text becomes `Decimal`) it has a type of this package.
//!
//! The only clock here is that of the deadlines: a caller measures its calls itself.

mod admission;
mod bindings;
mod config;
mod host;
mod kinds;

pub use admission::Admitted;
pub use bindings::contract;
pub use config::check_config;
pub use host::breaker::Breaker;
pub use host::call::CallClass;
pub use host::compiler::{CompilerProgram, compile_as_child};
pub use host::engine::PolicyEngine;
pub use host::keys::{BoundKey, KeyError, KeyRing, VerificationKey};
pub use host::limits::PolicyLimits;
pub use host::native_code::NativeCodeCache;
pub use host::rejection::{Check, Rejection};
pub use host::report::{CallReport, Failure, FailureKind, LogLine};
pub use kinds::*;
