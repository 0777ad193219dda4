//! Verification of users and their accounts (section 7 of the contract).

pub mod amld5;
pub mod card;
pub mod iban_photo;
pub(crate) mod questions;
pub mod status;
pub mod wallet_provider;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// A started verification.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "StartedVerification")]
pub struct Started {
    /// The verifying provider.
    #[serde(rename = "type")]
    kind: &'static str,
    /// `initiated`, or `failed` when it has failed already.
    status: &'static str,
    /// Additional data of the provider.
    data: Map<String, Value>,
}

impl Started {
    /// A verification that continues without the user.
    fn initiated(kind: &'static str) -> Self {
        Self { kind, status: "initiated", data: Map::new() }
    }

    /// A verification that the provider has refused.
    fn failed(kind: &'static str) -> Self {
        Self { kind, status: "failed", data: Map::new() }
    }
}
