//! One question on the serving thread: to the version that this user gets, behind its breaker,
//! measured, and logged when it malfunctions.

use std::sync::Arc;
use std::time::Duration;

use rampart_plugins::contract::{CallContext, PolicyKind};
use rampart_plugins::{CallClass, CallReport};
use serde_json::{Value, json};

use super::ask::{Ask, Told};
use super::shadow;
use crate::Core;
use crate::auth::caller::Client;
use crate::policies::runtime::ActivePolicy;

pub(super) const NS_PER_MS: u64 = 1_000_000;

/// Longest word of a policy's own message that is logged, in bytes.
const WORD_BYTES_MAX: usize = 24;
/// Digits from which a word may be an account, a card or a telephone number.
const WORD_DIGITS_MAX: usize = 5;

/// A usable answer, and who gave it at what cost.
pub(super) struct Answered<T> {
    pub(super) answer: T,
    /// What is kept of the call beside an offer, a quote or an order: enough to ask again.
    pub(super) decision: Value,
}

/// A policy gave no usable answer. It is counted and logged already.
pub(super) struct Malfunction {
    /// Whether the operator wants the request refused then.
    pub(super) fail_closed: bool,
}

/// Asks the version that answers `subject`; `None` when the built-in rule does.
///
/// A version on trial that malfunctions gives way to the active one.
pub(super) fn run<Q: Ask>(
    core: &Core,
    client: &Client,
    subject: Option<&[u8]>,
    question: Q,
) -> Result<Option<Answered<Q::Answer>>, Malfunction> {
    let policies = &client.tenant.policies;
    let trial = policies.trial(Q::KIND);
    let mut fail_closed = false;
    if let Some(trial) = trial.filter(|trial| trial.takes(client.id(), subject)) {
        let answered = once(core, client, trial.policy.serving(), &question);
        if answered.is_some() {
            return Ok(answered);
        }
        fail_closed = trial.policy.fail_closed;
        if policies.get(Q::KIND).is_none() {
            return Err(Malfunction { fail_closed });
        }
    }
    let Some(active) = policies.get(Q::KIND) else { return Ok(None) };
    let answered = once(core, client, active.serving(), &question);
    fail_closed |= active.fail_closed;
    if let Some(shadow) = trial.filter(|trial| trial.share.is_none()) {
        let answer = answered.as_ref().map(|answered| answered.answer.clone());
        shadow::shadow(core, client, shadow, question, answer);
    } else if Q::SAMPLED {
        shadow::sample(core, client, active, question);
    }
    answered.map(Some).ok_or(Malfunction { fail_closed })
}

/// Calls one version; `None` is a malfunction.
fn once<Q: Ask>(
    core: &Core,
    client: &Client,
    active: &Arc<ActivePolicy>,
    question: &Q,
) -> Option<Answered<Q::Answer>> {
    let Some(policy) = active.policy() else {
        count(core, client, active.kind, "load");
        return None;
    };
    let started = core.clock.monotonic_ns();
    if !active.breaker.allows(started / NS_PER_MS) {
        count(core, client, active.kind, "breaker");
        return None;
    }
    let context = context(core, client);
    let keys = &client.tenant.policies.verification_keys;
    let told = Told { context: &context, config: &active.config, keys };
    let CallReport { outcome, fuel, .. } = question.ask(CallClass::Live, policy, told)?;
    let ended = core.clock.monotonic_ns();
    let kind = active.kind.as_str();
    let meters =
        active.meters.get_or_init(|| core.metrics.policy_meters(kind, &client.tenant.slug));
    meters.cost(Duration::from_nanos(ended.saturating_sub(started)), fuel);
    let cause = outcome.as_ref().err().map(|failure| failure.kind);
    let opened = active.breaker.record(ended / NS_PER_MS, cause);
    match outcome {
        Ok(answer) => {
            match Q::outcome(&answer) {
                "ok" => meters.ok.inc(),
                outcome => count(core, client, active.kind, outcome),
            }
            let kept = question.kept(core, client);
            let decision = decision::<Q>(active, &context, &answer, fuel, kept);
            Some(Answered { answer, decision })
        }
        Err(failure) => {
            count(core, client, active.kind, failure.kind.as_str());
            let now_ms = ended / NS_PER_MS;
            if let Some(silent) = active.log.line(now_ms, opened) {
                tracing::warn!(
                    request_id = &*client.request_id,
                    partner = &*client.tenant.slug,
                    kind,
                    version = active.version,
                    cause = failure.kind.as_str(),
                    message = scrubbed(&failure.message),
                    fuel,
                    breaker_opened = opened,
                    not_logged = silent,
                    "a policy malfunctioned"
                );
            }
            None
        }
    }
}

/// Who decided what by which rule at what cost, and what it was told.
fn decision<Q: Ask>(
    active: &ActivePolicy,
    context: &CallContext,
    answer: &Q::Answer,
    fuel: u64,
    kept: Value,
) -> Value {
    if Q::KIND == PolicyKind::MethodOrder {
        return Value::Null;
    }
    let mut decision = json!({
        "kind": active.kind.as_str(),
        "version": active.version,
        "digest": active.digest(),
        "rule": Q::rule(answer),
        "fuel": fuel,
        "answer": Q::fingerprint(answer),
        "now": context.now,
        "requestId": context.request_id,
    });
    if let (Value::Object(members), false) = (&mut decision, kept.is_null()) {
        members.insert("input".to_owned(), kept);
    }
    decision
}

/// Counts one outcome of a call.
pub(super) fn count(core: &Core, client: &Client, kind: PolicyKind, outcome: &str) {
    let labels = [kind.as_str(), &*client.tenant.slug, outcome];
    core.metrics.policy_calls.with_label_values(&labels).inc();
}

pub(super) fn context(core: &Core, client: &Client) -> CallContext {
    CallContext {
        partner: client.tenant.slug.to_string(),
        request_id: client.request_id.to_string(),
        now: u32::try_from(core.clock.unix_seconds()).unwrap_or(u32::MAX),
        rehearsal: false,
        attributes: Vec::new(),
    }
}

/// A policy's own words without what may identify a person or open a door: addresses, URLs, long
/// words, many digits. The message is one bounded line already.
pub(super) fn scrubbed(message: &str) -> String {
    let words = message.split(' ').map(|word| if is_harmless(word) { word } else { "…" });
    words.collect::<Vec<_>>().join(" ")
}

fn is_harmless(word: &str) -> bool {
    word.len() <= WORD_BYTES_MAX
        && !word.contains('@')
        && !word.contains("://")
        && word.bytes().filter(u8::is_ascii_digit).count() <= WORD_DIGITS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_logged_without_what_identifies() {
        for (message, logged) in [
            ("unsupported: XOF in tier-2", "unsupported: XOF in tier-2"),
            ("bad mail jo@example.com given", "bad mail … given"),
            ("see https://acme.example/?t=1", "see …"),
            ("to bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "to …"),
            ("account 0049123456 fails", "account … fails"),
        ] {
            assert_eq!(scrubbed(message), logged);
        }
    }
}
