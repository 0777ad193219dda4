//! The HTTP client for deliveries: guarded names, no redirects, no proxy, bounded time and size.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use http::StatusCode;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response, redirect};
use rustls::{ClientConfig, RootCertStore};
use url::Url;

use super::Message;
use super::schedule::retry_after;
use super::target::{Forbidden, GuardedResolver, Reach};
use crate::platform::error::{Error, Result};

/// Time for a whole attempt (section 8 of the contract).
pub(super) const ATTEMPT_MAX: Duration = Duration::from_secs(15);
/// Time of it for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Most of an answer's body that is read, in bytes. Nobody looks at it: reading lets the
/// connection serve again.
const ANSWER_BYTES_MAX: usize = 16 * 1024;
/// Time for that.
const ANSWER_READ_MAX: Duration = Duration::from_secs(1);
/// Idle connections kept to one host, and for how long.
const IDLE_CONNECTIONS_MAX: usize = 4;
const IDLE_MAX: Duration = Duration::from_secs(30);

const USER_AGENT: &str = concat!("Rampart/", env!("CARGO_PKG_VERSION"));

/// The clients with which an edge calls partners, one for each reach.
#[derive(Debug)]
pub struct Outbound {
    public: Client,
    loopback_too: Client,
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// 2xx.
    Delivered(StatusCode),
    /// 410: the receiver wants no more of it.
    Gone,
    /// Nothing was sent: its endpoint has been removed or disabled.
    Unwanted,
    /// Anything else.
    Failed(Failure),
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// 3xx: a redirect is not followed.
    Redirected(StatusCode),
    /// Another status, and the pause that the receiver asks for.
    Answered(StatusCode, Option<TimeDelta>),
    /// No answer in time.
    TimedOut,
    /// No connection, no TLS, or one that broke.
    Unreachable,
    /// The target is out of the client's reach.
    Forbidden,
    /// The client has no secret to sign with.
    Unsigned,
}

impl Outcome {
    /// For metrics and operators.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Delivered(_) => "delivered",
            Self::Gone => "gone",
            Self::Unwanted => "unwanted",
            Self::Failed(Failure::Redirected(_)) => "redirect",
            Self::Failed(Failure::Answered(..)) => "status",
            Self::Failed(Failure::TimedOut) => "timeout",
            Self::Failed(Failure::Unreachable) => "unreachable",
            Self::Failed(Failure::Forbidden) => "forbidden",
            Self::Failed(Failure::Unsigned) => "unsigned",
        }
    }

    /// The status of the answer, if there was one.
    pub(super) const fn status(self) -> Option<StatusCode> {
        match self {
            Self::Delivered(status)
            | Self::Failed(Failure::Redirected(status) | Failure::Answered(status, _)) => {
                Some(status)
            }
            Self::Gone => Some(StatusCode::GONE),
            Self::Failed(Failure::TimedOut | Failure::Unreachable) => None,
            Self::Failed(Failure::Forbidden | Failure::Unsigned) | Self::Unwanted => None,
        }
    }

    /// Whether the host kept the attempt waiting instead of answering.
    pub(super) const fn hung(self) -> bool {
        matches!(self, Self::Failed(Failure::TimedOut | Failure::Unreachable))
    }

    fn of(status: StatusCode, asked: Option<TimeDelta>) -> Self {
        match status {
            StatusCode::GONE => Self::Gone,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Self::Failed(Failure::Answered(status, asked))
            }
            status if status.is_success() => Self::Delivered(status),
            status if status.is_redirection() => Self::Failed(Failure::Redirected(status)),
            status => Self::Failed(Failure::Answered(status, None)),
        }
    }
}

impl Outbound {
    /// Builds the clients. Callbacks go to public hosts, so the public certificate authorities are
    /// trusted and no other, whatever the machine has.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new() -> Result<Self> {
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
                .dns_resolver(GuardedResolver { reach })
                .https_only(reach == Reach::Public)
                .redirect(redirect::Policy::none())
                .no_proxy()
                .referer(false)
                .user_agent(USER_AGENT)
                .timeout(ATTEMPT_MAX)
                .connect_timeout(CONNECT_MAX)
                .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
                .pool_idle_timeout(IDLE_MAX)
                .build()
                .map_err(|error| Error::internal("set up the callback client", error))
        };
        Ok(Self { public: client(Reach::Public)?, loopback_too: client(Reach::PublicOrLoopback)? })
    }

    /// Sends a message to a URL that has been judged for this reach.
    pub(super) async fn post(
        &self,
        url: Url,
        reach: Reach,
        message: Message,
        signatures: &str,
        now: DateTime<Utc>,
    ) -> Outcome {
        let client = match reach {
            Reach::Public => &self.public,
            Reach::PublicOrLoopback => &self.loopback_too,
        };
        let request = client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", message.id.to_string())
            .header("webhook-timestamp", message.sent_at)
            .header("webhook-signature", signatures)
            .body(message.body);
        match request.send().await {
            Ok(response) => {
                let asked = response.headers().get(RETRY_AFTER).and_then(|text| text.to_str().ok());
                let asked = asked.and_then(|text| retry_after(text, now));
                let outcome = Outcome::of(response.status(), asked);
                drain(response).await;
                outcome
            }
            Err(error) => Outcome::Failed(cause(&error)),
        }
    }
}

/// Reads what is left of a short answer and forgets it.
async fn drain(mut response: Response) {
    let read = async {
        let mut bytes = 0;
        while let Ok(Some(chunk)) = response.chunk().await {
            bytes += chunk.len();
            if bytes > ANSWER_BYTES_MAX {
                break;
            }
        }
    };
    // An answer that is longer or slower costs its sender the connection, nothing else.
    let _ = tokio::time::timeout(ANSWER_READ_MAX, read).await;
}

/// What kind of failure a transport error is. Its text may hold the URL, so it goes nowhere.
fn cause(error: &reqwest::Error) -> Failure {
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
    use super::*;

    #[test]
    fn only_2xx_is_a_success() {
        for code in 100..600 {
            let outcome = Outcome::of(StatusCode::from_u16(code).unwrap(), None);
            assert_eq!(matches!(outcome, Outcome::Delivered(_)), code / 100 == 2, "{code}");
            assert_eq!(outcome == Outcome::Gone, code == 410);
            assert_eq!(outcome.status().unwrap().as_u16(), code);
        }
    }

    #[test]
    fn a_pause_is_asked_for_by_429_and_503_alone() {
        let asked = Some(TimeDelta::seconds(9));
        for (code, heard) in [(429, true), (503, true), (500, false), (502, false), (404, false)] {
            let status = StatusCode::from_u16(code).unwrap();
            let expected = Failure::Answered(status, asked.filter(|_| heard));
            assert_eq!(Outcome::of(status, asked), Outcome::Failed(expected));
        }
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_loopback_is_not_connected_to() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
        let message = Message {
            id: rampart_types::EventId::from(uuid::Uuid::nil()),
            sent_at: 1,
            body: String::new(),
        };
        let outbound = Outbound::new().unwrap();
        // Not judged first, as if the name had looked public.
        let sent = outbound.post(
            url.parse().unwrap(),
            Reach::Public,
            message,
            "v1,",
            DateTime::UNIX_EPOCH,
        );
        assert_eq!(sent.await, Outcome::Failed(Failure::Forbidden));
        let pending = futures::poll!(std::pin::pin!(listener.accept()));
        assert!(pending.is_pending(), "something connected");
    }
}
