//! An author's test vectors: requests to a policy and its expected decisions, in one JSON file beside
//! the component:
//!
//! ```json
//! {
//!   "config": {"rate": 10000},
//!   "keys": {"partner-hmac": {"algorithm": "hmac-sha256", "key": "…base64 or PEM…"}},
//!   "vectors": [
//!     {"name": "one percent", "input": {"country": "NL"}, "decision": {"lines": [], "spread": 0, "rule": ""}},
//!     {"name": "no such currency", "config": {}, "input": {}, "failure": "error"}
//!   ]
//! }
//! ```
//!
//! `input`, `decision` and the cause in `failure` are those of a dry run; `config` of a vector
//! replaces the one above.

use std::collections::BTreeMap;

use rampart_plugins::{Admitted, BoundKey, FailureKind, KeyRing, VerificationKey, check_config};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::policies::dry_run::report;
use crate::policies::evaluate::context::context_at;
use crate::policies::kinds;
use crate::policies::runtime;
use crate::policies::runtime::configuration::entries;
use crate::trading::catalogue::Catalogue;

/// 2026-01-01T00:00:00Z, unless a vector sets another time.
pub(super) const NOW: u32 = 1_767_225_600;
/// The partner of every vector.
pub(super) const PARTNER: &str = "example";
/// Most vectors in a file.
const VECTORS_MAX: usize = 1_000;

/// A file of vectors.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vectors {
    /// The configuration to admit the component with.
    #[serde(default)]
    pub(super) config: Map<String, Value>,
    #[serde(default)]
    keys: BTreeMap<String, Key>,
    #[serde(default)]
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    algorithm: String,
    key: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    name: String,
    config: Option<Map<String, Value>>,
    now: Option<u32>,
    #[serde(default = "empty_input")]
    input: Value,
    decision: Option<Value>,
    failure: Option<String>,
}

fn empty_input() -> Value {
    json!({})
}

impl Vectors {
    /// Reads a file.
    ///
    /// # Errors
    /// The problem, in one line.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        let vectors: Self =
            serde_json::from_slice(text).map_err(|error| format!("the vectors: {error}"))?;
        if vectors.vectors.len() > VECTORS_MAX {
            return Err(format!("more than {VECTORS_MAX} vectors"));
        }
        for Vector { name, decision, failure, .. } in &vectors.vectors {
            let causes = FailureKind::ALL.map(FailureKind::as_str);
            if decision.is_some() == failure.is_some() {
                return Err(format!("vector `{name}`: either `decision` or `failure`"));
            }
            if failure.as_ref().is_some_and(|cause| !causes.contains(&cause.as_str())) {
                return Err(format!("vector `{name}`: `failure` is one of {}", causes.join(", ")));
            }
        }
        Ok(vectors)
    }

    /// Runs every vector; a result has both outcomes where they differ.
    ///
    /// # Errors
    /// The name of a vector or key that cannot be used.
    pub(super) fn run(&self, admitted: &Admitted) -> Result<Vec<Value>, String> {
        let keys = self.key_ring()?;
        let run = |vector: &Vector| {
            self.run_vector(vector, admitted, &keys)
                .map_err(|problem| format!("vector `{}`: {problem}", vector.name))
        };
        self.vectors.iter().map(run).collect()
    }

    fn key_ring(&self) -> Result<KeyRing, String> {
        let key = |(name, key): (&String, &Key)| {
            let algorithm = runtime::algorithm(&key.algorithm)
                .ok_or_else(|| format!("key `{name}`: no algorithm `{}`", key.algorithm))?;
            let key = VerificationKey::parse(algorithm, &key.key)
                .map_err(|problem| format!("key `{name}`: {problem}"))?;
            Ok((name.clone(), BoundKey { key, not_before: None, not_after: None }))
        };
        self.keys.iter().map(key).collect::<Result<Vec<_>, String>>().map(KeyRing::new)
    }

    fn run_vector(
        &self,
        vector: &Vector,
        admitted: &Admitted,
        keys: &KeyRing,
    ) -> Result<Value, String> {
        let fields = &admitted.info.config;
        let config = entries(fields, vector.config.as_ref().unwrap_or(&self.config))?;
        check_config(fields, &config)?;
        let kind = admitted.policy.kind();
        let (input, catalogue) = (vector.input.clone(), Catalogue::default());
        let request = kinds::read(kind, kinds::ALONE, input, &catalogue)?;
        let context = context_at(PARTNER, vector.now.unwrap_or(NOW), &vector.name);
        let report = report::call(&admitted.policy, &context, &config, &request, keys)
            .ok_or("it is for another kind of policy")?;
        let failed = !report["failure"].is_null();
        let actual = match (failed, &vector.failure) {
            (false, _) => json!({"decision": report["decision"]}),
            // Only the cause is expected; for an unexpected failure the message helps.
            (true, Some(_)) => json!({"failure": report["failure"]["cause"]}),
            (true, None) => json!({"failure": report["failure"]}),
        };
        let expected = match &vector.decision {
            Some(decision) => json!({ "decision": decision }),
            None => json!({ "failure": vector.failure }),
        };
        let passed = expected == actual;
        let mut outcome = json!({"name": vector.name, "passed": passed, "fuel": report["fuel"]});
        if !passed {
            outcome["expected"] = expected;
            outcome["answered"] = actual;
            outcome["log"] = report["log"].clone();
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_expects_a_decision_or_a_failure() {
        for (vectors, problem) in [
            (r#"{"vectors": [{"name": "a"}]}"#, "vector `a`: either `decision` or `failure`"),
            (
                r#"{"vectors": [{"name": "a", "decision": {}, "failure": "trap"}]}"#,
                "vector `a`: either `decision` or `failure`",
            ),
            (
                r#"{"vectors": [{"name": "a", "failure": "crash"}]}"#,
                "vector `a`: `failure` is one of trap, fuel, deadline, memory, answer, capacity, error",
            ),
            (r#"{"vector": []}"#, "unknown field `vector`"),
        ] {
            let read = Vectors::read(vectors.as_bytes()).err().unwrap_or_default();
            assert!(read.contains(problem), "{read}");
        }
    }
}
