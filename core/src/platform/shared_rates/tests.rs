use futures::FutureExt as _;
use proptest::prelude::*;

use super::pace::{EXCHANGE_PAUSE, URGENT_PAUSE};
use super::*;
use crate::platform::crypto::Secret;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// The step of simulated time.
const STEP: u64 = MS / 10;
/// Time for which edges are flooded.
const FLOOD: u64 = 2 * SECOND;

fn rates(url: &str) -> Result<SharedRates, &'static str> {
    let redis_url = Some(Secret::new(url.to_owned()));
    let settings = RateLimits { redis_url, ..RateLimits::default() };
    SharedRates::new(&settings, &Clock::system(), &Metrics::new(1).unwrap())
}

/// The rules of `take.lua` for one bucket, with a clock of its own. A test over a real server holds the
/// script to the same (`e2e`).
#[derive(Default)]
struct Model {
    full_at_us: u64,
}

impl Model {
    fn take(&mut self, portion: &Portion, now_us: u64) -> u64 {
        let full_at = self.full_at_us.max(now_us + portion.least_us);
        let full_at = full_at.min(now_us + portion.most_us) + portion.taken_us;
        if portion.taken_us > 0 || portion.least_us > 0 {
            self.full_at_us = full_at;
        }
        full_at - now_us
    }
}

/// An edge whose exchanges are made by the test.
struct Edge {
    rates: SharedRates,
    bucket: Arc<SharedGcra>,
    /// The edge's clock is ahead by this.
    ahead: u64,
    exchanged: u64,
    /// A portion on its way: when it was sent, when the server has it, when its answer is here.
    sent: Option<(u64, u64, Portion)>,
    answer: Option<(u64, u64, u64)>,
}

impl Edge {
    fn new(ahead: u64) -> Self {
        let rates = rates("redis://127.0.0.1:1").unwrap();
        rates.is_shared.store(true, Ordering::Relaxed);
        let bucket = Arc::new(SharedGcra::new("client/acme"));
        Self { rates, bucket, ahead, exchanged: 0, sent: None, answer: None }
    }

    fn take(&self, quota: Quota, now: u64) -> Decision {
        self.rates.take(&self.bucket, quota, 1, now + self.ahead)
    }

    /// Sends, has the server answer, and learns, as far as each is due.
    fn step(&mut self, model: &mut Model, now: u64, delay: u64) {
        if let Some((sent, at, portion)) = self.sent
            && now >= at
        {
            self.answer = Some((sent, now + delay, model.take(&portion, now / NS_PER_US)));
            self.sent = None;
        }
        if let Some((sent, at, backlog_us)) = self.answer
            && now >= at
        {
            if !self.bucket.learn(sent + self.ahead, backlog_us * NS_PER_US) {
                self.rates.queue(&self.bucket);
            }
            self.answer = None;
        }
        if self.sent.is_some() || self.answer.is_some() || self.rates.waiting() == 0 {
            return;
        }
        // Timers wake a millisecond late.
        let pause = match self.rates.urgent.notified().now_or_never() {
            Some(()) => ns(URGENT_PAUSE) + MS,
            None => ns(EXCHANGE_PAUSE) + MS,
        };
        if now >= self.exchanged + pause {
            let batch = self.rates.batch();
            self.sent = Some((now, now + delay, batch[0].portion(now + self.ahead)));
            self.exchanged = now;
        } else if pause == ns(URGENT_PAUSE) + MS {
            self.rates.urgent.notify_one();
        }
    }

    /// One whole exchange at `now`.
    fn exchange(&mut self, model: &mut Model, now: u64) {
        self.exchanged = 0;
        self.step(model, now, 0);
        self.step(model, now, 0);
    }
}

/// Requests that pass when each edge gets one every `gap`.
fn flooded(quota: Quota, edges: &mut [Edge], gap: u64, seed: u64) -> u64 {
    let (mut model, mut random, mut passed) = (Model::default(), seed, 0);
    let mut due: Vec<u64> = (0..edges.len() as u64).map(|index| SECOND + index * 7_919).collect();
    for now in (SECOND..SECOND + FLOOD).step_by(usize::try_from(STEP).unwrap()) {
        for (edge, due) in edges.iter_mut().zip(&mut due) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            while *due < now + STEP {
                passed += u64::from(edge.take(quota, *due).allowed);
                // Half a gap to one and a half.
                *due += gap / 2 + (random >> 33) % gap;
            }
            edge.step(&mut model, now + STEP, STEP * (1 + (random >> 60) % 3));
        }
    }
    passed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn flooded_edges_take_one_quota_together(
        count in 50u32..5_000, burst_percent in 20u32..200, edges in 1u64..9, over in 2u64..9,
        seed: u64,
    ) {
        let quota = Quota::new(count, 1, count * burst_percent / 100);
        let gap = (SECOND * edges / (u64::from(count) * over)).max(1);
        let mut all: Vec<Edge> = (0..edges).map(|index| Edge::new(index * 3 * SECOND)).collect();
        let passed = flooded(quota, &mut all, gap, seed);
        let wanted = quota.tolerance_ns() / quota.interval_ns() + FLOOD / quota.interval_ns();
        // Two percent of a second's quota, and no less than a request of each edge.
        let error = (u64::from(count) / 50).max(edges);
        prop_assert!(passed <= wanted + error, "{passed} of {wanted}: more than {error} too many");
        prop_assert!(passed + error >= wanted, "{passed} of {wanted}: more than {error} too few");
    }
}

#[test]
fn an_edge_learns_what_another_took() {
    let (quota, mut model) = (Quota::new(1, 3_600, 3), Model::default());
    let (mut one, mut other) = (Edge::new(0), Edge::new(5 * SECOND));
    for _ in 0..2 {
        assert!(one.take(quota, SECOND).allowed);
    }
    one.exchange(&mut model, SECOND);
    assert_eq!(other.take(quota, SECOND).remaining, 2, "nothing is known yet");
    other.exchange(&mut model, SECOND);
    assert!(!other.take(quota, SECOND).allowed);
    // Until it asks, an edge does not know. What it takes too much is a debt.
    assert!(one.take(quota, SECOND).allowed);
    one.exchange(&mut model, SECOND);
    assert!(!one.take(quota, SECOND).allowed);
    assert_eq!(model.full_at_us, (SECOND + 4 * quota.interval_ns()) / NS_PER_US);
}

#[test]
fn a_server_that_has_lost_a_bucket_is_told() {
    let (quota, mut model) = (Quota::new(1, 3_600, 3), Model::default());
    let mut edge = Edge::new(0);
    while edge.take(quota, SECOND).allowed {}
    edge.exchange(&mut model, SECOND);
    let full_at_us = model.full_at_us;
    model = Model::default();
    assert!(!edge.take(quota, 2 * SECOND).allowed);
    edge.exchange(&mut model, 2 * SECOND);
    assert!(!edge.take(quota, 2 * SECOND).allowed, "what is known stays known");
    edge.exchange(&mut model, 3 * SECOND);
    assert_eq!(model.full_at_us, full_at_us);
    edge.exchange(&mut model, 4 * SECOND);
    assert_eq!((model.full_at_us, edge.rates.waiting()), (full_at_us, 0));
}

#[test]
fn without_its_server_an_edge_counts_alone_and_notes_nothing() {
    let (quota, edge) = (Quota::new(1, 3_600, 3), Edge::new(0));
    edge.rates.is_shared.store(false, Ordering::Relaxed);
    let taken = (0..10).filter(|_| edge.take(quota, SECOND).allowed).count();
    assert_eq!((taken, edge.rates.waiting()), (3, 0));
    assert_eq!(edge.bucket.portion(SECOND).taken_us, 0);
}

#[test]
fn without_its_server_an_edge_grants_its_part() {
    for (quota, edges, part) in [
        (Quota::new(50, 1, 100), 4, Quota::new(50, 4, 25)),
        (Quota::new(50, 1, 100), 1, Quota::new(50, 1, 100)),
        (Quota::new(10, 60, 10), 6, Quota::new(10, 360, 1)),
        (Quota::new(4, 60, 3), 4, Quota::new(4, 240, 1)),
    ] {
        let edge = Edge::new(0);
        edge.rates.is_shared.store(false, Ordering::Relaxed);
        edge.rates.edges.store(edges, Ordering::Relaxed);
        assert_eq!(edge.take(quota, SECOND).quota, part);
        assert_eq!(edge.rates.peek(&edge.bucket, quota, SECOND).quota, part);
    }
}

#[test]
fn a_bucket_is_queued_once_and_no_more_than_fit() {
    let (quota, edge) = (Quota::new(1, 1, 1), Edge::new(0));
    for number in 0..QUEUE_MAX + 10 {
        let bucket = Arc::new(SharedGcra::new(&number.to_string()));
        for _ in 0..2 {
            edge.rates.take(&bucket, quota, 1, SECOND);
        }
    }
    assert_eq!(edge.rates.waiting(), QUEUE_MAX);
    assert_eq!(edge.rates.batch().len(), BATCH_MAX);
    edge.rates.take(&edge.bucket, quota, 1, SECOND);
    assert_eq!(edge.rates.waiting(), QUEUE_MAX - BATCH_MAX + 1);
}

#[test]
fn a_url_is_checked_and_not_repeated() {
    for url in ["redis://:hidden@a", "rediss://:hidden@a:1/2", "redis://user:hidden@127.0.0.1"] {
        let rates = rates(url).unwrap();
        assert!(!format!("{rates:?}").contains("hidden"), "{url}");
        assert_eq!(rates.problem(), None);
    }
    for url in ["", "a", "http://:hidden@a", "redis://:hidden@a/b"] {
        let sentence = rates(url).unwrap_err();
        assert!(sentence.starts_with("ratelimit.redis_url is not a URL"), "{sentence}");
    }
}
