//! The policy kinds. Everything that differs by kind is in one file each: the call of live requests,
//! the request's forms and the output's. [`KINDS`] is the table of them, for callers that know the
//! kind by name alone: dry runs, test vectors and replays.

pub mod fee;
mod json;
pub mod method_order;
pub mod signature;

use std::sync::Arc;

use rampart_plugins::contract::{
    CallContext, ConfigEntry, FeeRequest, PolicyKind, RankRequest, SignedPayload,
};
use rampart_plugins::{CallClass, CallReport, KeyRing, Policy};
use rampart_types::ClientId;
use serde_json::{Value, json};

use super::evaluate::context::{Attributes, contract_form};
use super::manifest::digest_hex;
use crate::Core;
use crate::auth::caller::Client;
use crate::http::fields::strict;
use crate::platform::error::{Error, Result};
use crate::trading::catalogue::Catalogue;

/// The member of a request's JSON that holds the attributes of its call.
const ATTRIBUTES: &str = "attributes";

/// The path of an input that stands alone.
pub(super) const ALONE: &str = "input";

/// One row per kind.
const KINDS: [Kind; PolicyKind::ALL.len()] =
    [kind::<SignedPayload>(), kind::<FeeRequest>(), kind::<Arc<RankRequest>>()];

/// Reads a request of a sample.
type ReadRequest = fn(&str, &Value, &Catalogue) -> Result<Box<dyn ReportedRequest>, String>;

/// A kind of policy by its requests.
struct Kind {
    kind: PolicyKind,
    read: ReadRequest,
    read_stored: fn(&Core, ClientId, &Value) -> Result<Box<dyn ReportedRequest>>,
}

const fn kind<R: PolicyRequest + Sync>() -> Kind {
    Kind {
        kind: R::KIND,
        read: |path, input, catalogue| Ok(Box::new(R::read(path, input, catalogue)?)),
        read_stored: |core, client, input| Ok(Box::new(R::read_stored(core, client, input)?)),
    }
}

/// A request to policies of a kind that is known by its name alone, with the attributes of its call.
pub(super) struct AnyRequest {
    request: Box<dyn ReportedRequest>,
    attributes: Attributes,
}

impl AnyRequest {
    /// Calls the policy; `None` for one of another kind. Blocks: not for a serving thread.
    pub(super) fn call(
        &self,
        policy: &Policy,
        inputs: CallInputs<'_>,
    ) -> Option<CallReport<ReportedOutput>> {
        let attributes = contract_form(&self.attributes);
        let context = CallContext { attributes, ..inputs.context.clone() };
        self.request.call_reported(policy, CallInputs { context: &context, ..inputs })
    }

    /// The request in the form of a dry run's input; null where it may hold personal data.
    pub(super) fn reported_input(&self) -> Value {
        self.request.reported(&self.attributes)
    }
}

/// Reads an operator's input for policies of this kind, which has this path in its document.
/// Missing members have defaults; the default methods to rank are those of the catalogue.
/// `attributes` is an object of texts.
///
/// # Errors
/// A sentence, after the path of the member that is invalid or unknown.
pub(super) fn read(
    kind: PolicyKind,
    path: &str,
    mut input: Value,
    catalogue: &Catalogue,
) -> Result<AnyRequest, String> {
    let row = KINDS.iter().find(|row| row.kind == kind).ok_or("no policy is of this kind")?;
    let members = input.as_object_mut().ok_or_else(|| format!("{path}: not an object"))?;
    let attributes = match members.remove(ATTRIBUTES) {
        Some(attributes) => strict::read_at(&format!("{path}.{ATTRIBUTES}"), &attributes)?,
        None => Attributes::new(),
    };
    Ok(AnyRequest { request: (row.read)(path, &input, catalogue)?, attributes })
}

/// The request in the form of a dry run's input, with the attributes of its call; null where it may
/// hold personal data.
pub(super) fn reported_input<R: PolicyRequest>(request: &R, attributes: &Attributes) -> Value {
    let mut input = request.to_json();
    if let (Value::Object(members), false) = (&mut input, attributes.is_empty()) {
        members.insert(ATTRIBUTES.to_owned(), json!(attributes));
    }
    input
}

/// Reads what [`PolicyRequest::stored_input`] stored for this client, of a call with these attributes.
///
/// # Errors
/// When it is not what was stored.
pub(super) fn read_stored(
    core: &Core,
    client: ClientId,
    kind: PolicyKind,
    input: &Value,
    attributes: Attributes,
) -> Result<AnyRequest> {
    let row = KINDS.iter().find(|row| row.kind == kind);
    let row = row.ok_or_else(|| Error::invariant("know a stored request's kind"))?;
    Ok(AnyRequest { request: (row.read_stored)(core, client, input)?, attributes })
}

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

    /// Reads an operator's input, as [`read`].
    ///
    /// # Errors
    /// A sentence, after the path of the member that is invalid or unknown.
    fn read(path: &str, input: &Value, catalogue: &Catalogue) -> Result<Self, String>;

    /// Reads what [`PolicyRequest::stored_input`] stored.
    ///
    /// # Errors
    /// When it is not what was stored.
    fn read_stored(core: &Core, _: ClientId, input: &Value) -> Result<Self> {
        let catalogue = Arc::clone(&core.snapshots.current().catalogue);
        Self::read(ALONE, input, &catalogue).map_err(|_| Error::invariant("read a stored request"))
    }

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

/// A policy's output in the forms that operators see.
pub(super) struct ReportedOutput {
    /// The rule of the policy that fired.
    pub(super) rule: String,
    /// SHA-256 of the output in hex.
    pub(super) digest: String,
    pub(super) json: Value,
}

/// A request whose output is reported, and used for nothing else.
pub(super) trait ReportedRequest: Send + Sync {
    /// Calls the policy; `None` for one of another kind. Blocks: not for a serving thread.
    fn call_reported(
        &self,
        policy: &Policy,
        inputs: CallInputs<'_>,
    ) -> Option<CallReport<ReportedOutput>>;

    /// The request, as [`reported_input`].
    fn reported(&self, attributes: &Attributes) -> Value;
}

impl<R: PolicyRequest + Sync> ReportedRequest for R {
    fn reported(&self, attributes: &Attributes) -> Value {
        reported_input(self, attributes)
    }

    fn call_reported(
        &self,
        policy: &Policy,
        inputs: CallInputs<'_>,
    ) -> Option<CallReport<ReportedOutput>> {
        let report = self.call(CallClass::Background, policy, inputs)?;
        let CallReport { outcome, fuel, memory_bytes, log, log_dropped } = report;
        let outcome = outcome.map(|output| ReportedOutput {
            rule: R::rule(&output).to_owned(),
            digest: R::output_digest(&output),
            json: R::output_as_json(&output),
        });
        Some(CallReport { outcome, fuel, memory_bytes, log, log_dropped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_names_an_unknown_member_of_its_requests() {
        for kind in PolicyKind::ALL {
            let input = json!({"foo": 1});
            let problem = read(kind, ALONE, input, &Catalogue::default()).err().unwrap_or_default();
            assert!(
                problem.starts_with("input: unknown field `foo`"),
                "{}: {problem}",
                kind.as_str()
            );
        }
    }
}
