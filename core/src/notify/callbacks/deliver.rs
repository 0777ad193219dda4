//! The delivery worker: claims due deliveries, attempts them, and records the results. The three
//! overlap, so that attempts wait neither for the database nor for its disk, and one statement claims
//! or records many.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::lane::{Lane, LaneQueue};
use super::outbound::{Failure, LANE_IN_FLIGHT_MAX, Outcome};
use super::queue::{ClaimLimits, ClaimedDelivery, ClientPlaces, claim};
use super::record::{Attempt, AttemptResult, record, release};
use super::target::{Reach, for_partner, validate};
use super::{Message, WORKER};
use crate::Core;
use crate::notify::webhooks::secrets;
use crate::platform::crypto::Secret;
use crate::platform::error::Result;
use crate::platform::telemetry::{Span, SpanKind, TraceContext};
use crate::tenancy::tenants::Tenant;
use rampart_types::{ClientId, LoopbackHttp};

/// Polling interval of the queue; a first attempt must start within 1 s of its event.
const POLL: Duration = Duration::from_millis(250);
/// Most deliveries that one edge holds: in flight, prefetched for fast hosts, or waiting to be
/// recorded.
const CLAIMED_MAX: usize = 512;
/// Most deliveries of one client that it holds, besides those prefetched for fast hosts: however many
/// endpoints a client has, they cannot occupy the edge.
const CLIENT_CLAIMED_MAX: usize = 64;
/// Most results recorded in one statement.
const RECORD_BATCH_MAX: usize = 256;
/// Most concurrent statements that record results: while one waits for the disk, the next batch is
/// collected.
const RECORDING_MAX: usize = 2;
/// Time that a stopping edge waits for attempts in flight. An aborted one is repeated when its lease
/// expires.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

impl Core {
    /// One run of the worker: attempts due deliveries, within the limit of each lane, and waits for
    /// all of them. Returns the number of attempts.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn deliver_due(self: &Arc<Self>) -> Result<usize> {
        let mut dispatcher = Dispatcher::new(Arc::clone(self));
        let limits = dispatcher.claim_limits();
        let claimed = claim(self, &limits).await?;
        let count = claimed.len();
        dispatcher.accept(claimed, &limits);
        while dispatcher.step().await {}
        Ok(count)
    }

    /// Delivers until `stop` is true.
    pub async fn deliver(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut dispatcher = Dispatcher::new(self);
        dispatcher.beat();
        let mut ticks = interval(POLL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let claim_now = tokio::select! {
                _ = ticks.tick() => true,
                true = dispatcher.step() => dispatcher.needs_claim,
                _ = stop.wait_for(|stop| *stop) => break,
            };
            if claim_now {
                dispatcher.start_claim();
            }
        }
        dispatcher.stop();
        let _ = timeout(STOP_TIMEOUT, async { while dispatcher.step().await {} }).await;
    }
}

/// The deliveries that one edge holds.
struct Dispatcher {
    core: Arc<Core>,
    queues: HashMap<Lane, LaneQueue>,
    running: JoinSet<Option<FinishedAttempt>>,
    /// Lane and order of each task, so that a panicking one is removed from its queue too.
    owners: HashMap<Id, (Lane, Option<i64>)>,
    /// Results that are not being recorded yet.
    results: Vec<AttemptResult>,
    /// Claimed, and not to be attempted here.
    unattempted: Vec<ClaimedDelivery>,
    recording: JoinSet<()>,
    /// The claim in progress; one at most.
    claiming: JoinSet<(Result<Vec<ClaimedDelivery>>, ClaimLimits)>,
    /// True if the database may hold more for a lane with free capacity.
    needs_claim: bool,
    /// True if the last claim reached the total limit.
    is_limited: bool,
    /// Clients whose limit the last claim reached.
    limited_clients: HashSet<ClientId>,
    /// True once no attempt begins any more.
    is_stopping: bool,
}

/// A finished attempt.
struct FinishedAttempt {
    outcome: Outcome,
    took: Duration,
    /// `None` on an internal error; the lease then expires.
    result: Option<AttemptResult>,
}

impl Dispatcher {
    fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            queues: HashMap::new(),
            running: JoinSet::new(),
            owners: HashMap::new(),
            results: Vec::new(),
            unattempted: Vec::new(),
            recording: JoinSet::new(),
            claiming: JoinSet::new(),
            needs_claim: false,
            is_limited: false,
            limited_clients: HashSet::new(),
            is_stopping: false,
        }
    }

    /// Leaves what is not in flight to other edges.
    fn stop(&mut self) {
        self.is_stopping = true;
        let prefetched = self.queues.values_mut().flat_map(LaneQueue::take_prefetched);
        self.unattempted.extend(prefetched);
        self.record_results();
    }

    /// The current limits of a claim.
    fn claim_limits(&mut self) -> ClaimLimits {
        let prefetched: usize = self.queues.values().map(LaneQueue::prefetched).sum();
        let held = prefetched + self.running.len() + self.results.len();
        let mut clients: HashMap<ClientId, ClientPlaces> = HashMap::new();
        for (lane, queue) in &self.queues {
            let unused = ClientPlaces { held: 0, most: CLIENT_CLAIMED_MAX };
            let places = clients.entry(lane.client).or_insert(unused);
            places.held += queue.held();
            places.most += queue.prefetch_limit();
        }
        ClaimLimits {
            total: CLAIMED_MAX.saturating_sub(held),
            per_client: CLIENT_CLAIMED_MAX,
            clients,
            per_lane: LANE_IN_FLIGHT_MAX,
            lanes: self
                .queues
                .iter_mut()
                .map(|(lane, queue)| (*lane, queue.claim_capacity()))
                .collect(),
        }
    }

    /// Starts a claim, unless one is in progress or the total limit is reached.
    fn start_claim(&mut self) {
        if !self.claiming.is_empty() {
            return;
        }
        self.needs_claim = false;
        let limits = self.claim_limits();
        self.is_limited = limits.total == 0;
        if self.is_limited {
            // There is nothing that a claim could do.
            self.beat();
            return;
        }
        let core = Arc::clone(&self.core);
        self.claiming.spawn(async move { (claim(&core, &limits).await, limits) });
    }

    /// Beats for a claim that has succeeded, or for none that is needed.
    fn beat(&self) {
        let Core { heartbeats, clock, .. } = &*self.core;
        heartbeats.beat(WORKER, POLL, clock.monotonic_ns());
    }

    /// Counts the outcome of a claim.
    fn count(&self, outcome: &'static str) {
        self.core.metrics.worker_runs.with_label_values(&[WORKER, outcome]).inc();
    }

    /// Waits for one task to finish and handles its result; false when no task is running. Cancel
    /// safe.
    async fn step(&mut self) -> bool {
        tokio::select! {
            Some(finished) = self.running.join_next_with_id() => match finished {
                Ok((task, attempt)) => self.finish(task, attempt),
                Err(error) => {
                    // Its lease expires, and the attempt is then repeated.
                    tracing::error!(%error, "a delivery attempt panicked");
                    self.finish(error.id(), None);
                }
            },
            Some(claim) = self.claiming.join_next() => match claim {
                Ok((Ok(claimed), limits)) => {
                    self.beat();
                    self.count("ok");
                    self.accept(claimed, &limits);
                }
                Ok((Err(error), _)) => {
                    self.count("failed");
                    tracing::warn!(%error, "the delivery queue could not be read");
                    self.remove_idle();
                }
                Err(error) => {
                    self.count("failed");
                    tracing::error!(%error, "a claim of deliveries panicked");
                }
            },
            Some(_) = self.recording.join_next() => {}
            else => return false,
        }
        self.record_results();
        true
    }

    /// Queues claimed deliveries and starts attempts within the limits.
    fn accept(&mut self, claimed: Vec<ClaimedDelivery>, limits: &ClaimLimits) {
        if self.is_stopping {
            self.unattempted.extend(claimed);
            return;
        }
        self.is_limited = claimed.len() >= limits.total;
        self.limited_clients = limits.exhausted(&claimed);
        let lanes: Vec<Lane> = claimed.iter().map(|claimed| claimed.lane).collect();
        for claimed in claimed {
            self.queues.entry(claimed.lane).or_default().push(claimed);
        }
        for lane in lanes {
            self.start(lane);
        }
        self.remove_idle();
    }

    /// Removes the queues that nothing is in after a claim. A fast host often answers all before the
    /// next claim does: until then its queue stays, and with it how much is claimed in advance.
    fn remove_idle(&mut self) {
        let now = self.core.clock.now();
        self.queues.retain(|_, queue| !queue.is_idle(now));
    }

    /// Starts attempts up to the lane's concurrency limit.
    fn start(&mut self, lane: Lane) {
        let Some(queue) = self.queues.get_mut(&lane) else { return };
        while let Some(claimed) = queue.start(self.core.clock.now()) {
            let (core, order) = (Arc::clone(&self.core), claimed.order);
            let task = self.running.spawn(async move { attempt(&core, &claimed).await });
            self.owners.insert(task.id(), (lane, order));
        }
    }

    fn finish(&mut self, task: Id, attempt: Option<FinishedAttempt>) {
        let outcome = attempt.as_ref().map(|attempt| (attempt.outcome, attempt.took));
        self.results.extend(attempt.and_then(|attempt| attempt.result));
        let Some((lane, order)) = self.owners.remove(&task) else { return };
        let Some(queue) = self.queues.get_mut(&lane) else { return };
        self.unattempted.extend(queue.finish(order, outcome, self.core.clock.now()));
        let is_limited = self.is_limited || self.limited_clients.contains(&lane.client);
        self.needs_claim |= queue.is_low() && (queue.may_have_more() || is_limited);
        self.start(lane);
    }

    /// Records finished results, up to [`RECORDING_MAX`] batches at a time, and releases what is not
    /// attempted.
    fn record_results(&mut self) {
        if !self.unattempted.is_empty() {
            let (core, unattempted) = (Arc::clone(&self.core), mem::take(&mut self.unattempted));
            self.recording.spawn(async move {
                if let Err(error) = release(&core, unattempted).await {
                    tracing::warn!(%error, "leases of deliveries could not be released");
                }
            });
        }
        while !self.results.is_empty() && self.recording.len() < RECORDING_MAX {
            let count = self.results.len().min(RECORD_BATCH_MAX);
            let batch: Vec<AttemptResult> = self.results.drain(..count).collect();
            let core = Arc::clone(&self.core);
            self.recording.spawn(async move {
                if let Err(error) = record(&core, batch).await {
                    tracing::warn!(%error, count, "attempts could not be written");
                }
            });
        }
    }
}

/// Performs one attempt; `None` if its tenant cannot be read: the lease then expires, and none counts.
async fn attempt(core: &Core, claimed: &ClaimedDelivery) -> Option<FinishedAttempt> {
    let lag = core.clock.now() - claimed.due_at;
    let tenant = tenant(core, claimed).await.inspect_err(|error| {
        tracing::warn!(%error, delivery = %claimed.delivery, "a delivery waits for its tenant");
    });
    let tenant = tenant.ok()?;
    let began = core.clock.monotonic_ns();
    let name = format!("deliver {}", claimed.kind);
    let mut span = core.telemetry.resume(claimed.trace.context(), SpanKind::Client, name);
    let scope = span.as_ref().map(Span::scope).unwrap_or_default();
    let sending = send(core, claimed, tenant, span.as_ref().map(Span::context));
    let sent = scope.run(sending).await.unwrap_or_else(|error| {
        tracing::error!(%error, delivery = %claimed.delivery, "a callback was not sent");
        Attempt::unsent(Outcome::Failed(Failure::Unsigned))
    });
    let outcome = sent.outcome;
    let took = Duration::from_nanos(core.clock.monotonic_ns().saturating_sub(began));
    if let Some(span) = &mut span {
        describe(span, claimed, outcome);
    }
    drop(span);
    let first = (claimed.attempts == 0).then(|| lag.to_std().unwrap_or_default());
    core.metrics.callback(outcome.name(), first);
    let result = AttemptResult::new(core, claimed, sent, took)
        .inspect_err(|error| tracing::warn!(%error, "an attempt could not be written"));
    Some(FinishedAttempt { outcome, took, result: result.ok() })
}

/// Tells of an attempt in its span.
fn describe(span: &mut Span, claimed: &ClaimedDelivery, outcome: Outcome) {
    span.set("rampart.event_id", &claimed.event.to_string());
    span.set("rampart.delivery_id", &claimed.delivery.to_string());
    span.set_number("rampart.attempt", claimed.attempts.saturating_add(1));
    if let Some(status) = outcome.status() {
        span.set_number("http.response.status_code", status.as_u16());
    }
    if matches!(outcome, Outcome::Failed(_)) {
        span.fail(outcome.name());
    }
}

async fn send(
    core: &Core,
    claimed: &ClaimedDelivery,
    tenant: Option<Arc<Tenant>>,
    trace: Option<&TraceContext>,
) -> Result<Attempt> {
    if !claimed.wanted {
        return Ok(Attempt::unsent(Outcome::Cancelled));
    }
    let Some(tenant) = tenant else {
        return Ok(Attempt::unsent(Outcome::Failed(Failure::Unsigned)));
    };
    let reach = match tenant.loopback_http {
        LoopbackHttp::Allowed => Reach::PublicOrLoopback,
        LoopbackHttp::Refused => Reach::Public,
    };
    let Ok(url) = validate(&claimed.url, reach) else {
        return Ok(Attempt::unsent(Outcome::Failed(Failure::Forbidden)));
    };
    let now = core.clock.now();
    let message =
        Message::new(claimed.event, &claimed.kind, claimed.happened_at, &claimed.data, now)?;
    let secrets = live_secrets(core, claimed, &tenant, now)?;
    let Some(signatures) = message.signatures(&secrets)? else {
        return Ok(Attempt::unsent(Outcome::Failed(Failure::Unsigned)));
    };
    let headers = trace.map(TraceContext::header_map).unwrap_or_default();
    let posting = core.outbound.post(url, reach, message, &signatures, headers, now);
    let (outcome, answer) = for_partner(claimed.lane.client, posting).await;
    Ok(Attempt { outcome, sent_at: Some(now), answer })
}

/// The secrets that sign a delivery: its endpoint's own, and the client's while those are in use.
fn live_secrets(
    core: &Core,
    claimed: &ClaimedDelivery,
    tenant: &Tenant,
    now: DateTime<Utc>,
) -> Result<Vec<Secret>> {
    let own = claimed.own_secrets.iter();
    let own = own.map(|(id, sealed)| secrets::open(core, claimed.lane.client, *id, sealed));
    let mut live = own.collect::<Result<Vec<_>>>()?;
    if claimed.by_client_secrets {
        let of_client = tenant.webhook_secrets.iter().filter(|secret| secret.is_live(now));
        live.extend(of_client.map(|timed| timed.secret.clone()));
    }
    Ok(live)
}

/// The tenant as it was when the delivery was claimed, or later: what is newer than the snapshot is
/// loaded from the database, so that a rotated secret signs at once.
async fn tenant(core: &Core, claimed: &ClaimedDelivery) -> Result<Option<Arc<Tenant>>> {
    let is_behind = || core.snapshots.current().clients_revision() < claimed.client_revision;
    if claimed.wanted && is_behind() {
        // Tenants are published although the market cannot be read.
        core.refresh().await.or_else(|error| if is_behind() { Err(error) } else { Ok(()) })?;
    }
    Ok(core.snapshots.current().tenants.get(&claimed.lane.client).map(Arc::clone))
}
