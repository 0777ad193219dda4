//! Runs a partner's policy: a WebAssembly component that prices, orders payment methods or decides
//! whether a payload is genuine, and can do nothing else. The contract is `wit/`.
//!
//! Where what is:
//! - `limits`: every bound, in one struct
//! - `engine`: the WebAssembly engine, `clock`: its deadlines, `native_code`: what it compiled before
//! - `admission`: what a component must pass before it may serve, `samples`: what it is tried with
//! - `policy`: a compiled policy of each kind, the only way to call one
//! - `call`: one call in a fresh instance; `failure`: how it can go wrong; `start`: what an instance
//!   costs before it is asked anything
//! - `answer`: checks of answers that WIT types cannot say; `request`: size of what is asked
//! - `config`: an operator's configuration against what the policy declares
//! - `keys`, `crypto`: keys a policy can use and never read
//! - `breaker`: stops calling a policy that keeps failing
//! - `bindings`: generated from `wit/`
//!
//! What goes in is the generated type of the contract, re-exported here, because copying every
//! request into a twin would cost more than it hides. What comes out is checked, and where the
//! check changes the type (decimal text becomes `Decimal`) it is a type of this package.
//!
//! There is no clock here but that of the deadlines: a caller measures its calls itself.

mod admission;
mod answer;
mod bindings;
mod breaker;
mod call;
mod clock;
mod config;
mod crypto;
mod engine;
mod failure;
mod keys;
mod limits;
mod native_code;
mod policy;
mod request;
mod samples;
mod start;

pub use admission::{Admitted, Rejection};
pub use answer::{Charge, FeeLine, FeeSchedule, Ranking};
pub use breaker::Breaker;
pub use call::Lane;
pub use config::check_config;
pub use engine::PolicyEngine;
pub use failure::{Called, Cause, Failure, LogLine};
pub use keys::{BoundKey, KeyError, KeyRing, VerificationKey};
pub use limits::PolicyLimits;
pub use policy::{FeePolicy, MethodOrderPolicy, Policy, SignaturePolicy};

/// What a policy is asked and told, as `wit/` has it.
pub mod contract {
    pub use crate::bindings::crypto::Algorithm;
    pub use crate::bindings::fee::{FeeKind, FeeRequest, Stage};
    pub use crate::bindings::log::Level;
    pub use crate::bindings::meta::{ConfigField, ConfigType, PolicyInfo, PolicyKind};
    pub use crate::bindings::method_order::{
        Method, MethodKind, OrderRequest, Placement, UserFacts,
    };
    pub use crate::bindings::signature::{
        Field, Header, Purpose, Rejection, SignedPayload, Signer, Verdict,
    };
    pub use crate::bindings::types::{CallContext, ConfigEntry, ConfigValue, Money, Side};
}
