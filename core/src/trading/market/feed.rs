//! Prices from HTTP sources (`prices.source = "http"`): each source is polled once per interval.
//!
//! Every edge polls, but skips a price that any of them has stored lately, so several edges send
//! about as many requests as one. If a source fails, its last price stays until it is stale
//! (ER008). A price that the operator sets for a pair with a source lasts until the next poll.

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

/// Longest time for one request, from the name lookup to the last byte.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest response body of a source, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Concurrent requests to sources.
const CONCURRENT_REQUESTS: usize = 8;

/// The configured sources and the HTTP client for them.
#[derive(Debug)]
pub struct PriceFeed {
    http: reqwest::Client,
    sources: Vec<Source>,
    interval: Duration,
}

/// The source of one pair's price.
#[derive(Debug)]
struct Source {
    pair: PairCode,
    url: CallbackUrl,
    pointer: String,
}

/// A price from a source.
#[derive(Debug)]
struct FetchedPrice {
    pair: PairCode,
    price: Decimal,
}

/// Reason that a source gave no price. Never with the URL, which may hold an access key.
#[derive(Debug)]
enum SourceError {
    Http(reqwest::Error),
    Status(u16),
    TooLarge,
    NotJson,
    NoPrice,
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(error) => write!(f, "{error}"),
            Self::Status(status) => write!(f, "it answered {status}"),
            Self::TooLarge => write!(f, "its answer has more than {BODY_BYTES_MAX} bytes"),
            Self::NotJson => f.write_str("its answer is not JSON"),
            Self::NoPrice => f.write_str("no number above zero stands at the pointer"),
        }
    }
}

impl PriceFeed {
    /// The configured feed; `None` while the operator sets prices by hand.
    ///
    /// # Errors
    /// When a pair, URL or pointer is invalid: https only, http on loopback.
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
                // The same rule as for a callback.
                url: CallbackUrl::parse(&source.url, LoopbackHttp::Allowed)
                    .map_err(|e| Error::internal("read prices.sources", e))?,
                pointer: source.pointer.clone(),
            });
        }
        // The HTTP client uses the process's TLS provider; a second installation changes nothing.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::builder()
            .user_agent(concat!("rampart/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .timeout(REQUEST_TIMEOUT)
            .build()
            .map_err(|e| Error::internal("make the price feed's client", e))?;
        let interval = Duration::from_secs(settings.interval_seconds.max(1).into());
        Ok(Some(Self { http, sources, interval }))
    }

    /// Time between two polls of a source.
    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    /// Polls every source whose price is due, and stores the prices.
    ///
    /// # Errors
    /// When the database cannot be written. A source that gives no price is logged.
    pub async fn refresh(&self, core: &Core) -> Result<()> {
        // The time of the request, so that a price is never taken for younger than it is.
        let now = core.clock.now();
        let due_before = now - TimeDelta::from_std(self.interval / 2).unwrap_or_default();
        let catalogue = core.snapshots.current().catalogue.clone();
        let due = self.sources.iter().filter(|source| {
            let price = catalogue.pairs.get(&source.pair).map(|pair| &pair.price);
            price.is_some_and(|price| {
                price.as_ref().is_none_or(|price| price.fixed || price.observed_at <= due_before)
            })
        });
        let requests: Vec<_> = due.map(|source| self.poll(source)).collect();
        let fetched = futures::stream::iter(requests).buffer_unordered(CONCURRENT_REQUESTS);
        let fetched: Vec<Option<FetchedPrice>> = fetched.collect().await;
        let mut prices: Vec<FetchedPrice> = fetched.into_iter().flatten().collect();
        // Edges that lock rows in one order cannot deadlock.
        prices.sort_by_key(|price| price.pair);
        write(core, &prices, now, due_before).await
    }

    async fn poll(&self, source: &Source) -> Option<FetchedPrice> {
        match self.read(source).await {
            Ok(price) => Some(FetchedPrice { pair: source.pair, price }),
            Err(reason) => {
                tracing::warn!(pair = %source.pair, %reason, "a source gave no price");
                None
            }
        }
    }

    async fn read(&self, source: &Source) -> Result<Decimal, SourceError> {
        let failed = |error: reqwest::Error| SourceError::Http(error.without_url());
        let mut response = self.http.get(source.url.url().clone()).send().await.map_err(failed)?;
        if response.status() != http::StatusCode::OK {
            return Err(SourceError::Status(response.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > BODY_BYTES_MAX {
                return Err(SourceError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        price_at(&body, &source.pointer)
    }
}

/// The number, or numeric string, at a JSON pointer (RFC 6901), exactly.
fn price_at(body: &[u8], pointer: &str) -> Result<Decimal, SourceError> {
    let document: Value = serde_json::from_slice(body).map_err(|_| SourceError::NotJson)?;
    let price = document.pointer(pointer).and_then(decimal::from_number_or_text);
    price.filter(|price| *price > Decimal::ZERO).ok_or(SourceError::NoPrice)
}

/// Stores the prices that no edge has stored since `due_before`.
async fn write(
    core: &Core,
    prices: &[FetchedPrice],
    now: DateTime<Utc>,
    due_before: DateTime<Utc>,
) -> Result<()> {
    if prices.is_empty() {
        return Ok(());
    }
    let mut transaction = core.db.begin().await?;
    let mut stored = 0;
    for price in prices {
        let done = sqlx::query!(
            "insert into price as known (pair, price, fixed, observed_at) \
             values ($1, $2, false, $3) \
             on conflict (pair) do update \
             set price = excluded.price, fixed = false, observed_at = excluded.observed_at \
             where known.fixed or known.observed_at <= $4",
            price.pair.to_string(),
            price.price,
            now,
            due_before,
        )
        .execute(&mut *transaction)
        .await?;
        stored += done.rows_affected();
    }
    if stored > 0 {
        catalogue_changed(&mut transaction).await?;
        transaction.commit().await?;
    }
    Ok(())
}

impl Core {
    /// Sets the metric of every price's age, those set by hand too.
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
