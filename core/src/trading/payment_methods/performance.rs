//! The performance of a partner's payment methods: success rates and settlement times of its recent
//! orders, which its method-order policy is told.
//!
//! A request reads what is in memory. A worker reads the orders of partners that were asked for, so
//! that no request waits for the database.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::Core;
use crate::platform::error::Result;
use crate::trading::orders::status::OrderStatus;
use rampart_types::ClientId;

/// Age from which a performance is read again, in nanoseconds of the monotonic clock.
const FRESH_NS: u64 = 30_000_000_000;
/// Age from which one that nobody asks for is forgotten, in nanoseconds.
const KEPT_NS: u64 = 600_000_000_000;
/// Most partners whose performance is read in one run of the worker.
const READS_MAX: usize = 32;
/// Most orders that are looked at, the newest of the last 30 days.
const ORDERS_MAX: i64 = 2_000;
/// Fewest ended orders for a rate, and fewest completed ones for a time.
const ORDERS_MIN: usize = 10;
/// The worker in metrics and logs.
const SWEEP: &str = "method performance";
/// One, in parts per million.
const PPM: usize = 1_000_000;

/// The performance of the methods of partners with method-order policies. One per edge.
#[derive(Debug, Default)]
pub struct PerformanceCache(RwLock<HashMap<ClientId, Entry>>);

#[derive(Debug, Default)]
struct Entry {
    performance: Arc<Performance>,
    /// Monotonic time of the read; `None` before the first.
    read_at_ns: Option<u64>,
    /// True if a request has asked for it since the read.
    wanted: AtomicBool,
}

/// The performance of one partner's methods.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Performance {
    /// Success rates in parts per million, by method and country.
    success_rates: HashMap<(String, String), i32>,
    /// Median times from order to coins in seconds, by method.
    settlement_seconds: HashMap<String, u32>,
}

/// An order that has ended.
struct EndedOrder {
    method: String,
    country: Option<String>,
    completed: bool,
    seconds: i64,
}

impl PerformanceCache {
    /// The partner's performance as last read; `None` when there is too little traffic to tell.
    pub(super) fn get(&self, client: ClientId) -> Option<Arc<Performance>> {
        let entries = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(&client) {
            entry.wanted.store(true, Ordering::Relaxed);
            let known = !entry.performance.settlement_seconds.is_empty()
                || !entry.performance.success_rates.is_empty();
            return known.then(|| Arc::clone(&entry.performance));
        }
        drop(entries);
        let mut entries = self.0.write().unwrap_or_else(PoisonError::into_inner);
        entries.entry(client).or_default().wanted.store(true, Ordering::Relaxed);
        None
    }

    /// Partners whose performance is to be read at `now_ns`, those first that were read longest ago.
    /// Forgets those that nobody asks for.
    fn due(&self, now_ns: u64) -> Vec<ClientId> {
        let mut entries = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let age = |entry: &Entry| entry.read_at_ns.map(|read| now_ns.saturating_sub(read));
        let wanted = |entry: &Entry| entry.wanted.load(Ordering::Relaxed);
        entries.retain(|_, entry| wanted(entry) || age(entry).is_some_and(|age| age < KEPT_NS));
        let due = entries
            .iter()
            .filter(|(_, entry)| wanted(entry) && age(entry).is_none_or(|age| age >= FRESH_NS));
        let mut due: Vec<_> = due.map(|(client, entry)| (entry.read_at_ns, *client)).collect();
        due.sort_unstable_by_key(|(read_at_ns, _)| *read_at_ns);
        due.into_iter().map(|(_, client)| client).take(READS_MAX).collect()
    }

    /// Counts a performance that could not be read as read at `now_ns`, and leaves it as it is.
    fn postpone(&self, client: ClientId, now_ns: u64) {
        let mut entries = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.entry(client).or_default();
        entry.read_at_ns = Some(now_ns);
        entry.wanted.store(false, Ordering::Relaxed);
    }

    fn set(&self, client: ClientId, performance: Performance, now_ns: u64) {
        let entry = Entry {
            performance: Arc::new(performance),
            read_at_ns: Some(now_ns),
            wanted: AtomicBool::new(false),
        };
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(client, entry);
    }
}

impl Core {
    /// Reads the performance of payment methods that requests have asked for, where it is old. A partner
    /// whose orders cannot be read is passed over, and has its next turn when what is known is old.
    ///
    /// # Errors
    /// When the database cannot be read; what is known stays.
    pub async fn refresh_method_performance(&self) -> Result<()> {
        let now_ns = self.clock.monotonic_ns();
        for client in self.method_performance.due(now_ns) {
            match Performance::read(self, client).await {
                Ok(performance) => self.method_performance.set(client, performance, now_ns),
                Err(error) => {
                    // Before anything else: one that always takes too long would take every turn.
                    self.method_performance.postpone(client, now_ns);
                    self.metrics.row_failed(SWEEP, client.uuid(), &"orders", error)?;
                }
            }
        }
        Ok(())
    }
}

impl Performance {
    /// Reads the partner's recent orders that have ended.
    async fn read(core: &Core, client: ClientId) -> Result<Self> {
        let orders = sqlx::query_as!(
            EndedOrder,
            r#"
            select o.payment_method as "method!", coalesce(o.country, u.country) as country,
                o.status = $3 as "completed!",
                extract(epoch from o.updated_at - o.created_at)::bigint as "seconds!"
            from (
                select client_id, user_id, payment_method, country, status, created_at, updated_at
                from buy_order
                where client_id = $1 and created_at > rampart_now() - interval '30 days'
                order by created_at desc, order_id desc limit $2
            ) as o left join end_user u on u.client_id = o.client_id and u.user_id = o.user_id
            where o.status = any ($4)
            "#,
            client.uuid(),
            ORDERS_MAX,
            OrderStatus::Completed.as_str(),
            &ENDED.map(|status| status.as_str().to_owned())[..],
        )
        .fetch_all(&core.db)
        .await?;
        Ok(Self::of(orders))
    }

    /// The performance that these orders show.
    fn of(orders: Vec<EndedOrder>) -> Self {
        let mut attempts: HashMap<(String, String), (usize, usize)> = HashMap::new();
        let mut times: HashMap<String, Vec<u32>> = HashMap::new();
        for EndedOrder { method, country, completed, seconds } in orders {
            if completed {
                let seconds = u32::try_from(seconds.max(0)).unwrap_or(u32::MAX);
                times.entry(method.clone()).or_default().push(seconds);
            }
            if let Some(country) = country {
                let (succeeded, all) = attempts.entry((method, country)).or_default();
                *succeeded += usize::from(completed);
                *all += 1;
            }
        }
        let rate = |(at, (succeeded, all)): (_, (usize, usize))| {
            let rate = (all >= ORDERS_MIN).then(|| succeeded.saturating_mul(PPM) / all)?;
            Some((at, i32::try_from(rate).ok()?))
        };
        let median = |(method, mut times): (String, Vec<u32>)| {
            times.sort_unstable();
            let median = (times.len() >= ORDERS_MIN).then(|| times[times.len() / 2])?;
            Some((method, median))
        };
        Self {
            success_rates: attempts.into_iter().filter_map(rate).collect(),
            settlement_seconds: times.into_iter().filter_map(median).collect(),
        }
    }

    /// Completed orders of those that ended, in parts per million.
    pub(super) fn success_rate(&self, method: &str, country: Option<&str>) -> Option<i32> {
        self.success_rates.get(&(method.to_owned(), country?.to_owned())).copied()
    }

    /// Time from order to coins, in seconds.
    pub(super) fn settlement_seconds(&self, method: &str) -> Option<u32> {
        self.settlement_seconds.get(method).copied()
    }
}

/// Statuses that say how a payment ended; a blocked order may still go either way.
const ENDED: [OrderStatus; 3] =
    [OrderStatus::Completed, OrderStatus::Cancelled, OrderStatus::Refunded];

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn ended(method: &str, country: Option<&str>, completed: bool, seconds: i64) -> EndedOrder {
        EndedOrder {
            method: method.to_owned(),
            country: country.map(str::to_owned),
            completed,
            seconds,
        }
    }

    #[test]
    fn rates_and_times_are_known_where_there_is_enough_traffic() {
        let mut orders: Vec<_> = (0..ORDERS_MIN)
            .map(|at| ended("card", Some("NL"), at < 7, i64::try_from(at).unwrap()))
            .collect();
        assert_eq!(Performance::of(orders.split_off(1)), Performance::default(), "one too few");
        orders.extend((0..30).map(|at| ended("card", Some("NL"), at % 3 > 0, at)));
        orders.extend((0..10).map(|_| ended("bank", None, true, 86_400)));
        let performance = Performance::of(orders);
        // 1 of the first ten is left, and 20 of the thirty.
        assert_eq!(performance.success_rate("card", Some("NL")), Some(677_419));
        assert_eq!(performance.success_rate("card", Some("DE")), None);
        assert_eq!(performance.success_rate("card", None), None);
        assert_eq!(performance.settlement_seconds("card"), Some(14));
        assert_eq!(performance.settlement_seconds("bank"), Some(86_400));
    }

    #[test]
    fn one_that_cannot_be_read_takes_no_turn_of_the_others() {
        let cache = PerformanceCache::default();
        let [broken, other] = [1, 2].map(|number| ClientId::from(Uuid::from_u128(number)));
        let ask = || [broken, other].iter().for_each(|client| drop(cache.get(*client)));
        ask();
        cache.postpone(broken, 1);
        ask();
        assert_eq!(cache.due(2), [other]);
        assert_eq!(cache.due(1 + FRESH_NS), [other, broken]);
    }

    #[test]
    fn those_that_were_read_longest_ago_are_read_first() {
        let cache = PerformanceCache::default();
        let clients: Vec<_> =
            (1..=2 * READS_MAX as u128).map(|n| ClientId::from(Uuid::from_u128(n))).collect();
        let read_those_due = |now_ns| {
            clients.iter().for_each(|client| drop(cache.get(*client)));
            let due = cache.due(now_ns);
            due.iter().for_each(|client| cache.set(*client, Performance::default(), now_ns));
            due.into_iter().collect::<std::collections::HashSet<_>>()
        };
        let (first, second) = (read_those_due(0), read_those_due(1));
        assert_eq!((first.len(), second.len()), (READS_MAX, READS_MAX));
        assert!(first.is_disjoint(&second), "some wait for their first one");
        assert_eq!(read_those_due(2 * FRESH_NS), first);
    }

    #[test]
    fn a_performance_is_read_when_it_is_asked_for_and_old() {
        let cache = PerformanceCache::default();
        let client = ClientId::from(Uuid::from_u128(1));
        assert_eq!(cache.due(0), []);
        assert_eq!(cache.get(client), None);
        assert_eq!(cache.due(0), [client]);
        let orders = (0..10).map(|_| ended("bank", None, true, 60));
        cache.set(client, Performance::of(orders.collect()), 0);
        assert!(cache.due(FRESH_NS).is_empty(), "nobody asked for it");
        assert!(cache.get(client).is_some());
        assert!(cache.due(FRESH_NS - 1).is_empty(), "it is fresh");
        assert_eq!(cache.due(FRESH_NS), [client]);
        cache.set(client, Performance::default(), 0);
        assert!(cache.due(KEPT_NS).is_empty());
        assert!(cache.0.read().unwrap().is_empty(), "it was forgotten");
    }
}
