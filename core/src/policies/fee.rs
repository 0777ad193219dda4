//! What a fee policy states for a quote or an order. The host does the sums and clamps them.

use rampart_plugins::FeeSchedule;
use rampart_plugins::contract::{FeeRequest, PolicyKind};
use serde_json::Value;

use super::call::{count, run};
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::error::{Code, Result};
use rampart_types::UserId;

/// What a partner's policy stated.
#[derive(Clone, Debug)]
pub struct PolicyFees {
    /// The rules; neither clamped nor summed.
    pub schedule: FeeSchedule,
    /// For the audit and a replay: `{kind, version, digest, rule, fuel, answer, now, requestId,
    /// input}`, and `clamped` and `within` once it was.
    pub decision: Value,
}

impl PolicyFees {
    /// Notes that what the policy stated was held to the operator's bounds: which of its fees, and
    /// `within` which bounds. Counted as `clamped`, beside the call's own `ok`.
    pub fn note_clamped(&mut self, core: &Core, client: &Client, clamped: Value, within: Value) {
        if let Value::Object(decision) = &mut self.decision {
            decision.insert("clamped".to_owned(), clamped);
            decision.insert("within".to_owned(), within);
        }
        count(core, client, PolicyKind::Fee, "clamped");
    }
}

/// What the partner's policy states for `request`; `None` when the built-in fees apply, because
/// there is no policy for this user or it malfunctioned. Synchronous: microseconds, at most the
/// policy's deadline.
///
/// # Errors
/// ER328 on a malfunction of a policy that the operator set to fail closed.
pub fn fee_schedule(
    core: &Core,
    client: &Client,
    user: Option<UserId>,
    request: FeeRequest,
) -> Result<Option<PolicyFees>> {
    let user = user.map(|user| user.uuid());
    match run(core, client, user.as_ref().map(|user| &user.as_bytes()[..]), request) {
        Ok(answered) => Ok(answered
            .map(|answered| PolicyFees { schedule: answered.answer, decision: answered.decision })),
        Err(malfunction) if malfunction.fail_closed => Err(Code::FeePolicyFailed.into()),
        Err(_) => Ok(None),
    }
}
