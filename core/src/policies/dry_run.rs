//! Dry runs: a version asked by an operator. Nothing is stored, and nothing of it counts for the
//! breaker or the metrics of live calls.
//!
//! `question` and `answer` are how both are written in JSON; `check` reads its vectors with them.
//! `recorded`: what live requests asked.

pub(super) mod answer;
pub(super) mod question;
mod recorded;

use std::sync::Arc;
use std::time::Duration;

use rampart_plugins::contract::{CallContext, ConfigEntry};
use rampart_plugins::{CallClass, CallReport, KeyRing, Policy};
use serde_json::{Map, Value, json};

use self::question::Question;
use super::ask::{Ask, Told};
use super::lifecycle::{NotDone, Target};
use crate::Core;
use crate::platform::error::Error;
use crate::policies::runtime::TenantPolicies;
use crate::policies::runtime::configuration;

/// Most questions of one dry run.
pub(crate) const QUESTIONS_MAX: usize = 1_000;

/// What a dry run asks.
#[derive(Debug)]
pub(crate) enum Asked {
    /// One question, as the operator wrote it.
    One(Value),
    /// Several, at most [`QUESTIONS_MAX`].
    Several(Vec<Value>),
    /// What live requests asked: questions of this kind that were recorded.
    Recorded,
}

/// What a version decides, with its cost and its log; a malfunction is an answer too. `version` is
/// the active one where it is left out, `now` what it takes for the time. Members that an input
/// leaves out take ordinary values.
///
/// One question is answered by itself; several by a list that is the same wherever it is made, for
/// the same `now`.
pub(crate) async fn dry_run(
    core: &Core,
    target: Target<'_>,
    (version, now): (Option<i64>, Option<u32>),
    asked: Asked,
) -> Result<Value, NotDone> {
    core.refresh().await?;
    let subject = Subject::find(core, target, version).await?;
    let catalogue = Arc::clone(&core.snapshots.current().catalogue);
    let read = |input| {
        Question::read(target.kind, input, &catalogue)
            .map_err(|problem| NotDone::Unfit(format!("input: {problem}")))
    };
    let (one, questions) = match asked {
        Asked::One(input) => (true, vec![read(input)?]),
        Asked::Several(inputs) if inputs.len() > QUESTIONS_MAX => {
            return Err(NotDone::Unfit(format!("inputs: at most {QUESTIONS_MAX}")));
        }
        Asked::Several(inputs) => (false, inputs.into_iter().map(read).collect::<Result<_, _>>()?),
        Asked::Recorded => (false, recorded::questions(core, target, &catalogue).await?),
    };
    let (version, digest) = (subject.version, subject.digest().to_owned());
    let context = context(core, target, now);
    let clock = core.clock.clone();
    let _place = core.policies.dry_run_permit().await?;
    let run = move || {
        let started = clock.monotonic_ns();
        let answers: Vec<_> =
            questions.iter().map(|question| subject.answer(question, &context)).collect();
        (answers, Duration::from_nanos(clock.monotonic_ns().saturating_sub(started)))
    };
    let (mut answers, took) = tokio::task::spawn_blocking(run)
        .await
        .map_err(|error| Error::internal("run a policy", error))?;
    if !one {
        return Ok(json!({"version": version, "digest": digest, "decisions": answers}));
    }
    let mut answer = answers.pop().unwrap_or_default();
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    answer.insert("time".into(), json!({ "microseconds": micros }));
    answer.insert("version".into(), version.into());
    answer.insert("digest".into(), digest.into());
    Ok(Value::Object(answer))
}

/// What policies are told in a rehearsal.
fn context(core: &Core, target: Target<'_>, now: Option<u32>) -> CallContext {
    CallContext {
        partner: target.slug.to_owned(),
        request_id: "dry-run".to_owned(),
        now: now.unwrap_or_else(|| u32::try_from(core.clock.unix_seconds()).unwrap_or(u32::MAX)),
        rehearsal: true,
        attributes: Vec::new(),
    }
}

/// A version that is asked.
pub(super) struct Subject {
    version: i64,
    policy: Policy,
    config: Vec<ConfigEntry>,
    keys: KeyRing,
}

impl Subject {
    /// The version, compiled: the active one where none is named.
    ///
    /// # Errors
    /// [`NotDone::Missing`] when there is none, [`NotDone::Unfit`] when it does not fit this edge.
    pub(super) async fn find(
        core: &Core,
        target: Target<'_>,
        version: Option<i64>,
    ) -> Result<Self, NotDone> {
        let snapshot = core.snapshots.current();
        let tenant = snapshot.tenants.get(&target.client).ok_or(NotDone::Missing("partner"))?;
        let TenantPolicies { verification_keys, .. } = &tenant.policies;
        let keys = verification_keys.clone();
        let known = match version {
            None => {
                Some(tenant.policies.get(target.kind).ok_or(NotDone::Missing("active policy"))?)
            }
            Some(version) => tenant.policies.version(target.kind, version),
        };
        let Some(known) = known else {
            return Self::stored(core, target, version.unwrap_or_default(), keys).await;
        };
        let policy = known.policy().ok_or(NotDone::Missing("compiled policy on this edge"))?;
        let (policy, config) = (policy.clone(), known.config.clone());
        Ok(Self { version: known.version, policy, config, keys })
    }

    /// A version that serves nobody, compiled for this.
    async fn stored(
        core: &Core,
        target: Target<'_>,
        version: i64,
        keys: KeyRing,
    ) -> Result<Self, NotDone> {
        let row = sqlx::query!(
            "select digest, info, config from policy_version \
             where client_id = $1 and kind = $2 and version = $3",
            target.client.uuid(),
            target.kind.as_str(),
            version,
        )
        .fetch_optional(&core.db)
        .await?
        .ok_or(NotDone::Missing("version"))?;
        let config =
            configuration::entries_of_stored(&row.info, &row.config).map_err(NotDone::Unfit)?;
        let policy = core.policies.compiled(target.kind, &row.digest, &core.db).await?;
        Ok(Self { version, policy: policy.map_err(NotDone::Unfit)?, config, keys })
    }

    /// What it answers; a question is read for its kind.
    fn answer(&self, question: &Question, context: &CallContext) -> Map<String, Value> {
        answer::ask(&self.policy, context, &self.config, question, &self.keys).unwrap_or_default()
    }

    /// Asks; `None` for a policy of another kind. Blocks: not for a serving thread.
    pub(super) fn ask<Q: Ask>(
        &self,
        question: &Q,
        context: &CallContext,
    ) -> Option<CallReport<Q::Answer>> {
        let told = Told { context, config: &self.config, keys: &self.keys };
        question.ask(CallClass::Background, &self.policy, told)
    }

    /// SHA-256 of its component, in lower-case hex.
    pub(super) fn digest(&self) -> &str {
        self.policy.digest()
    }
}
