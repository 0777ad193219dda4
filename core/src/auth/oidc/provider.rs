//! Metadata of the provider: its endpoints and its keys (OpenID Connect Discovery), read at
//! the first login, kept, and read again when they are old or a token names an unknown key.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use http::StatusCode;
use josekit::jwk::Jwk;
use reqwest::{RequestBuilder, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use url::Url;

use super::refusal::Refusal;
use crate::http::fields;
use crate::platform::clock::Clock;
use crate::platform::http_client;

/// Path of the provider's document below its issuer.
const DOCUMENT: &str = "/.well-known/openid-configuration";
/// Age from which keys are read again.
const KEYS_AGE_MAX: Duration = Duration::from_secs(3_600);
/// Age from which keys that cannot be read again are believed no more.
const KEYS_STALE: Duration = Duration::from_secs(24 * 3_600);
/// Least time between two readings.
const READ_PAUSE: Duration = Duration::from_secs(60);
/// The same after one that failed.
const RETRY_PAUSE: Duration = Duration::from_secs(5);
/// Time for one request, from the name lookup to the last byte.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest answer of the provider, in bytes.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Most keys of a provider.
const KEYS_MAX: usize = 32;
/// Reasons for which it cannot be asked.
const AWAY: &str = "the provider does not answer";
const FAILING: &str = "the provider answers with an error";

/// The way to the provider, and what is known of it.
#[derive(Debug)]
pub(super) struct Connection {
    http: reqwest::Client,
    document: Url,
    known: ArcSwapOption<Metadata>,
    /// Held while it is read; the last reading.
    reading: Mutex<Option<LastReading>>,
}

#[derive(Debug, Clone, Copy)]
struct LastReading {
    at_ns: u64,
    failed: bool,
}

/// The provider as its document and its key set describe it.
#[derive(Debug)]
pub(super) struct Metadata {
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) keys: Vec<ProviderKey>,
    read_at_ns: u64,
}

/// A public key of the provider.
#[derive(Debug)]
pub(super) struct ProviderKey {
    pub(super) id: Option<String>,
    pub(super) jwk: Jwk,
}

/// The members of the provider's document that count.
#[derive(Deserialize)]
struct Document {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Map<String, Value>>,
}

impl Connection {
    /// Connects as needed.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub(super) fn new(issuer: &Url) -> Result<Self, String> {
        let http = http_client::builder()
            .timeout(REQUEST_TIMEOUT)
            .build()
            .map_err(|error| format!("the client for operators.oidc cannot be made: {error}"))?;
        let mut document = issuer.clone();
        document.set_path(&format!("{}{DOCUMENT}", issuer.path().trim_end_matches('/')));
        Ok(Self { http, document, known: ArcSwapOption::empty(), reading: Mutex::new(None) })
    }

    /// The provider as it is known; read now when that is too long ago.
    ///
    /// # Errors
    /// When it cannot be read, and was not for a day.
    pub(super) async fn metadata(
        &self,
        clock: &Clock,
        issuer: &str,
    ) -> Result<Arc<Metadata>, Refusal> {
        let age = |known: &Metadata| {
            Duration::from_nanos(clock.monotonic_ns().saturating_sub(known.read_at_ns))
        };
        if let Some(known) = self.known.load_full().filter(|known| age(known) < KEYS_AGE_MAX) {
            return Ok(known);
        }
        match self.refresh(clock, issuer).await {
            Err(Refusal::Unavailable(reason)) => {
                let known = self.known.load_full().filter(|known| age(known) < KEYS_STALE);
                known.ok_or(Refusal::Unavailable(reason))
            }
            read => read,
        }
    }

    /// Reads the provider again, unless that was done just now.
    ///
    /// # Errors
    /// When it cannot be read, or could not a moment ago.
    pub(super) async fn refresh(
        &self,
        clock: &Clock,
        issuer: &str,
    ) -> Result<Arc<Metadata>, Refusal> {
        let mut last = self.reading.lock().await;
        let at_ns = clock.monotonic_ns();
        if let Some(LastReading { at_ns: before, failed }) = *last {
            let pause = if failed { RETRY_PAUSE } else { READ_PAUSE };
            if Duration::from_nanos(at_ns.saturating_sub(before)) < pause {
                let known = self.known.load_full().filter(|_| !failed);
                return known.ok_or(Refusal::Unavailable("the provider could not be asked"));
            }
        }
        let read = self.read(issuer, at_ns).await;
        *last = Some(LastReading { at_ns: clock.monotonic_ns(), failed: read.is_err() });
        let read = Arc::new(read.map_err(unavailable)?);
        self.known.store(Some(Arc::clone(&read)));
        Ok(read)
    }

    async fn read(&self, issuer: &str, read_at_ns: u64) -> Result<Metadata, &'static str> {
        let document: Document = self.json(self.http.get(self.document.clone())).await?;
        if document.issuer != issuer {
            return Err("the provider's document names another issuer");
        }
        let authorization_endpoint = endpoint(&document.authorization_endpoint)?;
        let token_endpoint = endpoint(&document.token_endpoint)?;
        let keys = endpoint(&document.jwks_uri)?;
        let set: KeySet = self.json(self.http.get(keys)).await?;
        if set.keys.len() > KEYS_MAX {
            return Err("the provider has too many keys");
        }
        let keys = set.keys.into_iter().filter_map(ProviderKey::of).collect();
        Ok(Metadata { authorization_endpoint, token_endpoint, keys, read_at_ns })
    }

    /// The answer to a request, which must be 200 and JSON.
    pub(super) async fn json<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, &'static str> {
        let response = request.send().await.map_err(|_| AWAY)?;
        match response.status() {
            StatusCode::OK => read_answer(response).await,
            _ => Err(FAILING),
        }
    }

    /// The answer of the token endpoint to a code.
    ///
    /// # Errors
    /// That the code is wrong (RFC 6749, section 5.2), or the reason nobody can be asked.
    pub(super) async fn redeem<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, Refusal> {
        let response = request.send().await.map_err(|_| unavailable(AWAY))?;
        match response.status() {
            StatusCode::OK => read_answer(response).await.map_err(unavailable),
            StatusCode::BAD_REQUEST => Err(Refusal::WrongCode),
            _ => Err(unavailable(FAILING)),
        }
    }

    /// A request of the provider's token endpoint.
    pub(super) fn post(&self, url: Url) -> RequestBuilder {
        self.http.post(url)
    }
}

/// The refusal of a login because of a call that has failed, which is logged here: logins that wait for
/// the next call are not, however many are tried.
fn unavailable(reason: &'static str) -> Refusal {
    tracing::warn!(reason, "the provider of operators' logins cannot be used");
    Refusal::Unavailable(reason)
}

/// The JSON of an answer, read to its end.
async fn read_answer<T: DeserializeOwned>(mut response: Response) -> Result<T, &'static str> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| AWAY)? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err("the provider's answer is too long");
        }
        body.extend_from_slice(&chunk);
    }
    read(&body)
}

/// Reads an answer of the provider within the bounds of JSON.
///
/// # Errors
/// When it is no JSON, or not that of the type.
pub(super) fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, &'static str> {
    let document = fields::parse(answer).ok();
    let read = document.and_then(|document| serde_json::from_value(document).ok());
    read.ok_or("the provider's answer is not what it should be")
}

/// True for a URL that secrets may be sent to: TLS, or on this machine.
pub(super) fn is_safe(url: &Url) -> bool {
    let is_loopback = match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    };
    let is_plain = url.username().is_empty() && url.password().is_none();
    is_plain && url.has_host() && (url.scheme() == "https" || url.scheme() == "http" && is_loopback)
}

/// A URL that the provider's document names.
fn endpoint(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).ok().filter(is_safe);
    url.ok_or("an endpoint of the provider is not an https:// URL")
}

impl ProviderKey {
    /// A key of the set, without its id, which the header of a token need not name.
    fn of(mut members: Map<String, Value>) -> Option<Self> {
        let id = members.remove("kid").and_then(|id| id.as_str().map(str::to_owned));
        Some(Self { id, jwk: Jwk::from_map(members).ok()? })
    }
}

#[cfg(test)]
impl Metadata {
    /// A provider with these keys.
    pub(super) fn of_keys(keys: Vec<Map<String, Value>>) -> Self {
        let endpoint = || Url::parse("https://login.example.com/here").expect("a URL");
        Self {
            authorization_endpoint: endpoint(),
            token_endpoint: endpoint(),
            keys: keys.into_iter().filter_map(ProviderKey::of).collect(),
            read_at_ns: 0,
        }
    }
}
