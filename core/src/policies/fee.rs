//! What a fee policy states for a quote or an order. The host does the sums and clamps them.

use rampart_plugins::contract::{FeeRequest, PolicyKind};
use rampart_plugins::{FeeSchedule, Policy};
use serde_json::Value;

use super::call::{count, run};
use crate::Core;
use crate::caller::Client;
use crate::error::{Code, Result};

/// What a partner's policy stated.
#[derive(Clone, Debug)]
pub struct PolicyFees {
    /// The rules; neither clamped nor summed.
    pub schedule: FeeSchedule,
    /// For the audit: `{kind, version, digest, rule, fuel}`, and `clamped` once it was.
    pub decision: Value,
}

impl PolicyFees {
    /// Notes that what the policy stated was held to the operator's bounds: `detail` says which
    /// and how. Counted as `clamped`, beside the call's own `ok`.
    pub fn note_clamped(&mut self, core: &Core, client: &Client, detail: Value) {
        if let Value::Object(decision) = &mut self.decision {
            decision.insert("clamped".to_owned(), detail);
        }
        count(core, client, PolicyKind::Fee, "clamped");
    }
}

/// What the partner's policy states for `request`; `None` when the built-in fees apply, because
/// there is no policy or it malfunctioned. Synchronous: microseconds, at most the policy's deadline.
///
/// # Errors
/// ER328 on a malfunction of a policy that the operator set to fail closed.
pub fn fee_schedule(
    core: &Core,
    client: &Client,
    request: &FeeRequest,
) -> Result<Option<PolicyFees>> {
    let Some(active) = &client.tenant.policies.fee else { return Ok(None) };
    let answered = run(
        core,
        client,
        active,
        |policy, active, context| match policy {
            Policy::Fee(policy) => Some(policy.price(context, &active.config, request)),
            Policy::Signature(_) | Policy::MethodOrder(_) => None,
        },
        |_| "ok",
    );
    match answered {
        Some(answered) => {
            let decision = answered.decision(&answered.answer.rule);
            Ok(Some(PolicyFees { schedule: answered.answer, decision }))
        }
        None if active.fail_closed => Err(Code::ER328.into()),
        None => Ok(None),
    }
}
