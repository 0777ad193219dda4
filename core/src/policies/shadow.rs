//! What live questions are good for once they are answered: shadow runs and samples. It is set
//! aside in a bounded queue, off the caller's path, and a worker's turn takes all of it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use rampart_plugins::contract::{CallContext, PolicyKind};
use rampart_plugins::{CallClass, CallReport, FailureKind};
use serde_json::{Value, json};
use uuid::Uuid;

use super::ask::{Ask, Told};
use super::call::{NS_PER_MS, context, scrubbed};
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::error::{Error, Result};
use crate::policies::runtime::ActivePolicy;
use crate::policies::runtime::Rollout;
use rampart_types::ClientId;

/// Most jobs set aside between two turns. What finds no room is counted as skipped.
const JOBS_MAX: usize = 512;
/// Differences kept of a trial: the newest.
const DIFFERENCES_MAX: u64 = 20;

/// Shadow runs and samples that wait for the worker's next turn.
#[derive(Default)]
pub struct ShadowQueue(Mutex<Vec<Job>>);

enum Job {
    Shadow {
        client: ClientId,
        trial: Arc<Rollout>,
        run: Box<dyn FnOnce() -> Compared + Send>,
    },
    Sample {
        client: ClientId,
        kind: PolicyKind,
        slot: u64,
        input: Box<dyn FnOnce() -> Value + Send>,
    },
}

/// What a shadow run came to.
enum Compared {
    Same,
    /// Another answer; what was asked, where that names nobody, and both answers.
    Different(Value),
    /// No usable answer; the same, with the failure.
    Failed(Value),
    /// It did not run.
    Skipped,
}

impl ShadowQueue {
    /// Takes a job if there is room.
    fn push(&self, job: Job) -> bool {
        // A list of whole jobs: a panic elsewhere cannot have left it half written.
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = jobs.len() < JOBS_MAX;
        if room {
            jobs.push(job);
        }
        room
    }

    fn take(&self) -> Vec<Job> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Lets the version on trial answer the question too, later; `active` is what the active version
/// answered, if it did.
pub(super) fn shadow<Q: Ask>(
    core: &Core,
    client: &Client,
    trial: &Arc<Rollout>,
    question: Q,
    active: Option<Q::Answer>,
) {
    let context = CallContext { rehearsal: true, ..context(core, client) };
    let keys = client.tenant.policies.verification_keys.clone();
    let candidate = Arc::clone(&trial.policy);
    let run = move || {
        let Some(policy) = candidate.policy() else { return Compared::Skipped };
        let told = Told { context: &context, config: &candidate.config, keys: &keys };
        match question.ask(CallClass::Background, policy, told) {
            Some(called) => compare(&question, active.as_ref(), called),
            None => Compared::Skipped,
        }
    };
    let job = Job::Shadow { client: client.id(), trial: Arc::clone(trial), run: Box::new(run) };
    if !core.policy_shadows.push(job) {
        trial.skipped.fetch_add(1, Ordering::Relaxed);
    }
}

fn compare<Q: Ask>(
    question: &Q,
    active: Option<&Q::Answer>,
    candidate: CallReport<Q::Answer>,
) -> Compared {
    let difference = |answer: Value| {
        json!({
            "input": question.as_json(),
            "active": active.map(Q::answer_as_json),
            "candidate": answer,
        })
    };
    match candidate.outcome {
        Ok(answer) if active == Some(&answer) => Compared::Same,
        Ok(answer) => Compared::Different(difference(Q::answer_as_json(&answer))),
        Err(failure) if failure.kind == FailureKind::Capacity => Compared::Skipped,
        Err(failure) => Compared::Failed(difference(json!({
            "failure": {"cause": failure.kind.as_str(), "message": scrubbed(&failure.message)},
        }))),
    }
}

/// Keeps a question to `active` once in [`SAMPLE_PAUSE_MS`].
pub(super) fn sample<Q: Ask>(core: &Core, client: &Client, active: &ActivePolicy, question: Q) {
    if let Some(slot) = active.samples.slot(core.clock.monotonic_ns() / NS_PER_MS) {
        let input = Box::new(move || question.as_json());
        core.policy_shadows.push(Job::Sample { client: client.id(), kind: Q::KIND, slot, input });
    }
}

/// What one turn adds to a trial.
#[derive(Default)]
struct Tally {
    same: i64,
    different: i64,
    failed: i64,
    skipped: i64,
    /// By slot.
    differences: HashMap<i16, Value>,
}

impl Tally {
    fn add(&mut self, trial: &Rollout, compared: Compared) {
        let detail = match compared {
            Compared::Same => {
                self.same += 1;
                return;
            }
            Compared::Skipped => {
                self.skipped += 1;
                return;
            }
            Compared::Different(detail) => {
                self.different += 1;
                detail
            }
            Compared::Failed(detail) => {
                self.failed += 1;
                detail
            }
        };
        let slot = trial.differences.fetch_add(1, Ordering::Relaxed) % DIFFERENCES_MAX;
        self.differences.insert(i16::try_from(slot).unwrap_or(0), detail);
    }
}

/// What one turn has to write.
#[derive(Default)]
struct Done {
    tallies: HashMap<Uuid, (ClientId, Arc<Rollout>, Tally)>,
    samples: Vec<(ClientId, PolicyKind, i16, Value)>,
}

impl Core {
    /// Runs what was set aside, one job after the other, and writes what came of it: a turn of a
    /// worker.
    ///
    /// # Errors
    /// When the database cannot be written; the counts of this turn are lost then.
    pub async fn run_policy_shadows(&self) -> Result<()> {
        let jobs = self.policy_shadows.take();
        if jobs.is_empty() {
            return Ok(());
        }
        let done = tokio::task::spawn_blocking(move || run(jobs))
            .await
            .map_err(|error| Error::internal("run what was set aside", error))?;
        for (client, trial, tally) in done.tallies.into_values() {
            self.write_tally(client, &trial, tally).await?;
        }
        for (client, kind, slot, input) in done.samples {
            sqlx::query!(
                "insert into policy_sample (client_id, kind, slot, input, at) \
                 values ($1, $2, $3, $4, $5) on conflict (client_id, kind, slot) do update \
                 set input = excluded.input, at = excluded.at",
                client.uuid(),
                kind.as_str(),
                slot,
                input,
                self.clock.now(),
            )
            .execute(&self.db)
            .await?;
        }
        Ok(())
    }

    /// Adds to the trial, unless it has ended.
    async fn write_tally(&self, client: ClientId, trial: &Rollout, tally: Tally) -> Result<()> {
        self.count_shadow(client, trial, &tally);
        let Tally { same, different, failed, skipped, differences } = tally;
        let written = sqlx::query!(
            "update policy_trial set calls = calls + $4, same = same + $5, \
                 different = different + $6, failed = failed + $7, skipped = skipped + $8 \
             where client_id = $1 and kind = $2 and trial_id = $3",
            client.uuid(),
            trial.policy.kind.as_str(),
            trial.id,
            same + different + failed + skipped,
            same,
            different,
            failed,
            skipped,
        )
        .execute(&self.db)
        .await?;
        if written.rows_affected() == 0 {
            return Ok(());
        }
        for (slot, detail) in differences {
            sqlx::query!(
                "insert into policy_difference (client_id, trial_id, slot, detail, at) \
                 select $1, trial_id, $3, $4, $5 from policy_trial \
                 where client_id = $1 and trial_id = $2 for share \
                 on conflict (client_id, trial_id, slot) do update \
                 set detail = excluded.detail, at = excluded.at",
                client.uuid(),
                trial.id,
                slot,
                detail,
                self.clock.now(),
            )
            .execute(&self.db)
            .await?;
        }
        Ok(())
    }

    fn count_shadow(&self, client: ClientId, trial: &Rollout, tally: &Tally) {
        let snapshot = self.snapshots.current();
        let Some(tenant) = snapshot.tenants.get(&client) else { return };
        let kind = trial.policy.kind.as_str();
        for (outcome, runs) in [
            ("same", tally.same),
            ("different", tally.different),
            ("failed", tally.failed),
            ("skipped", tally.skipped),
        ] {
            let counter =
                self.metrics.policy_shadow.with_label_values(&[kind, &*tenant.slug, outcome]);
            counter.inc_by(runs.unsigned_abs());
        }
    }
}

fn run(jobs: Vec<Job>) -> Done {
    let mut done = Done::default();
    for job in jobs {
        match job {
            Job::Shadow { client, trial, run } => {
                let entry = done.tallies.entry(trial.id);
                let compared = run();
                let (_, trial, tally) = entry.or_insert_with(|| (client, trial, Tally::default()));
                tally.add(trial, compared);
            }
            Job::Sample { client, kind, slot, input } => {
                let slot = i16::try_from(slot).unwrap_or(0);
                done.samples.push((client, kind, slot, input()));
            }
        }
    }
    for (_, trial, tally) in done.tallies.values_mut() {
        let skipped = trial.skipped.swap(0, Ordering::Relaxed);
        tally.skipped = tally.skipped.saturating_add_unsigned(skipped);
    }
    done
}

impl fmt::Debug for ShadowQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShadowQueue(…)")
    }
}
