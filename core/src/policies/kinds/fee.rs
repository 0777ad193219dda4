//! Fees of a quote or an order by the partner's policy. The host computes and clamps the amounts.

mod json;

use std::fmt::Write as _;

use rampart_plugins::contract::{FeeKind, FeeRequest, PolicyKind};
use rampart_plugins::{CallClass, CallReport, Charge, FeeSchedule, Policy};
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::{CallInputs, PolicyRequest};
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::error::{Code, Result};
use crate::policies::evaluate::context::Attributes;
use crate::policies::evaluate::{count_outcome, evaluate};
use crate::policies::manifest::digest_hex;
use crate::trading::catalogue::Catalogue;
use rampart_types::{JsonDecimal, UserId};

/// Fees stated by a partner's policy.
#[derive(Clone, Debug)]
pub struct PolicyFees {
    /// The rules; neither clamped nor summed.
    pub schedule: FeeSchedule,
    /// For the audit and a replay: `{kind, version, digest, rule, fuel, answer, now, requestId,
    /// input, attributes}`, and `clamped` and `within` if it was clamped.
    pub decision: Value,
}

impl PolicyFees {
    /// Records that fees were clamped to the operator's bounds: the fees, and the bounds in `within`.
    /// Counted as `clamped`, beside the call's own `ok`.
    pub fn note_clamped(&mut self, core: &Core, client: &Client, clamped: Value, within: Value) {
        self.decision["clamped"] = clamped;
        self.decision["within"] = within;
        count_outcome(core, client, PolicyKind::Fee, "clamped");
    }
}

/// The fees of `request` by the partner's policy; `None` when the built-in fees apply: there is no
/// policy for this user, or it failed. Microseconds, at most the policy's deadline, but at the first use.
///
/// # Errors
/// ER328 when a policy fails that the operator set to fail closed.
pub async fn fee_schedule(
    core: &Core,
    client: &Client,
    user: Option<UserId>,
    request: FeeRequest,
    attributes: &Attributes,
) -> Result<Option<PolicyFees>> {
    let user = user.map(|user| user.uuid());
    let subject = user.as_ref().map(|user| &user.as_bytes()[..]);
    match evaluate(core, client, subject, request, attributes).await {
        Ok(evaluation) => Ok(evaluation.map(|evaluation| PolicyFees {
            schedule: evaluation.output,
            decision: evaluation.decision,
        })),
        Err(failure) if failure.fail_closed => Err(Code::FeePolicyFailed.into()),
        Err(_) => Ok(None),
    }
}

impl PolicyRequest for FeeRequest {
    type Output = FeeSchedule;
    const KIND: PolicyKind = PolicyKind::Fee;
    const SAMPLED: bool = true;

    fn call(
        &self,
        class: CallClass,
        policy: &Policy,
        inputs: CallInputs<'_>,
    ) -> Option<CallReport<FeeSchedule>> {
        let Policy::Fee(policy) = policy else { return None };
        Some(policy.price(class, inputs.context, inputs.config, self))
    }

    fn read(path: &str, input: &Value, _: &Catalogue) -> Result<Self, String> {
        json::read(path, input)
    }

    fn to_json(&self) -> Value {
        json::to_json(self)
    }

    fn stored_input(&self, _: &Core, _: &Client) -> Value {
        self.to_json()
    }

    fn output_as_json(schedule: &FeeSchedule) -> Value {
        let charge = |charge: &Charge| match charge {
            Charge::Flat(amount) => json!({ "flat": JsonDecimal(*amount) }),
            Charge::Rate { ppm, at_least, at_most } => json!({
                "rate": ppm,
                "atLeast": at_least.map(JsonDecimal),
                "atMost": at_most.map(JsonDecimal),
            }),
        };
        let kind = |kind| match kind {
            FeeKind::Partner => "partner",
            FeeKind::PaymentMethod => "payment-method",
        };
        let lines = schedule.lines.iter().map(|line| {
            json!({
                "kind": kind(line.kind),
                "code": line.code,
                "charge": charge(&line.charge),
            })
        });
        json!({
            "lines": lines.collect::<Vec<_>>(),
            "spread": schedule.spread_ppm,
            "rule": schedule.rule,
        })
    }

    /// Every quote needs one, so it is built without a JSON document.
    fn output_digest(schedule: &FeeSchedule) -> String {
        let mut text = format!("{} {}", schedule.spread_ppm, schedule.rule);
        for line in &schedule.lines {
            let kind = match line.kind {
                FeeKind::Partner => 'p',
                FeeKind::PaymentMethod => 'm',
            };
            text.extend(['\n', kind, ' ']);
            text += &line.code;
            // Writing to a string cannot fail.
            let _ = match line.charge {
                Charge::Flat(amount) => write!(text, " {amount}"),
                Charge::Rate { ppm, at_least, at_most } => {
                    let bound = |bound: Option<Decimal>| bound.map(|b| b.to_string());
                    let (least, most) = (bound(at_least), bound(at_most));
                    write!(text, " ppm {ppm} {least:?} {most:?}")
                }
            };
        }
        digest_hex(text.as_bytes())
    }

    fn rule(schedule: &FeeSchedule) -> &str {
        &schedule.rule
    }
}
