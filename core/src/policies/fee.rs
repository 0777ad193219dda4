//! Fees of a quote or an order by the partner's policy. The host computes and clamps the amounts.

use rampart_plugins::FeeSchedule;
use rampart_plugins::contract::{FeeRequest, PolicyKind};
use serde_json::Value;

use super::evaluate::{count_outcome, evaluate};
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::error::{Code, Result};
use rampart_types::UserId;

/// Fees stated by a partner's policy.
#[derive(Clone, Debug)]
pub struct PolicyFees {
    /// The rules; neither clamped nor summed.
    pub schedule: FeeSchedule,
    /// For the audit and a replay: `{kind, version, digest, rule, fuel, answer, now, requestId,
    /// input}`, and `clamped` and `within` if it was clamped.
    pub decision: Value,
}

impl PolicyFees {
    /// Records that fees were clamped to the operator's bounds: the fees, and the bounds in `within`.
    /// Counted as `clamped`, beside the call's own `ok`.
    pub fn note_clamped(&mut self, core: &Core, client: &Client, clamped: Value, within: Value) {
        if let Value::Object(decision) = &mut self.decision {
            decision.insert("clamped".to_owned(), clamped);
            decision.insert("within".to_owned(), within);
        }
        count_outcome(core, client, PolicyKind::Fee, "clamped");
    }
}

/// The fees of `request` by the partner's policy; `None` when the built-in fees apply: there is no
/// policy for this user, or it failed. Synchronous: microseconds, at most the policy's deadline.
///
/// # Errors
/// ER328 when a policy fails that the operator set to fail closed.
pub fn fee_schedule(
    core: &Core,
    client: &Client,
    user: Option<UserId>,
    request: FeeRequest,
) -> Result<Option<PolicyFees>> {
    let user = user.map(|user| user.uuid());
    match evaluate(core, client, user.as_ref().map(|user| &user.as_bytes()[..]), request) {
        Ok(evaluation) => Ok(evaluation.map(|evaluation| PolicyFees {
            schedule: evaluation.output,
            decision: evaluation.decision,
        })),
        Err(failure) if failure.fail_closed => Err(Code::FeePolicyFailed.into()),
        Err(_) => Ok(None),
    }
}
