//! A question to a policy of one kind, and its answer: asked the same way on the request path, in
//! the shadow, in dry runs and in replays.

mod kept;
mod written;

use std::fmt::Write as _;
use std::sync::Arc;

use rampart_plugins::contract::{
    CallContext, ConfigEntry, FeeKind, FeeRequest, PolicyKind, RankRequest, SignedPayload, Verdict,
};
use rampart_plugins::{CallClass, CallReport, Charge, FeeSchedule, KeyRing, Policy, Ranking};
use rust_decimal::Decimal;
use serde_json::{Value, json};

pub(super) use self::kept::open_payload;
use super::manifest::digest_hex;
use super::signature;
use crate::Core;
use crate::auth::caller::Client;
use crate::policies::runtime;
use rampart_types::JsonDecimal;

/// What a policy is told beside the question.
#[derive(Clone, Copy)]
pub(super) struct Told<'a> {
    pub(super) context: &'a CallContext,
    pub(super) config: &'a [ConfigEntry],
    pub(super) keys: &'a KeyRing,
}

/// A question of one kind.
pub(super) trait Ask: Send + Sized + 'static {
    /// What is answered.
    type Answer: Clone + PartialEq + Send + 'static;
    /// Who is asked.
    const KIND: PolicyKind;
    /// Whether a few of the questions may be kept in clear: they name nobody.
    const SAMPLED: bool;

    /// Asks; `None` for a policy of another kind.
    fn ask(
        &self,
        lane: CallClass,
        policy: &Policy,
        told: Told<'_>,
    ) -> Option<CallReport<Self::Answer>>;

    /// The question as an operator would write it.
    fn as_json(&self) -> Value;

    /// The question as it is kept beside what came of it, for a replay; null where it is not.
    fn kept(&self, core: &Core, client: &Client) -> Value;

    /// The answer as operators are shown it: the same bytes for the same answer.
    fn answer_as_json(answer: &Self::Answer) -> Value;

    /// SHA-256 of the answer in hex: the same for the same answer, on every edge.
    fn fingerprint(answer: &Self::Answer) -> String {
        digest_hex(Self::answer_as_json(answer).to_string().as_bytes())
    }

    /// Which rule of the policy fired.
    fn rule(answer: &Self::Answer) -> &str;

    /// The answer's name in metrics.
    fn outcome(_: &Self::Answer) -> &'static str {
        "ok"
    }
}

impl Ask for FeeRequest {
    type Answer = FeeSchedule;
    const KIND: PolicyKind = PolicyKind::Fee;
    const SAMPLED: bool = true;

    fn ask(
        &self,
        lane: CallClass,
        policy: &Policy,
        told: Told<'_>,
    ) -> Option<CallReport<FeeSchedule>> {
        let Policy::Fee(policy) = policy else { return None };
        Some(policy.price_in(lane, told.context, told.config, self))
    }

    fn as_json(&self) -> Value {
        written::fee(self)
    }

    fn kept(&self, _: &Core, _: &Client) -> Value {
        self.as_json()
    }

    fn answer_as_json(schedule: &FeeSchedule) -> Value {
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

    /// Every quote needs it, so it is made without a document.
    fn fingerprint(schedule: &FeeSchedule) -> String {
        let mut text = format!("{} {}", schedule.spread_ppm, schedule.rule);
        for line in &schedule.lines {
            let kind = match line.kind {
                FeeKind::Partner => 'p',
                FeeKind::PaymentMethod => 'm',
            };
            text.extend(['\n', kind, ' ']);
            text += &line.code;
            // Writing to a text cannot fail.
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

/// Shared, because it is the same for many.
impl Ask for Arc<RankRequest> {
    type Answer = Ranking;
    const KIND: PolicyKind = PolicyKind::MethodOrder;
    const SAMPLED: bool = true;

    fn ask(&self, lane: CallClass, policy: &Policy, told: Told<'_>) -> Option<CallReport<Ranking>> {
        let Policy::MethodOrder(policy) = policy else { return None };
        Some(policy.rank_in(lane, told.context, told.config, self))
    }

    fn as_json(&self) -> Value {
        written::order(self)
    }

    fn kept(&self, _: &Core, _: &Client) -> Value {
        Value::Null
    }

    fn answer_as_json(ranking: &Ranking) -> Value {
        let shown = ranking.shown.iter().map(|place| json!({"id": place.id, "badge": place.badge}));
        json!({"shown": shown.collect::<Vec<_>>(), "rule": ranking.rule})
    }

    fn rule(ranking: &Ranking) -> &str {
        &ranking.rule
    }
}

impl Ask for SignedPayload {
    type Answer = Verdict;
    const KIND: PolicyKind = PolicyKind::Signature;
    const SAMPLED: bool = false;

    fn ask(&self, lane: CallClass, policy: &Policy, told: Told<'_>) -> Option<CallReport<Verdict>> {
        let Policy::Signature(policy) = policy else { return None };
        Some(policy.verify_in(lane, told.context, told.config, self, told.keys))
    }

    /// Null: what partners send may be about persons.
    fn as_json(&self) -> Value {
        Value::Null
    }

    fn kept(&self, core: &Core, client: &Client) -> Value {
        kept::sealed(core, client, self)
    }

    /// The window of time and the reuse of the token are not judged: both belong to a live request.
    fn answer_as_json(verdict: &Verdict) -> Value {
        match verdict {
            Verdict::Rejected(rejection) => json!({
                "verdict": "rejected",
                "reason": signature::rejection_name(*rejection),
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
            Verdict::Rejected(rejection) => signature::rejection_name(*rejection),
        }
    }

    fn outcome(verdict: &Verdict) -> &'static str {
        if matches!(verdict, Verdict::Authentic(_)) { "ok" } else { "refused" }
    }
}
