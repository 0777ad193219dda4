//! One HTTP source of a pair's price.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde_json::Value;

use crate::http::fields;
use crate::platform::crypto::sha256;
use crate::platform::settings::HttpPrice;
use rampart_types::{CallbackUrl, LoopbackHttp, PairCode, decimal};

/// Largest response body of a source, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Largest time by which a source's clock may be ahead of the database's.
const AHEAD_MAX: TimeDelta = TimeDelta::seconds(5);
/// Bytes of a digest that tell the sources of one host apart.
const DIGEST_BYTES: usize = 4;
/// A number of this size or more counts milliseconds since 1970, not seconds.
const MILLISECONDS_MIN: Decimal = Decimal::from_parts(1_215_752_192, 23, 0, false, 0);

/// A source of one pair's price.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) pair: PairCode,
    /// Its host and a digest of the rest: a URL may hold an access key.
    pub(super) name: String,
    url: CallbackUrl,
    pointer: String,
    time_pointer: String,
}

/// The price that a source gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) pair: PairCode,
    pub(super) source: String,
    pub(super) price: Decimal,
    /// By the source's clock.
    pub(super) observed_at: DateTime<Utc>,
}

impl Reading {
    /// The reading of a price observed now. A clock that is a little ahead is taken for right.
    ///
    /// # Errors
    /// When the source's time is so far ahead that the price would look fresh for too long.
    pub(super) fn seen_at(self, now: DateTime<Utc>) -> Result<Self, SourceError> {
        if self.observed_at > now + AHEAD_MAX {
            return Err(SourceError::Ahead);
        }
        Ok(Self { observed_at: self.observed_at.min(now), ..self })
    }
}

/// Reason that a source gave no price. Never with the URL, which may hold an access key.
#[derive(Debug)]
pub(super) enum SourceError {
    Http(reqwest::Error),
    Status(u16),
    TooLarge,
    NotJson,
    NoPrice,
    NoTime,
    Ahead,
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(error) => write!(f, "{error}"),
            Self::Status(status) => write!(f, "it answered {status}"),
            Self::TooLarge => write!(f, "its answer has more than {BODY_BYTES_MAX} bytes"),
            Self::NotJson => f.write_str("its answer is not JSON"),
            Self::NoPrice => f.write_str("no number above zero stands at the pointer"),
            Self::NoTime => f.write_str("no time stands at the time pointer"),
            Self::Ahead => write!(f, "its time is more than {} s ahead", AHEAD_MAX.num_seconds()),
        }
    }
}

impl Source {
    /// The configured source of this pair.
    ///
    /// # Errors
    /// One sentence when the URL or a pointer is invalid: https only, http on loopback.
    pub(super) fn new(pair: PairCode, configured: &HttpPrice) -> Result<Self, String> {
        let HttpPrice { url, pointer, time_pointer } = configured;
        if [pointer, time_pointer].iter().any(|pointer| !pointer.starts_with('/')) {
            return Err(format!(
                "prices.sources.{pair} has a pointer that does not begin with a slash"
            ));
        }
        // The same rule as for a callback.
        let parsed = CallbackUrl::parse(url, LoopbackHttp::Allowed).map_err(|_| {
            format!("prices.sources.{pair} has a URL that is neither https nor http on loopback")
        })?;
        let host = parsed.url().host_str().unwrap_or_default();
        let rest = sha256(&[url, pointer, time_pointer].map(|s| &**s).join("\n"));
        let rest = hex::encode(&rest[..DIGEST_BYTES]);
        Ok(Self {
            pair,
            name: format!("{host}#{rest}"),
            url: parsed,
            pointer: pointer.clone(),
            time_pointer: time_pointer.clone(),
        })
    }

    /// Pair and name, which its readings are stored under.
    pub(super) fn key(&self) -> (String, String) {
        (self.pair.to_string(), self.name.clone())
    }

    /// Asks it for its price.
    ///
    /// # Errors
    /// When it gives none.
    pub(super) async fn read(&self, http: &reqwest::Client) -> Result<Reading, SourceError> {
        let failed = |error: reqwest::Error| SourceError::Http(error.without_url());
        let mut response = http.get(self.url.url().clone()).send().await.map_err(failed)?;
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
        self.reading(&body)
    }

    /// The number, or numeric string, at the JSON pointer (RFC 6901), exactly, and the time at the
    /// other.
    fn reading(&self, body: &[u8]) -> Result<Reading, SourceError> {
        let document = fields::parse(body).map_err(|_| SourceError::NotJson)?;
        let price = document.pointer(&self.pointer).and_then(decimal::from_number_or_text);
        let price = price.filter(|price| *price > Decimal::ZERO).ok_or(SourceError::NoPrice)?;
        let observed_at = document.pointer(&self.time_pointer).and_then(time_of);
        let observed_at = observed_at.ok_or(SourceError::NoTime)?;
        Ok(Reading { pair: self.pair, source: self.name.clone(), price, observed_at })
    }
}

/// A time since 1970: RFC 3339, or a number or numeric string of seconds or milliseconds. Postgres
/// refuses one that is long before, and with it what all other sources have said.
fn time_of(value: &Value) -> Option<DateTime<Utc>> {
    if let Some(time) = value.as_str().and_then(|text| DateTime::parse_from_rfc3339(text).ok()) {
        return Some(time.to_utc()).filter(|time| *time >= DateTime::UNIX_EPOCH);
    }
    let number = decimal::from_number_or_text(value).filter(|number| *number >= Decimal::ZERO)?;
    let milliseconds = match number >= MILLISECONDS_MIN {
        true => number,
        false => number.checked_mul(Decimal::ONE_THOUSAND)?,
    };
    DateTime::from_timestamp_millis(milliseconds.floor().to_i64()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(url: &str, pointer: &str, time_pointer: &str) -> HttpPrice {
        let [url, pointer, time_pointer] = [url, pointer, time_pointer].map(str::to_owned);
        HttpPrice { url, pointer, time_pointer }
    }

    fn source(url: &str, pointer: &str, time_pointer: &str) -> Result<Source, String> {
        Source::new("BTC-EUR".parse().unwrap(), &configured(url, pointer, time_pointer))
    }

    fn time(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn a_source_is_https_or_on_this_machine() {
        for (url, pointer, time) in [
            ("http://prices.example/ticker", "/price", "/time"),
            ("ftp://prices.example", "/price", "/time"),
            ("prices.example", "/price", "/time"),
            ("https://prices.example/ticker", "price", "/time"),
            ("https://prices.example/ticker", "/price", ""),
        ] {
            let sentence = source(url, pointer, time).unwrap_err();
            assert!(sentence.starts_with("prices.sources.BTC-EUR "), "{sentence}");
        }
        for url in ["https://prices.example/x", "http://127.0.0.1:1/x", "http://[::1]/x"] {
            assert!(source(url, "/price", "/time").is_ok(), "{url}");
        }
    }

    #[test]
    fn a_name_tells_sources_apart_and_hides_their_keys() {
        let one = source("https://prices.example/x?key=secret", "/a", "/t").unwrap().name;
        let other = source("https://prices.example/x?key=secret", "/b", "/t").unwrap().name;
        assert_ne!(one, other);
        assert!(one.starts_with("prices.example#") && !one.contains("secret"), "{one}");
    }

    #[test]
    fn a_price_is_read_to_the_last_digit_with_its_time() {
        let source = source("https://prices.example/x", "/last/price", "/at").unwrap();
        let read = |body: &str| source.reading(body.as_bytes());
        let first = read(r#"{"last":{"price":90123.123456789012345},"at":1700000000}"#).unwrap();
        assert_eq!(first.price.to_string(), "90123.123456789012345");
        assert_eq!(first.observed_at, time("2023-11-14T22:13:20Z"));
        let text = read(r#"{"last":{"price":"0.10"},"at":"2023-11-14T22:13:20Z"}"#).unwrap();
        assert_eq!(text.price, Decimal::new(1, 1));
    }

    #[test]
    fn a_time_is_rfc_3339_or_seconds_or_milliseconds() {
        for (text, expected) in [
            (r#""2023-11-14T23:13:20+01:00""#, "2023-11-14T22:13:20Z"),
            ("1700000000", "2023-11-14T22:13:20Z"),
            (r#""1700000000.25""#, "2023-11-14T22:13:20.250Z"),
            ("1700000000250", "2023-11-14T22:13:20.250Z"),
            (r#""1700000000250""#, "2023-11-14T22:13:20.250Z"),
        ] {
            let value = serde_json::from_str(text).unwrap();
            assert_eq!(time_of(&value), Some(time(expected)), "{text}");
        }
        for text in ["null", "\"today\"", "true", "1e25", "[1]", "\"\""] {
            assert_eq!(time_of(&serde_json::from_str(text).unwrap()), None, "{text}");
        }
        for text in ["-3e11", "\"-1\"", "\"1969-12-31T23:59:59Z\""] {
            assert_eq!(time_of(&serde_json::from_str(text).unwrap()), None, "{text}");
        }
    }

    #[test]
    fn a_value_other_than_a_positive_number_gives_no_price() {
        let named = source("https://prices.example/x", "/price", "/time").unwrap();
        for price in ["0", "-1", "\"abc\"", "null", "[1]", "1e400"] {
            let body = format!(r#"{{"price":{price},"time":1}}"#);
            let read = named.reading(body.as_bytes());
            assert!(matches!(read, Err(SourceError::NoPrice)), "{body}: {read:?}");
        }
        assert!(named.reading(br#"{"price":1}"#).is_err());
        for body in
            [r#"{"price":1,"price":2,"time":1}"#, r#"{"$serde_json::private::RawValue":"1"}"#]
        {
            let read = named.reading(body.as_bytes());
            assert!(matches!(read, Err(SourceError::NotJson)), "{body}: {read:?}");
        }
        let numbered = source("https://prices.example/x", "/0/a~1b", "/1").unwrap();
        assert!(numbered.reading(br#"[{"a/b":1},2]"#).is_ok());
    }

    #[test]
    fn a_source_from_the_future_gives_no_price() {
        let source = source("https://prices.example/x", "/price", "/time").unwrap();
        let now = time("2026-03-01T12:00:00Z");
        let reading = source.reading(br#"{"price":1,"time":1}"#).unwrap();
        let read = |ahead| {
            let observed_at = now + TimeDelta::seconds(ahead);
            Reading { observed_at, ..reading.clone() }.seen_at(now)
        };
        assert_eq!(read(5).unwrap().observed_at, now);
        assert_eq!(read(-60).unwrap().observed_at, now - TimeDelta::seconds(60));
        assert!(read(6).is_err());
    }
}
