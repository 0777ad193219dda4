//! Series with a partner's label: only active partners have them, and only so many partners.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::StatusCode;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use prometheus::{IntCounter, IntCounterVec};

/// Status label of a request whose client did not wait for the answer.
pub(super) const ABORTED: &str = "aborted";

/// One series of a partner, without the partner's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Series {
    /// Requests of a route that were answered with a status; 0 for one that nobody waited for.
    Requests { route: &'static str, status: u16 },
    /// Requests refused by the rate limit of a bucket.
    RateLimited { bucket: &'static str },
    /// Calls of its policy of a kind with an outcome.
    PolicyCalls { kind: &'static str, outcome: &'static str },
    /// Shadow runs of its policy of a kind with an outcome.
    PolicyShadow { kind: &'static str, outcome: &'static str },
    /// Replay tokens of its payloads that are remembered for good.
    UndatedReplayTokens,
}

/// The families that have a partner's label.
#[derive(Clone, Debug)]
pub(super) struct Families {
    pub(super) requests: IntCounterVec,
    pub(super) rate_limited: IntCounterVec,
    pub(super) policy_calls: IntCounterVec,
    pub(super) policy_shadow: IntCounterVec,
    pub(super) replay_tokens_undated: IntCounterVec,
    /// Counts the partners whose series were dropped.
    pub(super) partner_series_dropped: IntCounterVec,
}

impl Families {
    /// Calls `with` with the family of a series and the series' labels, in their order.
    fn labelled<T>(
        &self,
        series: Series,
        partner: &str,
        with: impl FnOnce(&IntCounterVec, &[&str]) -> T,
    ) -> T {
        match series {
            Series::Requests { route, status } => {
                let status = StatusCode::from_u16(status);
                let text = status.as_ref().map_or(ABORTED, StatusCode::as_str);
                with(&self.requests, &[route, partner, text])
            }
            Series::RateLimited { bucket } => with(&self.rate_limited, &[bucket, partner]),
            Series::PolicyCalls { kind, outcome } => {
                with(&self.policy_calls, &[kind, partner, outcome])
            }
            Series::PolicyShadow { kind, outcome } => {
                with(&self.policy_shadow, &[kind, partner, outcome])
            }
            Series::UndatedReplayTokens => with(&self.replay_tokens_undated, &[partner]),
        }
    }

    fn counter(&self, series: Series, partner: &str) -> IntCounter {
        self.labelled(series, partner, |family, labels| family.with_label_values(labels))
    }

    fn remove(&self, series: Series, partner: &str) {
        // It may be gone already: then it is as it should be.
        let _ = self.labelled(series, partner, |family, labels| family.remove_label_values(labels));
    }
}

/// The series of every partner that is active, at most a number of partners: the least recently
/// active one is dropped.
#[derive(Clone)]
pub(super) struct PartnerSeries {
    families: Families,
    partners: Cache<Arc<str>, Arc<OnePartner>>,
}

rampart_types::opaque_debug!(PartnerSeries);

/// The counters of one partner; `None` once they were dropped.
#[derive(Debug)]
struct OnePartner(Mutex<Option<HashMap<Series, IntCounter>>>);

impl PartnerSeries {
    /// For at most `partners_max` partners.
    pub(super) fn new(families: Families, partners_max: u64) -> Self {
        let dropping = families.clone();
        let partners = Cache::builder()
            .max_capacity(partners_max)
            .eviction_policy(EvictionPolicy::lru())
            .eviction_listener(move |partner: Arc<Arc<str>>, counters: Arc<OnePartner>, _| {
                counters.drop_series(&dropping, &partner);
            })
            .build();
        Self { families, partners }
    }

    /// The counter of a series. Without a partner it is never dropped.
    pub(super) fn counter(&self, partner: &str, series: Series) -> IntCounter {
        if partner.is_empty() {
            return self.families.counter(series, partner);
        }
        loop {
            let counters = self.partners.get(partner).unwrap_or_else(|| {
                self.partners.get_with(partner.into(), || {
                    Arc::new(OnePartner(Mutex::new(Some(HashMap::new()))))
                })
            });
            if let Some(counter) = counters.counter(&self.families, partner, series) {
                return counter;
            }
            // Dropped in this moment: the next look finds a new entry.
            self.partners.run_pending_tasks();
        }
    }

    /// True if this partner has series.
    pub(super) fn contains(&self, partner: &str) -> bool {
        self.partners.contains_key(partner)
    }

    /// Drops what is beyond the bound.
    pub(super) fn settle(&self) {
        self.partners.run_pending_tasks();
    }
}

impl OnePartner {
    fn counter(&self, families: &Families, partner: &str, series: Series) -> Option<IntCounter> {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counters = counters.as_mut()?;
        let counter = counters.entry(series).or_insert_with(|| families.counter(series, partner));
        Some(counter.clone())
    }

    fn drop_series(&self, families: &Families, partner: &str) {
        let dropped = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        for series in dropped.iter().flat_map(HashMap::keys) {
            families.remove(*series, partner);
        }
        families.partner_series_dropped.with_label_values::<&str>(&[]).inc();
    }
}
