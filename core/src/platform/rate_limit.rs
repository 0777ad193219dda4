//! Rate limits: exact GCRA (the generic cell rate algorithm, ITU-T I.371), one atomic per bucket.

mod keyed;

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

pub use self::keyed::KeyedGcra;

const NS_PER_SECOND: u64 = 1_000_000_000;
/// Most requests per window.
const COUNT_MAX: u32 = 1_000_000;
/// Most requests at once.
const BURST_MAX: u32 = 10_000_000;
/// Longest time that a full burst takes to come back: a greater burst of a slow rate counts as this.
/// Sums with a time of the clock fit as well.
const TOLERANCE_NS_MAX: u64 = 1 << 62;

/// A rate and a burst, written `"50/s burst 100"`, `"10/min"` or `"1000/h burst 50"`.
/// The burst defaults to the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Quota {
    count: u32,
    window_seconds: u32,
    burst: u32,
}

impl Quota {
    /// `count` requests in `window_seconds`, at most `burst` at once. All are at least 1.
    pub const fn new(count: u32, window_seconds: u32, burst: u32) -> Self {
        Self { count, window_seconds, burst }
    }

    /// The part that one of `edges` edges grants while each counts alone: together no more than the
    /// quota. Only a burst below `edges` is more, because each lets one request pass at once.
    pub(crate) fn divided(self, edges: u32) -> Self {
        let edges = edges.max(1);
        let window_seconds = self.window_seconds.saturating_mul(edges);
        Self { window_seconds, burst: (self.burst / edges).max(1), ..self }
    }

    /// This rate, or the other if that is faster, with the greater burst of both.
    pub(crate) fn or_faster(self, other: Self) -> Self {
        let rate = if other.interval_ns() < self.interval_ns() { other } else { self };
        Self { burst: self.burst.max(other.burst), ..rate }
    }

    /// The emission interval: nanoseconds per request.
    pub(crate) fn interval_ns(self) -> u64 {
        (u64::from(self.window_seconds) * NS_PER_SECOND / u64::from(self.count)).max(1)
    }

    /// The time in nanoseconds that `n` requests at once take to come back: a full burst's at most.
    pub(crate) fn taken_ns(self, n: u32) -> u64 {
        self.interval_ns().saturating_mul(n.into()).min(self.tolerance_ns())
    }

    /// The time for which an unused bucket is kept: until a full burst has come back, `shortest` at
    /// least.
    pub fn bucket_idle(self, shortest: Duration) -> Duration {
        Duration::from_nanos(self.tolerance_ns()).max(shortest)
    }

    /// The time in nanoseconds that a full burst takes to come back.
    pub(crate) fn tolerance_ns(self) -> u64 {
        self.interval_ns().saturating_mul(self.burst.into()).min(TOLERANCE_NS_MAX)
    }
}

impl FromStr for Quota {
    type Err = InvalidQuota;

    fn from_str(text: &str) -> Result<Self, InvalidQuota> {
        let invalid = || InvalidQuota(text.to_owned());
        let mut words = text.split_whitespace();
        let (count, unit) =
            words.next().and_then(|rate| rate.split_once('/')).ok_or_else(invalid)?;
        let count: u32 = count.parse().map_err(|_| invalid())?;
        let window_seconds = match unit {
            "s" => 1,
            "min" => 60,
            "h" => 3600,
            _ => return Err(invalid()),
        };
        let burst = match (words.next(), words.next(), words.next()) {
            (None, ..) => count,
            (Some("burst"), Some(burst), None) => burst.parse().map_err(|_| invalid())?,
            _ => return Err(invalid()),
        };
        let possible = count > 0 && burst > 0 && count <= COUNT_MAX && burst <= BURST_MAX;
        possible.then_some(Self { count, window_seconds, burst }).ok_or_else(invalid)
    }
}

impl TryFrom<String> for Quota {
    type Error = InvalidQuota;

    fn try_from(text: String) -> Result<Self, InvalidQuota> {
        text.parse()
    }
}

impl std::fmt::Display for Quota {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unit = match self.window_seconds {
            1 => "s",
            60 => "min",
            _ => "h",
        };
        write!(f, "{}/{unit} burst {}", self.count, self.burst)
    }
}

impl Serialize for Quota {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Quota {
    fn schema_name() -> Cow<'static, str> {
        "Quota".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "rate",
            "x-bounds": format!("1 to {COUNT_MAX} requests, bursts of 1 to {BURST_MAX}"),
        })
    }
}

/// A text that is not a quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidQuota(String);

impl std::fmt::Display for InvalidQuota {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "'{}' is not a rate such as \"50/s burst 100\"", self.0)
    }
}

impl std::error::Error for InvalidQuota {}

/// A bucket's decision, for the response headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// True if the request is admitted.
    pub allowed: bool,
    /// The applied quota.
    pub quota: Quota,
    /// Requests that would be admitted at once.
    pub remaining: u64,
    /// Seconds, rounded up, until the bucket is full again.
    pub reset_seconds: u64,
    /// Seconds, rounded up, until one request fits; zero when allowed.
    pub retry_after_seconds: u64,
}

impl Decision {
    /// The admission of a request after which the bucket is full again in `backlog_ns`.
    pub(crate) fn admitted(quota: Quota, backlog_ns: u64) -> Self {
        decision(true, quota, backlog_ns, 0)
    }

    /// The refusal of a request by a bucket that is full again in `backlog_ns`.
    pub(crate) fn refused(quota: Quota, backlog_ns: u64) -> Self {
        let excess = (backlog_ns + quota.interval_ns()).saturating_sub(quota.tolerance_ns());
        decision(false, quota, backlog_ns, excess)
    }

    /// The decision with no more remaining than another limit of the same request leaves.
    pub fn within(self, other: &Self) -> Self {
        if self.remaining <= other.remaining {
            return self;
        }
        let reset_seconds = self.reset_seconds.max(other.reset_seconds);
        Self { remaining: other.remaining, reset_seconds, ..self }
    }

    /// Writes its member of `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers).
    pub fn write_policy(&self, bucket: &str, out: &mut String) {
        let Quota { count, window_seconds, .. } = self.quota;
        write_member(bucket, [(";q=", count.into()), (";w=", window_seconds.into())], out);
    }

    /// Writes its member of `RateLimit` (the same draft).
    pub fn write_limit(&self, bucket: &str, out: &mut String) {
        let Self { remaining, reset_seconds, .. } = *self;
        write_member(bucket, [(";r=", remaining), (";t=", reset_seconds)], out);
    }
}

/// Written without a formatter, because nearly every response has two of these.
fn write_member(bucket: &str, parameters: [(&str, u64); 2], out: &mut String) {
    for part in ["\"", bucket, "\""] {
        out.push_str(part);
    }
    for (name, number) in parameters {
        out.push_str(name);
        out.push_str(&number.to_string());
    }
}

/// One bucket. Exact under concurrency: of N racing requests no more pass than fit.
#[derive(Debug, Default)]
pub struct Gcra {
    /// Theoretical arrival time of the next request, in nanoseconds of the clock.
    arrival_ns: AtomicU64,
}

impl Gcra {
    /// Takes a request from the bucket at `now_ns` of the monotonic clock.
    pub fn take(&self, quota: Quota, now_ns: u64) -> Decision {
        self.take_many(quota, 1, now_ns)
    }

    /// The same for `n` requests at once: all or none.
    pub fn take_many(&self, quota: Quota, n: u32, now_ns: u64) -> Decision {
        let mut arrival = self.arrival_ns.load(Ordering::Relaxed);
        loop {
            let next = arrival.max(now_ns) + quota.taken_ns(n);
            let excess = next.saturating_sub(now_ns + quota.tolerance_ns());
            if excess > 0 {
                return decision(false, quota, arrival.saturating_sub(now_ns), excess);
            }
            match self.arrival_ns.compare_exchange_weak(
                arrival,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return decision(true, quota, next - now_ns, 0),
                Err(current) => arrival = current,
            }
        }
    }

    /// The time from which the bucket is full again, in nanoseconds of the clock.
    pub(crate) fn full_at_ns(&self) -> u64 {
        self.arrival_ns.load(Ordering::Relaxed)
    }

    /// Sets the time from which the bucket is full again.
    pub(crate) fn set_full_at_ns(&self, full_at_ns: u64) {
        self.arrival_ns.store(full_at_ns, Ordering::Relaxed);
    }

    /// The decision that [`Gcra::take`] would make, without taking anything.
    pub fn peek(&self, quota: Quota, now_ns: u64) -> Decision {
        let arrival = self.arrival_ns.load(Ordering::Relaxed);
        let next = arrival.max(now_ns) + quota.interval_ns();
        let excess = next.saturating_sub(now_ns + quota.tolerance_ns());
        decision(excess == 0, quota, arrival.saturating_sub(now_ns), excess)
    }
}

fn decision(allowed: bool, quota: Quota, backlog_ns: u64, excess_ns: u64) -> Decision {
    let capacity_ns = quota.tolerance_ns().saturating_sub(backlog_ns);
    Decision {
        allowed,
        quota,
        remaining: capacity_ns / quota.interval_ns(),
        reset_seconds: backlog_ns.div_ceil(NS_PER_SECOND),
        retry_after_seconds: excess_ns.div_ceil(NS_PER_SECOND),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotas_are_read_as_documented() {
        let quota: Quota = "50/s burst 100".parse().unwrap();
        assert_eq!(quota, Quota::new(50, 1, 100));
        assert_eq!("10/min".parse(), Ok(Quota::new(10, 60, 10)));
        for bad in ["", "50", "50/day", "0/s", "5/s burst", "5/s burst 0", "5/s burst 1 2", "-1/s"]
        {
            assert!(bad.parse::<Quota>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_idle_bucket_is_kept_until_its_burst_is_whole() {
        let shortest = Duration::from_secs(600);
        for (quota, seconds) in
            [("50/s burst 100", 600), ("1000/h", 3_600), ("1/h burst 10", 36_000)]
        {
            let idle = quota.parse::<Quota>().unwrap().bucket_idle(shortest);
            assert_eq!(idle, Duration::from_secs(seconds), "{quota}");
        }
    }

    #[test]
    fn a_burst_passes_and_the_next_waits() {
        let (bucket, quota) = (Gcra::default(), Quota::new(10, 1, 3));
        assert!((0..3).all(|_| bucket.take(quota, 0).allowed));
        let refused = bucket.take(quota, 0);
        let seconds = refused.retry_after_seconds;
        assert_eq!((refused.allowed, refused.remaining, seconds), (false, 0, 1));
        assert!(bucket.take(quota, NS_PER_SECOND / 10).allowed);
        assert!(!bucket.take_many(quota, 2, NS_PER_SECOND / 4).allowed, "all or none");
        assert_eq!(bucket.take_many(quota, 2, NS_PER_SECOND * 3 / 10).remaining, 0);
    }

    #[test]
    fn the_greatest_burst_of_the_slowest_rate_passes() {
        let quota: Quota = "1/h burst 10000000".parse().unwrap();
        // The times of their bursts are no numbers of 64 bits.
        for quota in [quota, Quota::new(1, 3_600, 5_124_096)] {
            let bucket = Gcra::default();
            assert!((0..1_000).all(|_| bucket.take(quota, 0).allowed));
            assert!(bucket.take(quota, 0).remaining > 1_000_000);
        }
    }

    #[test]
    fn a_look_takes_nothing_and_sees_what_a_request_would() {
        let (bucket, quota) = (Gcra::default(), Quota::new(10, 1, 2));
        for _ in 0..5 {
            assert!(bucket.peek(quota, 0).allowed);
        }
        assert!((0..2).all(|_| bucket.take(quota, 0).allowed));
        assert_eq!(bucket.peek(quota, 0), bucket.take(quota, 0));
    }

    #[test]
    fn racing_requests_never_exceed_the_burst() {
        let (bucket, quota) = (Gcra::default(), Quota::new(1, 3600, 100));
        let passed: usize = std::thread::scope(|scope| {
            let take = || (0..100).filter(|_| bucket.take(quota, 0).allowed).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(passed, 100);
    }

    #[test]
    fn a_decision_promises_no_more_than_another_limit_leaves() {
        let (wide, narrow) = (Quota::new(100, 1, 200), Quota::new(1, 60, 3));
        let taken = |quota| Gcra::default().take(quota, 0);
        let within = taken(wide).within(&taken(narrow));
        assert_eq!((within.quota, within.remaining, within.reset_seconds), (wide, 2, 60));
        assert_eq!(taken(narrow).within(&taken(wide)), taken(narrow));
    }

    proptest! {
        #[test]
        fn a_full_bucket_of_any_quota_admits_a_request(
            count in 1..=COUNT_MAX, burst in 1..=BURST_MAX, unit in 0..3_usize, edges in 1u32..64,
        ) {
            let text = format!("{count}/{} burst {burst}", ["s", "min", "h"][unit]);
            let quota: Quota = text.parse().unwrap();
            for quota in [quota, quota.divided(edges)] {
                let (bucket, now) = (Gcra::default(), 10 * 365 * 86_400 * NS_PER_SECOND);
                let one = bucket.peek(quota, now);
                prop_assert!(one.allowed && bucket.take_many(quota, u32::MAX, now).allowed);
            }
        }

        #[test]
        fn no_window_admits_more_than_rate_and_burst(
            gaps in proptest::collection::vec(0u64..50_000_000, 1..300),
            count in 1u32..200, burst in 1u32..50,
        ) {
            let (bucket, quota) = (Gcra::default(), Quota::new(count, 1, burst));
            let mut now = 0;
            let mut passed = 0u64;
            for gap in gaps {
                now += gap;
                passed += u64::from(bucket.take(quota, now).allowed);
            }
            prop_assert!(passed <= u64::from(burst) + now / quota.interval_ns() + 1);
        }
    }
}
