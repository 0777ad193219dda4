//! The request to a policy of one kind and its output, the same on the request path, in shadow runs,
//! dry runs and replays. Everything that differs by kind is in one file each.

mod fee;
mod json;
mod method_order;
mod sealed_payload;
mod signature;

use rampart_plugins::contract::{CallContext, ConfigEntry, PolicyKind};
use rampart_plugins::{CallClass, CallReport, KeyRing, Policy};
use serde_json::Value;

pub(super) use self::sealed_payload::open_payload;
use super::manifest::digest_hex;
use crate::Core;
use crate::auth::caller::Client;

/// The inputs of a call beside the request.
#[derive(Clone, Copy)]
pub(super) struct CallInputs<'a> {
    pub(super) context: &'a CallContext,
    pub(super) config: &'a [ConfigEntry],
    pub(super) keys: &'a KeyRing,
}

/// A request to policies of one kind.
pub(super) trait PolicyRequest: Send + Sized + 'static {
    /// The policy's checked output.
    type Output: Clone + PartialEq + Send + 'static;
    /// The kind of policy that takes it.
    const KIND: PolicyKind;
    /// True if a few requests may be stored in clear, having no personal data.
    const SAMPLED: bool;

    /// Calls the policy; `None` for one of another kind.
    fn call(
        &self,
        class: CallClass,
        policy: &Policy,
        inputs: CallInputs<'_>,
    ) -> Option<CallReport<Self::Output>>;

    /// The request in the form of a dry run's input; null where it may hold personal data.
    fn to_json(&self) -> Value;

    /// The request as stored for replay; null if not retained.
    fn stored_input(&self, core: &Core, client: &Client) -> Value;

    /// The output as shown to operators: equal outputs have equal bytes.
    fn output_as_json(output: &Self::Output) -> Value;

    /// SHA-256 of the output in hex: equal outputs have equal digests on every edge.
    fn output_digest(output: &Self::Output) -> String {
        digest_hex(Self::output_as_json(output).to_string().as_bytes())
    }

    /// The rule of the policy that fired.
    fn rule(output: &Self::Output) -> &str;

    /// The output's label in metrics.
    fn outcome(_: &Self::Output) -> &'static str {
        "ok"
    }
}
