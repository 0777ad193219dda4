//! The HTTP client for deliveries: checked addresses, no redirects, no proxy, bounded time and size.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use reqwest::{Client, Response, redirect};
use rustls::{ClientConfig, RootCertStore};
use url::Url;

use super::Message;
use super::schedule::parse_retry_after;
use super::target::{Forbidden, GuardedResolver, Reach};
use crate::platform::error::{Error, Result};
use crate::platform::lookups::Lookups;

/// Most concurrent attempts in one lane, so that no host can occupy the whole edge.
pub(super) const LANE_IN_FLIGHT_MAX: usize = 8;
/// Timeout of an attempt (section 8 of the contract).
pub(super) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout of connecting, as part of the attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a response body that are read, so that the connection can be reused.
const DRAIN_BYTES_MAX: usize = 16 * 1024;
/// Bytes of it that are kept for the partner to see.
const KEPT_BYTES_MAX: usize = 1_024;
/// Timeout of reading the body.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// Most idle connections per host, those of one lane, and their lifetime.
const IDLE_CONNECTIONS_MAX: usize = LANE_IN_FLIGHT_MAX;
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

const USER_AGENT: &str = concat!("Rampart/", env!("CARGO_PKG_VERSION"));

/// The HTTP clients for deliveries, one for each reach.
#[derive(Debug)]
pub struct Outbound {
    public: Client,
    public_or_loopback: Client,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// 2xx.
    Delivered(StatusCode),
    /// 410: the receiver refuses further deliveries.
    Gone,
    /// Not sent: its endpoint has been removed or disabled.
    Cancelled,
    /// Any other outcome.
    Failed(Failure),
}

/// The reason an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// 3xx: a redirect is not followed.
    Redirected(StatusCode),
    /// Another status, with the receiver's `Retry-After`.
    Status(StatusCode, Option<TimeDelta>),
    /// No response in time.
    TimedOut,
    /// No connection, no TLS, or one that broke.
    Unreachable,
    /// The target is out of reach.
    Forbidden,
    /// The client has no secret to sign with.
    Unsigned,
}

impl Outcome {
    /// The name for metrics and operators.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Delivered(_) => "delivered",
            Self::Gone => "gone",
            Self::Cancelled => "unwanted",
            Self::Failed(Failure::Redirected(_)) => "redirect",
            Self::Failed(Failure::Status(..)) => "status",
            Self::Failed(Failure::TimedOut) => "timeout",
            Self::Failed(Failure::Unreachable) => "unreachable",
            Self::Failed(Failure::Forbidden) => "forbidden",
            Self::Failed(Failure::Unsigned) => "unsigned",
        }
    }

    /// The status of the response, if there was one.
    pub(super) const fn status(self) -> Option<StatusCode> {
        match self {
            Self::Delivered(status)
            | Self::Failed(Failure::Redirected(status) | Failure::Status(status, _)) => {
                Some(status)
            }
            Self::Gone => Some(StatusCode::GONE),
            Self::Failed(Failure::TimedOut | Failure::Unreachable) => None,
            Self::Failed(Failure::Forbidden | Failure::Unsigned) | Self::Cancelled => None,
        }
    }

    /// True if it says something about the receiver, not about this side alone.
    pub(super) const fn concerns_receiver(self) -> bool {
        !matches!(self, Self::Cancelled | Self::Failed(Failure::Unsigned))
    }

    /// True if the host did not respond.
    pub(super) const fn is_unresponsive(self) -> bool {
        matches!(self, Self::Failed(Failure::TimedOut | Failure::Unreachable))
    }

    fn from_status(status: StatusCode, retry_after: Option<TimeDelta>) -> Self {
        match status {
            StatusCode::GONE => Self::Gone,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Self::Failed(Failure::Status(status, retry_after))
            }
            status if status.is_success() => Self::Delivered(status),
            status if status.is_redirection() => Self::Failed(Failure::Redirected(status)),
            status => Self::Failed(Failure::Status(status, None)),
        }
    }
}

impl Outbound {
    /// Builds the clients. Callbacks go to public hosts, so only the public certificate authorities
    /// are trusted, not those of the machine.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new() -> Result<Self> {
        Self::with_lookups(&Lookups::default())
    }

    /// Builds the clients, which look names up within these permits.
    fn with_lookups(lookups: &Lookups) -> Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::internal("set up TLS for callbacks", error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let client = |reach| {
            Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .dns_resolver(GuardedResolver { reach, lookups: lookups.clone() })
                .https_only(reach == Reach::Public)
                .redirect(redirect::Policy::none())
                .no_proxy()
                .referer(false)
                .user_agent(USER_AGENT)
                .timeout(ATTEMPT_TIMEOUT)
                .connect_timeout(CONNECT_TIMEOUT)
                .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
                .pool_idle_timeout(IDLE_TIMEOUT)
                .build()
                .map_err(|error| Error::internal("set up the callback client", error))
        };
        Ok(Self {
            public: client(Reach::Public)?,
            public_or_loopback: client(Reach::PublicOrLoopback)?,
        })
    }

    /// Sends a message to a URL that has been checked for this reach, with these headers besides. The
    /// outcome, and the beginning of the answer's body.
    pub(super) async fn post(
        &self,
        url: Url,
        reach: Reach,
        message: Message,
        signatures: &str,
        headers: HeaderMap,
        now: DateTime<Utc>,
    ) -> (Outcome, Option<String>) {
        let client = match reach {
            Reach::Public => &self.public,
            Reach::PublicOrLoopback => &self.public_or_loopback,
        };
        let request = client
            .post(url)
            .headers(headers)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", message.id.to_string())
            .header("webhook-timestamp", message.sent_at)
            .header("webhook-signature", signatures)
            .body(message.body);
        match request.send().await {
            Ok(response) => {
                let retry_after =
                    response.headers().get(RETRY_AFTER).and_then(|text| text.to_str().ok());
                let retry_after = retry_after.and_then(|text| parse_retry_after(text, now));
                let outcome = Outcome::from_status(response.status(), retry_after);
                (outcome, Some(drain(response).await))
            }
            Err(error) => (Outcome::Failed(classify(&error)), None),
        }
    }
}

/// Reads the body of a short response; its beginning.
async fn drain(mut response: Response) -> String {
    let (mut bytes, mut kept) = (0, Vec::new());
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            bytes += chunk.len();
            kept.extend_from_slice(&chunk[..chunk.len().min(KEPT_BYTES_MAX - kept.len())]);
            if bytes > DRAIN_BYTES_MAX {
                break;
            }
        }
    };
    // A longer or slower response only closes the connection.
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, read).await;
    // Postgres stores no U+0000.
    String::from_utf8_lossy(&kept).replace('\0', "\u{fffd}")
}

/// Classifies a transport error. Its text may hold the URL, so it is not logged.
fn classify(error: &reqwest::Error) -> Failure {
    let mut source: Option<&(dyn StdError + 'static)> = error.source();
    while let Some(inner) = source {
        if inner.is::<Forbidden>() {
            return Failure::Forbidden;
        }
        source = inner.source();
    }
    if error.is_timeout() { Failure::TimedOut } else { Failure::Unreachable }
}

#[cfg(test)]
mod tests {
    use rampart_types::ClientId;

    use super::super::target::for_partner;
    use super::*;
    use crate::platform::metrics::Metrics;

    #[test]
    fn every_outcome_is_counted_from_the_start() {
        let failures = [
            Failure::Redirected(StatusCode::FOUND),
            Failure::Status(StatusCode::BAD_REQUEST, None),
            Failure::TimedOut,
            Failure::Unreachable,
            Failure::Forbidden,
            Failure::Unsigned,
        ];
        let others = [Outcome::Delivered(StatusCode::OK), Outcome::Gone, Outcome::Cancelled];
        let outcomes: Vec<_> = failures.map(Outcome::Failed).into_iter().chain(others).collect();
        let metrics = Metrics::new(1).unwrap().render();
        let counted = outcomes.iter().filter(|outcome| {
            let name = outcome.name();
            metrics.contains(&format!("rampart_callback_attempts_total{{outcome=\"{name}\"}} 0"))
        });
        assert_eq!(counted.count(), outcomes.len(), "{metrics}");
        assert_eq!(metrics.matches("\nrampart_callback_attempts_total{").count(), outcomes.len());
    }

    #[test]
    fn only_2xx_is_a_success() {
        for code in 100..600 {
            let outcome = Outcome::from_status(StatusCode::from_u16(code).unwrap(), None);
            assert_eq!(matches!(outcome, Outcome::Delivered(_)), code / 100 == 2, "{code}");
            assert_eq!(outcome == Outcome::Gone, code == 410);
            assert_eq!(outcome.status().unwrap().as_u16(), code);
        }
    }

    #[test]
    fn retry_after_counts_for_429_and_503_only() {
        let retry_after = Some(TimeDelta::seconds(9));
        for (code, counts) in [(429, true), (503, true), (500, false), (502, false), (404, false)] {
            let status = StatusCode::from_u16(code).unwrap();
            let expected = Failure::Status(status, retry_after.filter(|_| counts));
            assert_eq!(Outcome::from_status(status, retry_after), Outcome::Failed(expected));
        }
    }

    /// Posts to this URL without validating it first, as if its name were public.
    async fn post(outbound: &Outbound, url: &str) -> (Outcome, Option<String>) {
        let message = Message {
            id: rampart_types::EventId::from(uuid::Uuid::nil()),
            sent_at: 1,
            body: String::new(),
        };
        let url = url.parse().unwrap();
        let (headers, now) = (HeaderMap::new(), DateTime::UNIX_EPOCH);
        outbound.post(url, Reach::Public, message, "v1,", headers, now).await
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_loopback_is_refused() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
        let outcome = post(&Outbound::new().unwrap(), &url).await;
        assert_eq!(outcome, (Outcome::Failed(Failure::Forbidden), None));
        let pending = futures::poll!(std::pin::pin!(listener.accept()));
        assert!(pending.is_pending(), "something connected");
    }

    #[tokio::test]
    async fn a_partner_whose_lookups_hang_leaves_the_others_theirs() {
        const URL: &str = "https://localhost:4000/";
        let lookups = Lookups::new(2, 1);
        let outbound = Outbound::with_lookups(&lookups).unwrap();
        let [one, other] = [1, 2].map(|number| ClientId::from(uuid::Uuid::from_u128(number)));
        let (end, ended) = std::sync::mpsc::sync_channel::<()>(1);
        let mut hung = Box::pin(lookups.run(Some(one), move || Ok(ended.recv().is_ok())));
        assert!(futures::poll!(hung.as_mut()).is_pending());
        let mut waiting = Box::pin(for_partner(one, post(&outbound, URL)));
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        let refused = (Outcome::Failed(Failure::Forbidden), None);
        assert_eq!(for_partner(other, post(&outbound, URL)).await, refused);
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        end.send(()).unwrap();
        assert!(hung.await.unwrap());
        assert_eq!(waiting.await, refused);
    }
}
