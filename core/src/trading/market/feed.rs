//! Prices from HTTP sources (`prices.source = "http"`): one reading of every source per interval.
//!
//! Every edge reads; a price that any of them has written lately is left alone, so several edges
//! ask and write no more than about one would. What cannot be read is not guessed: the last price
//! stays and ages, and is not quoted once it is too old (ER008). A price that the operator sets for
//! a pair with a source lasts until the next reading.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::StreamExt as _;
use reqwest::redirect;
use rust_decimal::Decimal;
use serde_json::Value;

use crate::Core;
use crate::platform::error::{Error, Result};
use crate::platform::revision::catalogue_changed;
use crate::platform::settings::{PriceSource, Prices};
use rampart_types::{CallbackUrl, LoopbackHttp, PairCode, decimal};

/// Longest time for one reading, from the name's lookup to the last byte.
const READING: Duration = Duration::from_secs(5);
/// Largest answer of a source, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Sources asked at once.
const READINGS_AT_ONCE: usize = 8;

/// The configured sources, and what asks them.
#[derive(Debug)]
pub struct PriceFeed {
    http: reqwest::Client,
    sources: Vec<Source>,
    interval: Duration,
}

/// Where one pair's price is read.
#[derive(Debug)]
struct Source {
    pair: PairCode,
    url: CallbackUrl,
    pointer: String,
}

/// A price as it was read.
#[derive(Debug)]
struct Reading {
    pair: PairCode,
    price: Decimal,
}

/// Why a source gave no price. Never with the URL, which may hold an access key.
#[derive(Debug)]
enum NoPrice {
    Http(reqwest::Error),
    Status(u16),
    TooLarge,
    NotJson,
    NotAPrice,
}

impl fmt::Display for NoPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(error) => write!(f, "{error}"),
            Self::Status(status) => write!(f, "it answered {status}"),
            Self::TooLarge => write!(f, "its answer has more than {ANSWER_BYTES_MAX} bytes"),
            Self::NotJson => f.write_str("its answer is not JSON"),
            Self::NotAPrice => f.write_str("no number above zero stands at the pointer"),
        }
    }
}

impl PriceFeed {
    /// The feed that the settings ask for; `None` while the operator sets prices by hand.
    ///
    /// # Errors
    /// When a pair, URL or pointer cannot be one: https only, http on loopback.
    pub(crate) fn new(settings: &Prices) -> Result<Option<Self>> {
        if settings.source == PriceSource::Static {
            return Ok(None);
        }
        let mut sources = Vec::new();
        for (pair, source) in &settings.sources {
            if !source.pointer.starts_with('/') {
                return Err(Error::broken("read prices.sources: a pointer starts with a slash"));
            }
            sources.push(Source {
                pair: pair.parse().map_err(|e| Error::internal("read prices.sources", e))?,
                // The rule is the same as for a callback.
                url: CallbackUrl::parse(&source.url, LoopbackHttp::Allowed)
                    .map_err(|e| Error::internal("read prices.sources", e))?,
                pointer: source.pointer.clone(),
            });
        }
        // The client takes the process's provider; a second installation changes nothing.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::builder()
            .user_agent(concat!("rampart/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .timeout(READING)
            .build()
            .map_err(|e| Error::internal("make the price feed's client", e))?;
        let interval = Duration::from_secs(settings.interval_seconds.max(1).into());
        Ok(Some(Self { http, sources, interval }))
    }

    /// Time between two readings of a source.
    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    /// Reads every source whose price is due, and writes what was read.
    ///
    /// # Errors
    /// When the database cannot be written. A source that gives no price is logged.
    pub async fn refresh(&self, core: &Core) -> Result<()> {
        // The time of asking: an age counted from it is never too young.
        let now = core.clock.now();
        let due_before = now - TimeDelta::from_std(self.interval / 2).unwrap_or_default();
        let catalogue = core.snapshots.current().catalogue.clone();
        let due = self.sources.iter().filter(|source| {
            let price = catalogue.pairs.get(&source.pair).map(|pair| &pair.price);
            price.is_some_and(|price| {
                price.as_ref().is_none_or(|price| price.fixed || price.observed_at <= due_before)
            })
        });
        let asked: Vec<_> = due.map(|source| self.ask(source)).collect();
        let answered = futures::stream::iter(asked).buffer_unordered(READINGS_AT_ONCE);
        let answered: Vec<Option<Reading>> = answered.collect().await;
        let mut readings: Vec<Reading> = answered.into_iter().flatten().collect();
        // One order of locking on every edge.
        readings.sort_by_key(|reading| reading.pair);
        write(core, &readings, now, due_before).await
    }

    async fn ask(&self, source: &Source) -> Option<Reading> {
        match self.read(source).await {
            Ok(price) => Some(Reading { pair: source.pair, price }),
            Err(reason) => {
                tracing::warn!(pair = %source.pair, %reason, "a source gave no price");
                None
            }
        }
    }

    async fn read(&self, source: &Source) -> Result<Decimal, NoPrice> {
        let failed = |error: reqwest::Error| NoPrice::Http(error.without_url());
        let mut response = self.http.get(source.url.url().clone()).send().await.map_err(failed)?;
        if response.status() != http::StatusCode::OK {
            return Err(NoPrice::Status(response.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(NoPrice::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        price_at(&body, &source.pointer)
    }
}

/// The number, or numeric string, at a JSON pointer (RFC 6901), exactly.
fn price_at(body: &[u8], pointer: &str) -> Result<Decimal, NoPrice> {
    let document: Value = serde_json::from_slice(body).map_err(|_| NoPrice::NotJson)?;
    let price = document.pointer(pointer).and_then(decimal::from_number_or_text);
    price.filter(|price| *price > Decimal::ZERO).ok_or(NoPrice::NotAPrice)
}

/// Writes what no edge has written since `due_before`.
async fn write(
    core: &Core,
    readings: &[Reading],
    now: DateTime<Utc>,
    due_before: DateTime<Utc>,
) -> Result<()> {
    if readings.is_empty() {
        return Ok(());
    }
    let mut transaction = core.db.begin().await?;
    let mut written = 0;
    for reading in readings {
        let done = sqlx::query!(
            "insert into price as known (pair, price, fixed, observed_at) \
             values ($1, $2, false, $3) \
             on conflict (pair) do update \
             set price = excluded.price, fixed = false, observed_at = excluded.observed_at \
             where known.fixed or known.observed_at <= $4",
            reading.pair.to_string(),
            reading.price,
            now,
            due_before,
        )
        .execute(&mut *transaction)
        .await?;
        written += done.rows_affected();
    }
    if written > 0 {
        catalogue_changed(&mut transaction).await?;
        transaction.commit().await?;
    }
    Ok(())
}

impl Core {
    /// Shows the age of every price in the metrics, those set by hand too.
    pub(crate) fn show_price_ages(&self) {
        let now = self.clock.now();
        for pair in self.snapshots.current().catalogue.pairs.values() {
            if let Some(price) = &pair.price {
                let age = (now - price.observed_at).num_seconds().max(0);
                self.metrics.price_age.with_label_values(&[&pair.code.to_string()]).set(age);
            }
        }
    }
}

#[cfg(test)]
mod tests;
