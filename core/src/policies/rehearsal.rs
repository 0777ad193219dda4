//! Dry runs: the active policy asked by an operator. Nothing is stored, and nothing of it counts
//! for the breaker or the metrics of live calls.
//!
//! `question` and `answer` are how both are written in JSON; `check` reads its vectors with them.

pub(super) mod answer;
pub(super) mod question;

use std::time::Duration;

use rampart_plugins::contract::CallContext;
use serde_json::{Value, json};

use self::answer::ask;
use self::question::Question;
use super::lifecycle::{NotDone, Target};
use crate::Core;
use crate::error::{Error, Result};

/// What the policy decides for `input`, with its cost and its log; a malfunction is an answer too.
/// Members that `input` leaves out take ordinary values.
pub(crate) async fn dry_run(
    core: &Core,
    target: Target<'_>,
    input: Value,
) -> Result<Value, NotDone> {
    core.refresh().await?;
    let snapshot = core.snapshots.current();
    let tenant = snapshot.tenants.get(&target.client).ok_or(NotDone::Missing("partner"))?;
    let active = tenant.policies.get(target.kind).ok_or(NotDone::Missing("active policy"))?;
    let policy = active.policy().ok_or(NotDone::Missing("compiled policy on this edge"))?;
    let question = Question::read(target.kind, input, &snapshot.catalogue)
        .map_err(|problem| NotDone::Unfit(format!("input: {problem}")))?;
    let context = CallContext {
        partner: target.slug.to_owned(),
        request_id: core.clock.uuid().map_err(Error::from)?.to_string(),
        now: u32::try_from(core.clock.unix_seconds()).unwrap_or(u32::MAX),
        rehearsal: true,
        attributes: Vec::new(),
    };
    let (policy, config) = (policy.clone(), active.config.clone());
    let (keys, clock) = (tenant.policies.verification_keys.clone(), core.clock.clone());
    let run = move || {
        let started = clock.monotonic_ns();
        let answer = ask(&policy, &context, &config, &question, &keys);
        (answer, Duration::from_nanos(clock.monotonic_ns().saturating_sub(started)))
    };
    let (answer, took) = tokio::task::spawn_blocking(run)
        .await
        .map_err(|error| Error::internal("run a policy", error))?;
    let mut answer = answer.ok_or_else(|| Error::broken("ask a policy of its own kind"))?;
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    answer.insert("time".into(), json!({ "microseconds": micros }));
    answer.insert("version".into(), active.version.into());
    answer.insert("digest".into(), active.digest().into());
    Ok(Value::Object(answer))
}
