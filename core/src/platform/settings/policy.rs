//! Settings of policies.

use std::collections::BTreeMap;
use std::path::PathBuf;

use http::HeaderName;
use rampart_plugins::PolicyLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Names;

/// Arguments of `policy.compiler`; the bounds of memory, in bytes, of processor time, in seconds,
/// and of the component, in bytes, follow.
pub const COMPILER_ARGUMENTS: [&str; 2] = ["policy", "compile-child"];

/// Headers with a credential, which no policy sees.
pub(crate) const CREDENTIAL_HEADERS: [&str; 5] =
    ["authorization", "cookie", "proxy-authorization", "user-authorization", "x-api-key"];
/// Headers of signature schemes.
const SIGNATURE_HEADERS: [&str; 12] = [
    "content-digest",
    "content-type",
    "date",
    "digest",
    "signature",
    "signature-input",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
    "x-nonce",
    "x-signature",
    "x-timestamp",
];

/// `policy`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Fuel of one call on the request path; a unit is about one instruction.
    #[schemars(range(min = 1, max = 1_000_000_000_000u64), extend("x-unit" = "fuel"))]
    pub fuel: u64,
    /// Fuel of all calls on the request path of one partner in a second, and as much of each of its shadow
    /// runs, on each edge, a millisecond of processor time counting as 2,000,000 or more; over it calls fail
    /// and runs are skipped until the next second.
    #[schemars(range(min = 1, max = 1_000_000_000_000u64), extend("x-unit" = "fuel"))]
    pub fuel_per_second_max: u64,
    /// Fuel of one call while an upload is examined.
    #[schemars(range(min = 1, max = 1_000_000_000_000u64), extend("x-unit" = "fuel"))]
    pub admission_fuel: u64,
    /// Longest wall-clock time of one call.
    #[schemars(range(min = 1, max = 60_000))]
    pub deadline_ms: u64,
    /// Largest linear memory of one call, which has up to `policy.memories_max` of them.
    #[schemars(range(min = 65_536, max = 4_294_967_296u64))]
    pub call_memory_bytes: usize,
    /// WebAssembly stack of one call.
    // A serving thread has 2 MiB for it and for what calls it.
    #[schemars(range(min = 65_536, max = 524_288))]
    pub stack_bytes: usize,
    /// Most linear memories of a component.
    #[schemars(range(min = 1, max = 16), extend("x-unit" = "memories"))]
    pub memories_max: u32,
    /// Most tables of a component.
    #[schemars(range(min = 1, max = 16), extend("x-unit" = "tables"))]
    pub tables_max: u32,
    /// Most core instances of a component.
    #[schemars(range(min = 1, max = 64), extend("x-unit" = "instances"))]
    pub core_instances_max: u32,
    /// Largest component that is accepted.
    // In base64 it fits the largest body of the operators' API.
    #[schemars(range(min = 65_536, max = 3_000_000))]
    pub component_bytes: usize,
    /// Largest output of one call, and largest arguments of one function of the host.
    #[schemars(range(min = 4_096, max = 1_048_576))]
    pub output_bytes: usize,
    /// Largest text of one `fee` or `method-order` request with its configuration.
    #[schemars(range(min = 16_384, max = 1_048_576))]
    pub request_bytes: usize,
    /// Largest text of one `signature` request with its configuration.
    #[schemars(range(min = 16_384, max = 1_048_576))]
    pub signature_request_bytes: usize,
    /// Most lines that are kept of what one call logs.
    #[schemars(range(min = 0, max = 1_000), extend("x-unit" = "lines"))]
    pub log_lines_max: usize,
    /// Text that is kept of what one call logs.
    #[schemars(range(min = 0, max = 65_536))]
    pub log_bytes: usize,
    /// Memory of all compiled components; over it, those called least recently are loaded again at
    /// their next call.
    #[schemars(range(min = 4_194_304, max = 1_099_511_627_776u64))]
    pub memory_bytes: usize,
    /// Memory of one compilation, which runs in a process of its own.
    #[schemars(range(min = 268_435_456, max = 68_719_476_736u64))]
    pub compile_memory_bytes: u64,
    /// Most processor time of one compilation; an examination of an upload may take twice as long.
    #[schemars(range(min = 100, max = 600_000))]
    pub compile_timeout_ms: u64,
    /// Most calls at once.
    #[schemars(
        range(min = 1, max = 10_000),
        extend("x-unit" = "calls", "x-default" = "4 for each of edge.threads")
    )]
    pub live_max: u32,
    /// Headers of a signed request that signature policies see, by their names in lower case; none
    /// that holds a credential.
    pub visible_headers: Names,
    /// Every change of a partner's policy needs a manifest that an operator's key signed.
    pub require_signature: bool,
    /// Ed25519 keys by name, a PEM `PUBLIC KEY` each, that sign manifests and changes and, where
    /// signatures are required, the registration of further keys.
    pub root_keys: BTreeMap<String, String>,
    /// Folder for the native code of policies, which only this user may enter; made if missing.
    #[schemars(extend("x-default" = "none: every start compiles the policies that it calls"))]
    pub cache_folder: Option<PathBuf>,
    /// Program that compiles policies in a process of its own, with the arguments of
    /// [`COMPILER_ARGUMENTS`]; without one this process compiles. Set by the binary.
    #[serde(skip)]
    pub compiler: Option<PathBuf>,
}

impl Policy {
    /// Sets the most calls at once to what so many serving threads have use for.
    pub fn set_live_max_for(&mut self, threads: usize) {
        let threads = u32::try_from(threads).unwrap_or(u32::MAX);
        self.live_max = PolicyLimits::for_threads(threads).live_calls_max;
    }

    /// Checks what the types alone do not.
    ///
    /// # Errors
    /// One sentence that names the setting.
    pub(crate) fn check(&self) -> Result<(), String> {
        for name in &self.visible_headers.0 {
            let problem = if HeaderName::from_lowercase(name.as_bytes()).is_err() {
                "is no name of a header in lower case"
            } else if CREDENTIAL_HEADERS.contains(&name.as_str()) {
                "holds a credential"
            } else {
                continue;
            };
            return Err(format!("'policy.visible_headers': '{name}' {problem}"));
        }
        Ok(())
    }
}

impl Default for Policy {
    fn default() -> Self {
        let limits = PolicyLimits::default();
        Self {
            fuel: limits.fuel_max,
            fuel_per_second_max: 1_000_000_000,
            admission_fuel: limits.admission_fuel_max,
            deadline_ms: limits.deadline_ms,
            call_memory_bytes: limits.memory_bytes_max,
            stack_bytes: limits.stack_bytes_max,
            memories_max: limits.memories_max,
            tables_max: limits.tables_max,
            core_instances_max: limits.core_instances_max,
            component_bytes: limits.component_bytes_max,
            output_bytes: limits.output_bytes_max,
            request_bytes: limits.request_bytes_max,
            signature_request_bytes: limits.signature_request_bytes_max,
            log_lines_max: limits.log_lines_max,
            log_bytes: limits.log_bytes_max,
            memory_bytes: 512 << 20,
            compile_memory_bytes: limits.compile_memory_bytes_max,
            compile_timeout_ms: limits.admission_ms_max,
            live_max: limits.live_calls_max,
            visible_headers: Names(SIGNATURE_HEADERS.map(str::to_owned).into()),
            require_signature: false,
            root_keys: BTreeMap::new(),
            cache_folder: None,
            compiler: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_sees_headers_but_no_credential() {
        let check = |name: &str| {
            Policy { visible_headers: Names(vec![name.to_owned()]), ..Policy::default() }.check()
        };
        assert_eq!((Policy::default().check(), check("x-acme-timestamp")), (Ok(()), Ok(())));
        let credentials = ["authorization", "cookie", "user-authorization", "x-api-key"];
        for wrong in credentials.into_iter().chain(["X-Acme-Timestamp", "", "a b"]) {
            let sentence = check(wrong).unwrap_err();
            assert!(sentence.starts_with("'policy.visible_headers': '"), "{sentence}");
        }
    }
}
