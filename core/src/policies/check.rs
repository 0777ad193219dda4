//! A component tried as an edge would at upload, without an edge: `rampart policy check`.

use rampart_plugins::contract::PolicyKind;
use rampart_plugins::{PolicyEngine, PolicyLimits};
use serde_json::{Value, json};

use super::configuration::info_as_json;

/// Whether a component would be admitted with an empty configuration, and what it says of itself.
/// Blocks while it compiles.
///
/// # Errors
/// Why it would be refused, in one line.
pub fn check(kind: &str, wasm: Vec<u8>) -> Result<Value, String> {
    let kind = PolicyKind::from_name(kind)
        .ok_or_else(|| format!("'{kind}' is not signature, fee or method-order"))?;
    let engine = PolicyEngine::new(PolicyLimits::default())
        .map_err(|error| format!("no policy can run on this machine: {error:#}"))?;
    let admitted = engine.admit(kind, wasm, Vec::new()).map_err(|refused| refused.to_string())?;
    Ok(json!({
        "digest": admitted.digest,
        "size": admitted.size,
        "fuel": admitted.fuel,
        "about": info_as_json(&admitted.info),
    }))
}
