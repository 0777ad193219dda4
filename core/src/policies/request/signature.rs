//! Requests to signature policies.

use rampart_plugins::contract::{PolicyKind, Rejection, SignedPayload, Verdict};
use rampart_plugins::{CallClass, CallReport, Policy};
use serde_json::{Value, json};

use super::{CallInputs, PolicyRequest, sealed_payload};
use crate::Core;
use crate::auth::caller::Client;
use crate::policies::runtime;

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
        Some(policy.verify_in(class, inputs.context, inputs.config, self, inputs.keys))
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
