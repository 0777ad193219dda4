//! Admission checks and test vectors of a component, without an edge: `rampart policy check`.

mod vectors;

use rampart_plugins::contract::PolicyKind;
use rampart_plugins::{Policy, PolicyEngine, PolicyLimits};
use serde_json::{Value, json};

use self::vectors::{NOW, PARTNER, Vectors};
use crate::platform::clock::Clock;
use crate::policies::evaluate::context::context_at;
use crate::policies::runtime::configuration::{entries, info_as_json};

/// An examination may take so many times as long as on an edge.
const ADMISSION_TIMES: u64 = 3;
/// Instances started to measure the median.
const STARTS: usize = 25;

/// A component that an edge would admit, if it compiles there in time.
#[derive(Debug)]
pub struct CheckedComponent {
    /// Description and cost of the component, and the result of each vector.
    pub report: Value,
    /// Number of vectors that failed.
    pub failed: usize,
}

/// Admits a component with the configuration of `vectors` (or none), measures its cost, and runs each
/// vector. Blocks while it compiles.
///
/// # Errors
/// The reason it is refused, or the problem with the vectors, in one line.
pub fn check(
    kind: &str,
    wasm: Vec<u8>,
    vectors: Option<&[u8]>,
) -> Result<CheckedComponent, String> {
    let kind = PolicyKind::from_name(kind)
        .ok_or_else(|| format!("'{kind}' is not one of {}", PolicyKind::NAMES.join(", ")))?;
    let vectors = vectors.map(Vectors::read).transpose()?.unwrap_or_default();
    let defaults = PolicyLimits::default();
    // The author's machine may be busy or slow, and no request waits: an edge allows less time, so that
    // it may refuse what takes long to compile here.
    let limits = PolicyLimits {
        deadline_ms: defaults.admission_deadline_ms,
        admission_ms_max: defaults.admission_ms_max.saturating_mul(ADMISSION_TIMES),
        ..defaults
    };
    let engine = PolicyEngine::new(limits)
        .map_err(|error| format!("no policy can run on this machine: {error:#}"))?;
    let config = vectors.config.clone();
    let admitted = engine
        .admit_with(kind, wasm, context_at(PARTNER, NOW, kind.as_str()), move |info| {
            entries(&info.config, &config)
        })
        .map_err(|refused| refused.to_string())?;
    let outcomes = vectors.run(&admitted)?;
    let failed = outcomes.iter().filter(|outcome| outcome["passed"] == false).count();
    let report = json!({
        "digest": admitted.digest,
        "size": admitted.size,
        "fuel": admitted.fuel,
        "start": start(&admitted.policy),
        "imports": admitted.policy.imports(),
        "limits": {
            "size": limits.component_bytes_max,
            "fuel": limits.fuel_max,
            "memoryBytes": limits.memory_bytes_max,
        },
        "about": info_as_json(&admitted.info),
        "vectors": outcomes,
    });
    Ok(CheckedComponent { report, failed })
}

/// Cost of an instance before any call: fuel and memory, equal on every machine, and the time taken
/// on this one.
fn start(policy: &Policy) -> Value {
    let clock = Clock::system();
    let mut times = [0; STARTS];
    let mut started = policy.start();
    for time in &mut times {
        let began = clock.monotonic_ns();
        started = policy.start();
        *time = clock.monotonic_ns().saturating_sub(began);
    }
    times.sort_unstable();
    json!({
        "fuel": started.fuel,
        "memoryBytes": started.memory_bytes,
        "microseconds": times[STARTS / 2] / 1_000,
    })
}
