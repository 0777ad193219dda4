//! Shadow runs, request samples and log lines, off the request path: jobs go to a bounded queue, which a
//! worker drains at each run.

mod logged_call;
mod queue;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::StreamExt as _;
use rampart_plugins::contract::{CallContext, PolicyKind};
use rampart_plugins::{CallClass, CallReport, FailureKind, Policy};
use serde_json::{Value, json};
use uuid::Uuid;

use self::logged_call::LoggedCall;
pub(super) use self::logged_call::queue_log;
pub use self::queue::ShadowQueue;
use super::evaluate::context::Attributes;
use super::evaluate::redaction::{redacted, redacted_comparison};
use super::kinds::{CallInputs, PolicyRequest, reported_input};
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::clock::Clock;
use crate::platform::error::{Error, Result};
use crate::policies::runtime::{ActivePolicy, FuelBudget, Rollout, SAMPLES_MAX, Slot};
use rampart_types::ClientId;

/// The worker in metrics and logs.
const SWEEP: &str = "policy shadows";
/// Differences stored of a rollout: the newest.
const DIFFERENCES_MAX: u8 = 20;
/// Most tries to take a slot: each that fails is one that another edge has taken in the same instant.
const SLOT_TRIES_MAX: usize = 8;
/// Most components of rollouts that are loaded ahead of their runs.
const LOADS_MAX: usize = 4;

enum Job {
    Shadow {
        client: ClientId,
        rollout: Arc<Rollout>,
        run: Box<dyn FnOnce(&Policy) -> ShadowRun + Send>,
    },
    Sample {
        client: ClientId,
        kind: PolicyKind,
        input: Box<dyn FnOnce() -> Value + Send>,
    },
    Log(LoggedCall),
}

/// A shadow run that was made.
struct ShadowRun {
    comparison: Comparison,
    /// Fuel that it burnt.
    fuel: u64,
}

/// Result of a shadow run.
enum Comparison {
    Same,
    /// The outputs differ: request, if without personal data, and both outputs.
    Different(Value),
    /// The shadow failed: the same, with the failure as its output.
    Failed(Value),
    /// It did not run.
    Skipped,
}

/// Queues a shadow run of the request in the context of the active version's call; `active` is its
/// output, if any.
pub(super) fn queue_run<R: PolicyRequest>(
    core: &Core,
    client: &Client,
    rollout: &Arc<Rollout>,
    request: R,
    context: CallContext,
    attributes: &Attributes,
    active: Option<R::Output>,
) {
    let attributes = attributes.clone();
    let keys = client.tenant.policies.verification_keys.clone();
    let candidate = Arc::clone(&rollout.policy);
    let run = move |policy: &Policy| {
        let inputs = CallInputs { context: &context, config: &candidate.config, keys: &keys };
        match request.call(CallClass::Background, policy, inputs) {
            Some(report) => {
                let fuel = report.fuel;
                let comparison = compare(&request, &attributes, active.as_ref(), report);
                ShadowRun { comparison, fuel }
            }
            None => ShadowRun { comparison: Comparison::Skipped, fuel: 0 },
        }
    };
    let job = Job::Shadow { client: client.id(), rollout: Arc::clone(rollout), run: Box::new(run) };
    if !core.policy_shadows.push(client.id(), job) {
        rollout.skipped.fetch_add(1, Ordering::Relaxed);
    }
}

fn compare<R: PolicyRequest>(
    request: &R,
    attributes: &Attributes,
    active: Option<&R::Output>,
    candidate: CallReport<R::Output>,
) -> Comparison {
    let difference = |output: Value| {
        redacted_comparison(json!({
            "input": reported_input(request, attributes),
            "active": active.map(R::output_as_json),
            "candidate": output,
        }))
    };
    match candidate.outcome {
        Ok(output) if active == Some(&output) => Comparison::Same,
        Ok(output) => Comparison::Different(difference(R::output_as_json(&output))),
        Err(failure) if failure.kind == FailureKind::Capacity => Comparison::Skipped,
        Err(failure) => Comparison::Failed(difference(json!({
            "failure": {"cause": failure.kind.as_str(), "message": redacted(&failure.message)},
        }))),
    }
}

/// Stores the request as a sample, at the rate of the policy's throttle.
pub(super) fn queue_sample<R: PolicyRequest>(
    core: &Core,
    client: &Client,
    active: &ActivePolicy,
    request: R,
    attributes: &Attributes,
) {
    if active.sample_throttle.allows(core.clock.monotonic_ms()) {
        let attributes = attributes.clone();
        let input = Box::new(move || reported_input(&request, &attributes));
        let client = client.id();
        core.policy_shadows.push(client, Job::Sample { client, kind: R::KIND, input });
    }
}

/// Counts of one worker run for a rollout.
#[derive(Default)]
struct Tally {
    same: i64,
    different: i64,
    failed: i64,
    skipped: i64,
    /// The newest.
    differences: VecDeque<Value>,
}

impl Tally {
    fn add(&mut self, comparison: Comparison) {
        let detail = match comparison {
            Comparison::Same => {
                self.same += 1;
                return;
            }
            Comparison::Skipped => {
                self.skipped += 1;
                return;
            }
            Comparison::Different(detail) => {
                self.different += 1;
                detail
            }
            Comparison::Failed(detail) => {
                self.failed += 1;
                detail
            }
        };
        if self.differences.len() >= usize::from(DIFFERENCES_MAX) {
            self.differences.pop_front();
        }
        self.differences.push_back(detail);
    }
}

/// Results of one worker run.
#[derive(Default)]
struct Results {
    tallies: HashMap<Uuid, (ClientId, Arc<Rollout>, Tally)>,
    samples: Vec<(ClientId, PolicyKind, Value)>,
    logs: Vec<LoggedCall>,
}

impl Core {
    /// Runs the queued jobs one after the other and stores their results. Shadows are loaded here, so
    /// that no request waits for the code of one.
    ///
    /// # Errors
    /// When the database cannot be written; the counts of this run are then lost.
    pub async fn run_policy_shadows(&self) -> Result<()> {
        let jobs = self.policy_shadows.drain();
        if jobs.is_empty() {
            return Ok(());
        }
        let now_ms = self.clock.monotonic_ms();
        let (rollouts, others) = by_rollout(jobs);
        // The code stays with its runs: over the bound of memory, that of another drops the slot's.
        let loads = rollouts.into_values().map(|(slot, jobs)| async move {
            (self.policies.ready(&slot, now_ms, &self.db).await, jobs)
        });
        let mut loaded = futures::stream::iter(loads).buffer_unordered(LOADS_MAX);
        self.run_shadow_jobs(None, others).await?;
        while let Some((code, jobs)) = loaded.next().await {
            self.run_shadow_jobs(code, jobs).await?;
        }
        Ok(())
    }

    /// Runs jobs off the serving threads, the shadow runs among them with this code, and stores their
    /// results.
    async fn run_shadow_jobs(&self, code: Option<Policy>, jobs: Vec<Job>) -> Result<()> {
        let (clock, fuel_max) = (self.clock.clone(), self.settings.policy.fuel_per_second_max);
        let work = move || run(code.as_ref(), jobs, &clock, fuel_max);
        let results = tokio::task::spawn_blocking(work).await;
        let results = results.map_err(|error| Error::internal("run shadow jobs", error))?;
        for (client, rollout, tally) in results.tallies.into_values() {
            if let Err(error) = self.write_tally(client, &rollout, tally).await {
                self.metrics.row_failed(SWEEP, client.uuid(), &rollout.id, error)?;
            }
        }
        for (client, kind, input) in results.samples {
            if let Err(error) = self.write_sample(client, kind, input).await {
                self.metrics.row_failed(SWEEP, client.uuid(), &"sample", error)?;
            }
        }
        for logged in results.logs {
            let client = logged.client.uuid();
            if let Err(error) = self.write_log(logged).await {
                self.metrics.row_failed(SWEEP, client, &"log", error)?;
            }
        }
        Ok(())
    }

    /// Stores a sample in a free slot, or in place of the oldest, unless another edge has just taken it:
    /// then in the next one.
    async fn write_sample(&self, client: ClientId, kind: PolicyKind, input: Value) -> Result<()> {
        for _ in 0..SLOT_TRIES_MAX {
            let written = sqlx::query!(
                "insert into policy_sample (client_id, kind, slot, input, at) \
                 select $1, $2, n::smallint, $3, $4 from generate_series(0, $5::int - 1) n \
                     left join policy_sample s on s.client_id = $1 and s.kind = $2 and s.slot = n \
                 order by s.at nulls first, n limit 1 \
                 on conflict (client_id, kind, slot) do update \
                 set input = excluded.input, at = excluded.at \
                 where policy_sample.at = (select seen.at from policy_sample seen \
                     where seen.client_id = excluded.client_id and seen.kind = excluded.kind \
                         and seen.slot = excluded.slot)",
                client.uuid(),
                kind.as_str(),
                input,
                self.clock.now(),
                SAMPLES_MAX,
            )
            .execute(&self.db)
            .await?;
            if written.rows_affected() > 0 {
                return Ok(());
            }
        }
        Err(Error::unavailable("find a slot for a sample"))
    }

    /// Adds the counts to the rollout, unless it has ended, and stores each difference in a free slot, or
    /// in place of the oldest.
    async fn write_tally(&self, client: ClientId, rollout: &Rollout, tally: Tally) -> Result<()> {
        self.count_shadow(client, rollout, &tally);
        let Tally { same, different, failed, skipped, differences } = tally;
        let mut tx = self.db.begin().await?;
        // Edges take turns from here on, so that each finds the differences of the others.
        let updated = sqlx::query!(
            "update policy_trial set calls = calls + $4, same = same + $5, \
                 different = different + $6, failed = failed + $7, skipped = skipped + $8 \
             where client_id = $1 and kind = $2 and trial_id = $3",
            client.uuid(),
            rollout.policy.kind.as_str(),
            rollout.id,
            same + different + failed + skipped,
            same,
            different,
            failed,
            skipped,
        )
        .execute(&mut *tx)
        .await?;
        if updated.rows_affected() == 0 {
            return Ok(());
        }
        for detail in differences {
            sqlx::query!(
                "insert into policy_difference (client_id, trial_id, slot, detail, at) \
                 select $1, $2, n::smallint, $3, $4 from generate_series(0, $5::int - 1) n \
                     left join policy_difference d \
                         on d.client_id = $1 and d.trial_id = $2 and d.slot = n \
                 order by d.at nulls first, n limit 1 \
                 on conflict (client_id, trial_id, slot) do update \
                 set detail = excluded.detail, at = excluded.at",
                client.uuid(),
                rollout.id,
                detail,
                self.clock.now(),
                i32::from(DIFFERENCES_MAX),
            )
            .execute(&mut *tx)
            .await?;
        }
        tx.commit().await?;
        Ok(())
    }

    fn count_shadow(&self, client: ClientId, rollout: &Rollout, tally: &Tally) {
        let snapshot = self.snapshots.current();
        let Some(tenant) = snapshot.tenants.get(&client) else { return };
        let kind = rollout.policy.kind.as_str();
        for (outcome, runs) in [
            ("same", tally.same),
            ("different", tally.different),
            ("failed", tally.failed),
            ("skipped", tally.skipped),
        ] {
            let runs = runs.unsigned_abs();
            self.metrics.policy_shadow_runs(kind, &tenant.slug, outcome, runs);
        }
    }
}

/// The shadow runs of a rollout, and the component that they call.
type RolloutJobs = (Arc<Slot>, Vec<Job>);

/// The shadow runs among the jobs by rollout, and the other jobs.
fn by_rollout(jobs: Vec<Job>) -> (HashMap<Uuid, RolloutJobs>, Vec<Job>) {
    let (mut rollouts, mut others) = (HashMap::<Uuid, RolloutJobs>::new(), Vec::new());
    for job in jobs {
        let Job::Shadow { rollout, .. } = &job else {
            others.push(job);
            continue;
        };
        let (id, slot) = (rollout.id, Arc::clone(&rollout.policy.slot));
        rollouts.entry(id).or_insert_with(|| (slot, Vec::new())).1.push(job);
    }
    (rollouts, others)
}

/// Runs jobs; without the code, shadow runs are skipped, and so are those of a rollout that has burnt
/// `fuel_max` in this second: a version that is dear takes no processor from others.
fn run(code: Option<&Policy>, jobs: Vec<Job>, clock: &Clock, fuel_max: u64) -> Results {
    let mut results = Results::default();
    for job in jobs {
        match job {
            Job::Shadow { client, rollout, run } => {
                let entry = results.tallies.entry(rollout.id);
                let now_ms = clock.monotonic_ms();
                let comparison = match code.filter(|_| rollout.fuel.allows(now_ms, fuel_max)) {
                    Some(code) => run_metered(&rollout.fuel, || run(code)),
                    None => Comparison::Skipped,
                };
                let (_, _, tally) = entry.or_insert_with(|| (client, rollout, Tally::default()));
                tally.add(comparison);
            }
            Job::Sample { client, kind, input } => {
                results.samples.push((client, kind, input()));
            }
            Job::Log(logged) => results.logs.push(logged),
        }
    }
    for (_, rollout, tally) in results.tallies.values_mut() {
        let skipped = rollout.skipped.swap(0, Ordering::Relaxed);
        tally.skipped = tally.skipped.saturating_add_unsigned(skipped);
    }
    results
}

/// Makes a shadow run, and counts what it burns.
fn run_metered(budget: &FuelBudget, run: impl FnOnce() -> ShadowRun) -> Comparison {
    let began_ns = Clock::thread_ns();
    let ShadowRun { comparison, fuel } = run();
    budget.burn(fuel, Clock::thread_ns().saturating_sub(began_ns));
    comparison
}
