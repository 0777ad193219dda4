//! Settings of the checks before coins leave.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `compliance`
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Compliance {
    /// Gate of live partners that have none of their own; `none` counts as `before-payout`.
    pub gate: Gate,
}

impl Compliance {
    /// The gate of live partners that have none of their own.
    pub const fn gate_of_live(&self) -> Gate {
        match self.gate {
            Gate::None => Gate::BeforePayout,
            gate => gate,
        }
    }
}

/// When the checks of a user must be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "ComplianceGate")]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// Before an order is confirmed.
    BeforePayment,
    /// Before the coins of a paid order are sent.
    #[default]
    BeforePayout,
    /// Never: for test clients.
    None,
}

rampart_types::named_values! {
    pub Gate {
        BeforePayment = "before-payment",
        BeforePayout = "before-payout",
        None = "none",
    }
}
