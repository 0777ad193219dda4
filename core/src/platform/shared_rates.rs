//! Rate limits that edges share through Redis or Valkey (`ratelimit.redis_url`). A request is decided at
//! once, by this edge's view of the bucket; what it took is sent within milliseconds, many buckets in
//! one batch, and the answer brings the view up to date with what other edges took. However hot a
//! bucket, it costs no round trip a request, and no request ever waits for the server.
//!
//! Between two exchanges edges may admit together what none would alone: at most what each takes within
//! a few milliseconds. That stays in the bucket as a debt which later requests wait for, so over a
//! second the rate is exact; near the end of a bucket exchanges follow each other at once, so that
//! the debt is small. Without a server each edge counts alone, with what it knew, and grants its part
//! of each rate: the rate divided by the edges that lived when the server was last there. When it comes
//! back, or has lost a bucket, an edge that knows of more tells it.

mod pace;
mod server;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus::{Histogram, IntCounterVec, IntGauge, IntGaugeVec};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use self::pace::Pace;
use self::server::{Connection, DIGEST_BYTES, Failure, GONE, Portion, REPLY_TIMEOUT, Server};
use crate::platform::clock::Clock;
use crate::platform::crypto::sha256;
use crate::platform::metrics::Metrics;
use crate::platform::rate_limit::{Decision, Gcra, Quota};
use crate::platform::settings::RateLimits;

/// Part of what is left in a bucket from which what was taken is urgent: an eighth.
const URGENT_PART: u64 = 8;
/// Longest time without an exchange, so that a server that is gone is noticed.
const IDLE_MAX: Duration = Duration::from_secs(1);
/// Time between two announcements of this edge.
const ANNOUNCE_PAUSE: Duration = Duration::from_secs(1);
/// Time between two attempts to connect.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Most buckets of one exchange; there is one at a time.
const BATCH_MAX: usize = 256;
/// Most buckets that wait for an exchange; another one waits for its next request.
const QUEUE_MAX: usize = 16_384;
/// Longest time that a bucket in debt refuses longer than an empty one.
const DEBT_MAX: Duration = Duration::from_secs(1);
/// Longest time that a bucket may want until it is full, in microseconds: the script's numbers are exact
/// below 2^53.
const BACKLOG_US_MAX: u64 = 1 << 51;
const NS_PER_US: u64 = 1_000;

/// A bucket of all edges, as this one knows it.
#[derive(Debug)]
pub struct SharedGcra {
    digest: [u8; DIGEST_BYTES],
    /// The view of this edge: what all have taken as of the last exchange, and what it took since.
    gcra: Gcra,
    /// Time of the quota that requests took here and the server has not been told.
    unsent_ns: AtomicU64,
    /// Time at which the bucket is known to be full again although the server says earlier; 0 if none.
    least_full_at_ns: AtomicU64,
    /// Of the quota that was applied last.
    interval_ns: AtomicU64,
    tolerance_ns: AtomicU64,
    is_queued: AtomicBool,
}

impl SharedGcra {
    /// A full bucket. One name is one bucket on all edges; the server sees its digest.
    pub fn new(name: &str) -> Self {
        let mut digest = [0; DIGEST_BYTES];
        digest.copy_from_slice(&sha256(name)[..DIGEST_BYTES]);
        Self {
            digest,
            gcra: Gcra::default(),
            unsent_ns: AtomicU64::new(0),
            least_full_at_ns: AtomicU64::new(0),
            interval_ns: AtomicU64::new(0),
            tolerance_ns: AtomicU64::new(0),
            is_queued: AtomicBool::new(false),
        }
    }

    /// Notes what a decision about `n` requests took; true if the server should be told soon.
    fn note(&self, decision: &Decision, n: u32) -> bool {
        let quota = decision.quota;
        let (interval_ns, taken_ns) = (quota.interval_ns(), quota.taken_ns(n));
        self.interval_ns.store(interval_ns, Ordering::Relaxed);
        self.tolerance_ns.store(quota.tolerance_ns(), Ordering::Relaxed);
        if !decision.allowed {
            return false;
        }
        // Before the look at `is_queued` that follows, as `portion` has them the other way round: else
        // each might see the other's old value.
        let unsent_ns = self.unsent_ns.fetch_add(taken_ns, Ordering::SeqCst) + taken_ns;
        unsent_ns.saturating_mul(URGENT_PART) >= decision.remaining.saturating_mul(interval_ns)
    }

    /// The news for the server as of now.
    fn portion(&self, now_ns: u64) -> Portion {
        // Before what is read below: who takes more from here on queues the bucket again.
        self.is_queued.store(false, Ordering::SeqCst);
        let taken_us = self.unsent_ns.load(Ordering::SeqCst) / NS_PER_US;
        self.unsent_ns.fetch_sub(taken_us * NS_PER_US, Ordering::SeqCst);
        let least_full_at_ns = self.least_full_at_ns.swap(0, Ordering::SeqCst);
        let us = |ns: u64| (ns / NS_PER_US).min(BACKLOG_US_MAX);
        Portion {
            digest: self.digest,
            taken_us: taken_us.min(BACKLOG_US_MAX),
            least_us: us(least_full_at_ns.saturating_sub(now_ns)),
            most_us: us(self.most_ns()),
        }
    }

    /// The longest time that it may want until it is full.
    fn most_ns(&self) -> u64 {
        self.tolerance_ns.load(Ordering::Relaxed).saturating_add(ns(DEBT_MAX))
    }

    /// Takes over what the server said of a portion that was sent at `sent_ns`. False if the server
    /// has lost what is known here, which then is told it with the next portion.
    fn learn(&self, sent_ns: u64, backlog_ns: u64) -> bool {
        let told_ns = sent_ns.saturating_add(backlog_ns);
        let full_at_ns = self.gcra.full_at_ns();
        let unsent_ns = self.unsent_ns.load(Ordering::SeqCst);
        let known_ns = full_at_ns.saturating_sub(unsent_ns);
        let known_ns = known_ns.min(sent_ns.saturating_add(self.most_ns()));
        // The server's time is of some moment before its answer, and a request may have been counted
        // in one of the two sums only.
        let unsure_ns = ns(REPLY_TIMEOUT) + self.interval_ns.load(Ordering::Relaxed);
        if known_ns > told_ns.saturating_add(unsure_ns) {
            self.least_full_at_ns.store(known_ns, Ordering::SeqCst);
            return false;
        }
        self.gcra.set_full_at_ns(told_ns.saturating_add(unsent_ns));
        true
    }
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The shared rates of an edge; each edge's own where no server is configured.
pub struct SharedRates {
    server: Option<Server>,
    clock: Clock,
    /// Requests are noted for the server, which was there last time.
    is_shared: AtomicBool,
    /// Edges that shared their rates when the server was last there, this one among them.
    edges: AtomicU32,
    /// Buckets with something to tell.
    queue: Mutex<VecDeque<Arc<SharedGcra>>>,
    /// Told when the queue was empty and is not.
    waiting: Notify,
    /// Told when one of the queue is urgent.
    urgent: Notify,
    /// The reason rates are not shared; `None` when they are, or nobody has tried.
    problem: Mutex<Option<Failure>>,
    shared: Option<IntGauge>,
    edges_shown: Option<IntGauge>,
    exchanges: IntCounterVec,
    exchange_duration: Histogram,
}

rampart_types::opaque_debug!(SharedRates);

impl SharedRates {
    /// Shares rates if there is a server.
    ///
    /// # Errors
    /// One sentence that names the setting, without the URL.
    pub(crate) fn new(
        settings: &RateLimits,
        clock: &Clock,
        metrics: &Metrics,
    ) -> Result<Self, &'static str> {
        let edge = clock.uuid().map_err(|_| "no entropy for the name of this edge")?;
        let parse = |url| {
            Server::parse(url, edge).ok_or(
                "ratelimit.redis_url is not a URL such as redis://127.0.0.1:6379/0, or rediss:// \
                 for TLS",
            )
        };
        let server = settings.redis_url.as_ref().map(parse).transpose()?;
        let gauge = |family: &IntGaugeVec| family.with_label_values::<&str>(&[]);
        let shared = server.is_some().then(|| gauge(&metrics.rates_shared));
        let edges_shown = server.is_some().then(|| gauge(&metrics.rates_edges));
        edges_shown.iter().for_each(|shown| shown.set(1));
        Ok(Self {
            server,
            clock: clock.clone(),
            is_shared: AtomicBool::new(false),
            edges: AtomicU32::new(1),
            queue: Mutex::default(),
            waiting: Notify::new(),
            urgent: Notify::new(),
            problem: Mutex::default(),
            shared,
            edges_shown,
            exchanges: metrics.rate_exchanges.clone(),
            exchange_duration: metrics.rate_exchange_duration.with_label_values::<&str>(&[]),
        })
    }

    /// Takes `n` requests at once from a bucket, at `now_ns` of the monotonic clock.
    pub fn take(&self, bucket: &Arc<SharedGcra>, quota: Quota, n: u32, now_ns: u64) -> Decision {
        if !self.is_shared.load(Ordering::Relaxed) {
            return bucket.gcra.take_many(self.part_of(quota), n, now_ns);
        }
        let decision = bucket.gcra.take_many(quota, n, now_ns);
        let is_urgent = bucket.note(&decision, n);
        // A refused request is queued too: others may have left the bucket more than is known.
        self.queue(bucket);
        if is_urgent {
            self.urgent.notify_one();
        }
        decision
    }

    /// The decision that a request would get now, as far as this edge knows; it takes nothing.
    pub fn peek(&self, bucket: &SharedGcra, quota: Quota, now_ns: u64) -> Decision {
        let is_shared = self.is_shared.load(Ordering::Relaxed);
        let quota = if is_shared { quota } else { self.part_of(quota) };
        bucket.gcra.peek(quota, now_ns)
    }

    /// The part of a quota that this edge grants while it counts alone.
    fn part_of(&self, quota: Quota) -> Quota {
        match self.edges.load(Ordering::Relaxed) {
            1 => quota,
            edges => quota.divided(edges),
        }
    }

    fn queue(&self, bucket: &Arc<SharedGcra>) {
        if bucket.is_queued.load(Ordering::SeqCst) || bucket.is_queued.swap(true, Ordering::SeqCst)
        {
            return;
        }
        let mut queue = self.lock();
        if queue.len() < QUEUE_MAX {
            queue.push_back(Arc::clone(bucket));
            if queue.len() == 1 {
                self.waiting.notify_one();
            }
        } else {
            bucket.is_queued.store(false, Ordering::SeqCst);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<SharedGcra>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Buckets that wait for an exchange.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().len()
    }

    /// The reason this edge counts alone although a server is configured, if it does.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).map(Failure::reason)
    }

    /// Tries the server once, for a look from outside of a running edge.
    pub async fn check(&self) {
        if let Some(server) = &self.server {
            self.set_problem(server.connect().await.err());
        }
    }

    fn set_problem(&self, problem: Option<Failure>) {
        let known = &mut *self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        match problem {
            Some(failure) if *known != problem => {
                tracing::warn!(reason = failure.reason(), "rates are not shared");
            }
            None if known.is_some() => tracing::info!("rates are shared again"),
            _ => {}
        }
        *known = problem;
    }

    /// Exchanges with the server until `stop` is true.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        let Some((server, shared)) = self.server.as_ref().zip(self.shared.as_ref()) else { return };
        while let Err(failure) = self.share(server, &mut stop).await {
            self.is_shared.store(false, Ordering::Relaxed);
            shared.set(0);
            self.exchanges.with_label_values(&[failure.label()]).inc();
            self.set_problem(Some(failure));
            if timeout(RETRY_PAUSE, stop.wait_for(|stop| *stop)).await.is_ok() {
                return;
            }
        }
    }

    /// Exchanges over one connection until it fails or `stop` is true.
    async fn share(
        &self,
        server: &Server,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), Failure> {
        let mut connection = tokio::select! {
            connection = server.connect() => connection?,
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
        };
        let connected_ns = self.clock.monotonic_ns();
        self.announce(&mut connection, connected_ns).await?;
        self.set_problem(None);
        self.shared.iter().for_each(|shared| shared.set(1));
        self.is_shared.store(true, Ordering::Relaxed);
        // For what waits since the last connection.
        self.waiting.notify_one();
        let mut pace = Pace::new();
        let mut announced_ns = connected_ns;
        loop {
            let is_stopped = tokio::select! {
                () = self.due(&mut pace) => false,
                _ = stop.wait_for(|stop| *stop) => true,
            };
            self.exchange(&mut connection).await?;
            if is_stopped {
                return Ok(());
            }
            let now_ns = self.clock.monotonic_ns();
            if now_ns.saturating_sub(announced_ns) >= ns(ANNOUNCE_PAUSE) {
                self.announce(&mut connection, connected_ns).await?;
                announced_ns = now_ns;
            }
            pace.restart();
        }
    }

    /// Tells the server that this edge lives, and learns how many do. A server that was away hears of
    /// one after the other: until each has had its time, none counts fewer than before.
    async fn announce(
        &self,
        connection: &mut Connection,
        connected_ns: u64,
    ) -> Result<(), Failure> {
        let announced = connection.announce().await?;
        let connected_for = self.clock.monotonic_ns().saturating_sub(connected_ns);
        let known = self.edges.load(Ordering::Relaxed);
        let edges = if connected_for < ns(GONE) { announced.max(known) } else { announced };
        self.edges.store(edges, Ordering::Relaxed);
        self.edges_shown.iter().for_each(|shown| shown.set(edges.into()));
        Ok(())
    }

    /// Waits until an exchange is due.
    async fn due(&self, pace: &mut Pace) {
        if timeout(IDLE_MAX, self.waiting.notified()).await.is_err() {
            return;
        }
        let Pace { regular, urgent } = pace;
        let urgent = async {
            self.urgent.notified().await;
            urgent.tick().await;
        };
        tokio::select! {
            _ = regular.tick() => {}
            () = urgent => {}
        }
    }

    /// Tells the server what was taken from the buckets that wait longest, and learns what it knows.
    async fn exchange(&self, connection: &mut Connection) -> Result<(), Failure> {
        let batch = self.batch();
        let sent_ns = self.clock.monotonic_ns();
        let portions: Vec<Portion> = batch.iter().map(|bucket| bucket.portion(sent_ns)).collect();
        let backlogs_us = connection.exchange(&portions).await?;
        for (bucket, backlog_us) in batch.iter().zip(backlogs_us) {
            if !bucket.learn(sent_ns, backlog_us.saturating_mul(NS_PER_US)) {
                self.queue(bucket);
            }
        }
        let took = Duration::from_nanos(self.clock.monotonic_ns().saturating_sub(sent_ns));
        self.exchange_duration.observe(took.as_secs_f64());
        self.exchanges.with_label_values(&["ok"]).inc();
        Ok(())
    }

    /// The buckets of the next exchange.
    fn batch(&self) -> Vec<Arc<SharedGcra>> {
        let mut queue = self.lock();
        let count = queue.len().min(BATCH_MAX);
        let batch = queue.drain(..count).collect();
        if !queue.is_empty() {
            self.waiting.notify_one();
        }
        batch
    }
}

#[cfg(test)]
mod tests;
