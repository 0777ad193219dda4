//! Signatures of payloads by the partner's policy.
//!
//! - `verify`: the call of live requests; `json`, `sealed_payload`: other forms of a payload

mod json;
mod sealed_payload;
mod verify;

use rampart_plugins::contract::{PolicyKind, Rejection, SignedPayload, Verdict};
use rampart_plugins::{CallClass, CallReport, Policy};
use rampart_types::ClientId;
use serde_json::{Value, json};

pub use self::verify::{SignatureDecision, signed_payload, verify_signature};
use super::{CallInputs, PolicyRequest};
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::error::Result;
use crate::policies::runtime;
use crate::trading::catalogue::Catalogue;

impl PolicyRequest for SignedPayload {
    type Output = Verdict;
    const KIND: PolicyKind = PolicyKind::Signature;
    const SAMPLED: bool = false;

    fn call(
        &self,
        class: CallClass,
        policy: &Policy,
        inputs: CallInputs<'_>,
    ) -> Option<CallReport<Verdict>> {
        let Policy::Signature(policy) = policy else { return None };
        Some(policy.verify(class, inputs.context, inputs.config, self, inputs.keys))
    }

    fn read(path: &str, input: &Value, _: &Catalogue) -> Result<Self, String> {
        json::read(path, input)
    }

    fn read_stored(core: &Core, client: ClientId, input: &Value) -> Result<Self> {
        sealed_payload::open_payload(core, client, input.as_str().unwrap_or_default())
    }

    /// Null: a payload may hold personal data.
    fn to_json(&self) -> Value {
        Value::Null
    }

    fn stored_input(&self, core: &Core, client: &Client) -> Value {
        sealed_payload::seal(core, client, self)
    }

    /// Age and reuse of the token are not checked: both belong to a live request.
    fn output_as_json(verdict: &Verdict) -> Value {
        match verdict {
            Verdict::Rejected(rejection) => json!({
                "verdict": "rejected",
                "reason": rejection_name(*rejection),
            }),
            Verdict::Authentic(signer) => json!({
                "verdict": "authentic",
                "signer": {
                    "key": signer.key,
                    "algorithm": runtime::algorithm_name(signer.algorithm),
                    "signedAt": signer.signed_at,
                    "replayToken": signer.replay_token,
                },
            }),
        }
    }

    fn rule(verdict: &Verdict) -> &str {
        match verdict {
            Verdict::Authentic(_) => "authentic",
            Verdict::Rejected(rejection) => rejection_name(*rejection),
        }
    }

    fn outcome(verdict: &Verdict) -> &'static str {
        if matches!(verdict, Verdict::Authentic(_)) { "ok" } else { "refused" }
    }
}

/// A rejection's name, as in `wit/signature.wit`.
const fn rejection_name(rejection: Rejection) -> &'static str {
    match rejection {
        Rejection::MissingSignature => "missing-signature",
        Rejection::MalformedSignature => "malformed-signature",
        Rejection::UnknownKey => "unknown-key",
        Rejection::BadSignature => "bad-signature",
        Rejection::Stale => "stale",
        Rejection::NotCovered => "not-covered",
    }
}
