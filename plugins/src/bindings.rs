//! Bindings generated from `wit/`, one module per contract track (only 0.1 so far).
//!
//! One world that includes the three gives one copy of every type. A policy is called through the
//! `GuestIndices` of the interface it exports, never through this world.

#![expect(missing_docs, reason = "generated from wit/, where the comments are")]

wasmtime::component::bindgen!({
    path: "../wit",
    inline: "
        package rampart:host;
        world policies {
            include rampart:policy/fee-policy@0.1.0;
            include rampart:policy/method-order-policy@0.1.0;
            include rampart:policy/signature-policy@0.1.0;
        }
    ",
    world: "rampart:host/policies",
    imports: { default: trappable },
    additional_derives: [PartialEq],
});

pub(crate) use exports::rampart::policy::{fee, meta, method_order, signature};
pub(crate) use rampart::policy::{crypto, log, types};

/// Types of a policy's input and output, as in `wit/`.
pub mod contract {
    pub use super::crypto::Algorithm;
    pub use super::fee::{FeeKind, FeeRequest, Stage};
    pub use super::log::Level;
    pub use super::meta::{ConfigField, ConfigType, PolicyInfo};
    pub use super::method_order::{
        Method, MethodKind, OrderRequest as RankRequest, Placement, UserFacts,
    };
    pub use super::signature::{Field, Header, Purpose, Rejection, SignedPayload, Signer, Verdict};
    pub use super::types::{CallContext, ConfigEntry, ConfigValue, Money, Side};
    pub use crate::kinds::PolicyKind;
}
