//! Requests to fee policies.

use std::fmt::Write as _;

use rampart_plugins::contract::{FeeKind, FeeRequest, PolicyKind};
use rampart_plugins::{CallClass, CallReport, Charge, FeeSchedule, Policy};
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::{CallInputs, PolicyRequest, json};
use crate::Core;
use crate::auth::caller::Client;
use crate::policies::manifest::digest_hex;
use rampart_types::JsonDecimal;

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
        Some(policy.price_in(class, inputs.context, inputs.config, self))
    }

    fn to_json(&self) -> Value {
        json::fee(self)
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
