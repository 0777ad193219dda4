//! Prices from HTTP sources (`prices.sources`): each source is polled once per interval.
//!
//! A reading is stored as the source gave it, with the source's own time; the price of its pair
//! follows from the fresh readings of all its sources, in the same transaction (`median.rs`). Every
//! edge polls, but skips a source that any of them has read lately, so several edges send about as
//! many requests as one.

mod median;
mod source;
mod store;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::TimeDelta;
use futures::StreamExt as _;
use reqwest::redirect;
use rust_decimal::prelude::ToPrimitive as _;

use self::median::Rules;
use self::source::{Reading, Source};
use crate::Core;
use crate::platform::error::Result;
use crate::platform::settings::Prices;
use rampart_types::PairCode;

/// Longest time for one request, from the name lookup to the last byte.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two writes of the prices that have arrived, while slow sources are waited for.
const PROMPT: Duration = Duration::from_secs(1);
/// Concurrent requests to sources.
const CONCURRENT_REQUESTS: usize = 32;

/// The configured sources and the HTTP client for them.
#[derive(Debug)]
pub struct PriceFeed {
    http: reqwest::Client,
    sources: Vec<Source>,
    rules: Rules,
    interval: Duration,
}

impl PriceFeed {
    /// The configured feed; `None` while the operator sets prices by hand.
    ///
    /// # Errors
    /// One sentence when a setting, a pair, URL or pointer is invalid, or a pair has no source:
    /// https only, http on loopback.
    pub(crate) fn new(settings: &Prices) -> Result<Option<Self>, String> {
        settings.check()?;
        if !settings.are_read() {
            return Ok(None);
        }
        let least = usize::try_from(settings.sources_min).unwrap_or(usize::MAX);
        let mut sources = Vec::new();
        for (name, configured) in &settings.sources {
            let pair: PairCode = name
                .parse()
                .map_err(|_| format!("prices.sources names '{name}', which is no currency pair"))?;
            if configured.is_empty() {
                return Err(format!("prices.sources.{name} names no source"));
            }
            let before = sources.len();
            for one in configured {
                let source = Source::new(pair, one)?;
                if sources[before..].iter().any(|other: &Source| other.name == source.name) {
                    return Err(format!("prices.sources.{name} has the same source twice"));
                }
                sources.push(source);
            }
        }
        // The HTTP client uses the process's TLS provider; a second installation changes nothing.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::builder()
            .user_agent(concat!("rampart/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .timeout(REQUEST_TIMEOUT)
            .build()
            .map_err(|e| format!("no HTTP client for prices.sources can be made: {e}"))?;
        let rules = Rules {
            sources_min: least,
            deviation_percent_max: settings.deviation_max,
            max_age_seconds: settings.max_age_seconds,
        };
        let interval = Duration::from_secs(settings.interval_seconds.max(1).into());
        let feed = Self { http, sources, rules, interval };
        for short in feed.short_pairs() {
            tracing::warn!("{short}: they give the pair no price");
        }
        Ok(Some(feed))
    }

    /// A phrase for each pair that no number of fresh sources can open.
    pub(crate) fn short_pairs(&self) -> Vec<String> {
        let least = self.rules.sources_min;
        let names = self.names().into_iter().map(|(pair, names)| (pair, names.len()));
        let short = names.filter(|(_, sources)| *sources < least).map(|(pair, sources)| {
            format!(
                "prices.sources.{pair} has fewer sources ({sources}) than prices.sources_min \
                 ({least})"
            )
        });
        short.collect()
    }

    /// Time between two polls of a source.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Names of the sources that count, by pair.
    pub fn names(&self) -> BTreeMap<PairCode, Vec<String>> {
        let mut names: BTreeMap<PairCode, Vec<String>> = BTreeMap::new();
        for source in &self.sources {
            names.entry(source.pair).or_default().push(source.name.clone());
        }
        names
    }

    /// True if a source of the pair is configured.
    fn reads(&self, pair: PairCode) -> bool {
        self.sources.iter().any(|source| source.pair == pair)
    }

    /// Polls every source that is due, and stores what it says and what follows. A slow source
    /// delays no other one's price by more than a second.
    ///
    /// # Errors
    /// When the database cannot be used. A source that gives no price is logged.
    pub async fn refresh(&self, core: &Core) -> Result<()> {
        // The time of the request, so that no reading is taken for later than it is.
        let asked_at = core.clock.now();
        let due_before = asked_at - TimeDelta::from_std(self.interval / 2).unwrap_or_default();
        let recent = store::read_since(core, due_before).await?;
        let due = self.sources.iter().filter(|source| !recent.contains(&source.key()));
        let requests: Vec<_> = due.map(|source| self.poll(core, source)).collect();
        let mut answers = futures::stream::iter(requests).buffer_unordered(CONCURRENT_REQUESTS);
        loop {
            let mut readings = Vec::new();
            let prompt = async {
                while let Some(answer) = answers.next().await {
                    readings.extend(answer);
                }
            };
            let is_done = tokio::time::timeout(PROMPT, prompt).await.is_ok();
            store::store(core, self, readings, asked_at).await?;
            if is_done {
                return Ok(());
            }
        }
    }

    async fn poll(&self, core: &Core, source: &Source) -> Option<Reading> {
        let read = source.read(&self.http).await;
        match read.and_then(|reading| reading.seen_at(core.clock.now())) {
            Ok(reading) => Some(reading),
            Err(reason) => {
                let (pair, source) = (source.pair, &source.name);
                tracing::warn!(%pair, source, %reason, "a source gave no price");
                None
            }
        }
    }
}

impl Core {
    /// Sets the metrics of every price, those set by hand too: its age, whether that closes a pair
    /// that is offered, and how far away the price is that its sources say instead. A pair whose
    /// sources have never given a price is closed as by an old one.
    pub(crate) fn update_price_gauges(&self) {
        let now = self.clock.now();
        for pair in self.snapshots.current().catalogue.pairs.values() {
            let code = pair.code.to_string();
            let is_old = match &pair.price {
                Some(price) => !price.is_fresh(now),
                None => self.price_feed.as_ref().is_some_and(|feed| feed.reads(pair.code)),
            };
            let is_stale = pair.is_offered() && is_old;
            self.metrics.price_stale.with_label_values(&[&code]).set(is_stale.into());
            let Some(price) = &pair.price else { continue };
            let age = (now - price.observed_at).num_seconds().max(0);
            self.metrics.price_age.with_label_values(&[&code]).set(age);
            let deviation = price.deviation().and_then(|deviation| deviation.to_f64());
            let shown = self.metrics.price_deviation.with_label_values(&[&code]);
            shown.set(deviation.unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests;
