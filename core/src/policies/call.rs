//! One call of a policy on the serving thread: behind its breaker, measured, and logged once when
//! it malfunctions.

use std::sync::Arc;
use std::time::Duration;

use rampart_plugins::contract::{CallContext, PolicyKind};
use rampart_plugins::{Called, Policy};
use serde_json::{Value, json};

use super::active::ActivePolicy;
use crate::Core;
use crate::caller::Client;

const NS_PER_MS: u64 = 1_000_000;

/// Longest word of a policy's own message that is logged, in bytes.
const WORD_BYTES_MAX: usize = 24;
/// Digits from which a word may be an account, a card or a telephone number.
const WORD_DIGITS_MAX: usize = 5;

/// A usable answer, and who gave it at what cost.
pub(super) struct Answered<'a, T> {
    pub(super) answer: T,
    policy: &'a ActivePolicy,
    fuel: u64,
}

impl<T> Answered<'_, T> {
    /// What is kept of the call beside a quote or an order: nothing of what the policy was told.
    pub(super) fn decision(&self, rule: &str) -> Value {
        json!({
            "kind": self.policy.kind.as_str(),
            "version": self.policy.version,
            "digest": self.policy.digest(),
            "rule": rule,
            "fuel": self.fuel,
        })
    }
}

/// Calls the policy; `None` is a malfunction, counted and logged here.
///
/// `outcome` names a usable answer for the metrics.
pub(super) fn run<'a, T>(
    core: &Core,
    client: &Client,
    active: &'a Arc<ActivePolicy>,
    call: impl FnOnce(&Policy, &ActivePolicy, &CallContext) -> Option<Called<T>>,
    outcome: impl FnOnce(&T) -> &'static str,
) -> Option<Answered<'a, T>> {
    let active = active.serving();
    let Some(policy) = active.policy() else {
        count(core, client, active.kind, "load");
        return None;
    };
    let started = core.clock.monotonic_ns();
    if !active.breaker.allows(started / NS_PER_MS) {
        count(core, client, active.kind, "breaker");
        return None;
    }
    let Called { outcome: answer, fuel, .. } = call(policy, active, &context(core, client))?;
    let ended = core.clock.monotonic_ns();
    core.metrics.policy_cost(
        active.kind.as_str(),
        Duration::from_nanos(ended.saturating_sub(started)),
        fuel,
    );
    let cause = answer.as_ref().err().map(|failure| failure.cause);
    let opened = active.breaker.record(ended / NS_PER_MS, cause);
    match answer {
        Ok(answer) => {
            count(core, client, active.kind, outcome(&answer));
            Some(Answered { answer, policy: active, fuel })
        }
        Err(failure) => {
            count(core, client, active.kind, failure.cause.as_str());
            tracing::warn!(
                request_id = &*client.request_id,
                partner = &*client.tenant.slug,
                kind = active.kind.as_str(),
                version = active.version,
                cause = failure.cause.as_str(),
                message = scrubbed(&failure.message),
                fuel,
                breaker_opened = opened,
                "a policy malfunctioned"
            );
            None
        }
    }
}

/// Counts one outcome of a call.
pub(super) fn count(core: &Core, client: &Client, kind: PolicyKind, outcome: &str) {
    let labels = [kind.as_str(), &*client.tenant.slug, outcome];
    core.metrics.policy_calls.with_label_values(&labels).inc();
}

fn context(core: &Core, client: &Client) -> CallContext {
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
fn scrubbed(message: &str) -> String {
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
