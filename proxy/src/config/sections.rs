//! The sections that the binary itself reads, with their defaults and bounds.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use rampart_core::platform::crypto::Secret;
use serde::{Deserialize, Deserializer};

use super::Invalid;

/// `edge`: the public listener. Durations are whole seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Edge {
    /// Addresses to listen on: one, or a list. Port 0 takes a free one.
    #[serde(deserialize_with = "one_or_many")]
    pub(crate) listen: Vec<SocketAddr>,
    /// Address that callers and their users reach us at; the default is `https://` and the
    /// first address that is listened on.
    pub(crate) public_url: Option<String>,
    /// Certificates.
    pub(crate) tls: Tls,
    /// Threads that serve; the default is one per core.
    pub(crate) threads: usize,
    /// Most connections at once; more are closed unanswered.
    pub(crate) connections_max: usize,
    /// Most requests in the core at once; more are answered with 503.
    pub(crate) in_flight_max: usize,
    /// Most bytes of request bodies in memory at once, half of them for large uploads, of which a
    /// part each is in memory; more are answered with 503.
    pub(crate) body_memory_bytes: usize,
    /// Time from the first byte of a request's head to its last.
    pub(crate) head_seconds: u64,
    /// Time that a connection may be open without a request.
    pub(crate) idle_seconds: u64,
    /// Time the core may take for one answer.
    pub(crate) answer_seconds: u64,
    /// Time a graceful stop may take at most. It ends as soon as nothing is in flight.
    pub(crate) drain_seconds: u64,
    /// Time between going unready and refusing connections, for a balancer that polls `/readyz`.
    pub(crate) unready_seconds: u64,
    /// Socket through which a new process takes over the listeners; its folder must be private.
    pub(crate) upgrade_socket: Option<PathBuf>,
}

impl Default for Edge {
    fn default() -> Self {
        Self {
            listen: vec![local(8443)],
            public_url: None,
            tls: Tls::default(),
            threads: std::thread::available_parallelism().map_or(2, usize::from),
            connections_max: 8_192,
            in_flight_max: 1_024,
            body_memory_bytes: 128 * 1024 * 1024,
            head_seconds: 10,
            idle_seconds: 60,
            answer_seconds: 30,
            drain_seconds: 30,
            unready_seconds: 0,
            upgrade_socket: None,
        }
    }
}

impl Edge {
    /// Bounds of the numbers, and whether there is a certificate.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        if self.listen.is_empty() {
            return Err(Invalid("'edge.listen' names no address".into()));
        }
        if self.certificates().is_empty() {
            return Err(Invalid(
                "no certificate: set 'edge.tls.cert' and 'edge.tls.key' to PEM files".into(),
            ));
        }
        if self.tls.cert.is_some() != self.tls.key.is_some() {
            return Err(Invalid("'edge.tls.cert' and 'edge.tls.key' go together".into()));
        }
        if let Some(url) = &self.public_url
            && !(url.starts_with("https://") || url.starts_with("http://"))
        {
            return Err(Invalid("'edge.public_url' begins with https:// or http://".into()));
        }
        let bounds: [(&str, usize, usize, usize); 3] = [
            ("threads", self.threads, 1, 1_024),
            ("connections_max", self.connections_max, 1, 1_000_000),
            ("in_flight_max", self.in_flight_max, 1, 1_000_000),
        ];
        for (key, value, least, most) in bounds {
            bounded(key, value as u64, least as u64, most as u64)?;
        }
        bounded("body_memory_bytes", self.body_memory_bytes as u64, 1 << 20, 1 << 40)?;
        bounded("head_seconds", self.head_seconds, 1, 60)?;
        bounded("idle_seconds", self.idle_seconds, 1, 3_600)?;
        bounded("answer_seconds", self.answer_seconds, 1, 600)?;
        bounded("drain_seconds", self.drain_seconds, 0, 3_600)?;
        bounded("unready_seconds", self.unready_seconds, 0, 600)
    }

    /// All certificates; the first one serves who names no host that another one is for.
    pub(crate) fn certificates(&self) -> Vec<KeyPair> {
        let own = self.tls.cert.clone().zip(self.tls.key.clone());
        let own = own.map(|(cert, key)| KeyPair { cert, key });
        own.into_iter().chain(self.tls.certificates.iter().cloned()).collect()
    }

    /// `head_seconds`
    pub(crate) fn head(&self) -> Duration {
        Duration::from_secs(self.head_seconds)
    }

    /// `idle_seconds`
    pub(crate) fn idle(&self) -> Duration {
        Duration::from_secs(self.idle_seconds)
    }

    /// `answer_seconds`
    pub(crate) fn answer(&self) -> Duration {
        Duration::from_secs(self.answer_seconds)
    }
}

fn bounded(key: &str, value: u64, least: u64, most: u64) -> Result<(), Invalid> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Invalid(format!("'edge.{key}' is {value}, not between {least} and {most}")))
}

/// `edge.tls`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tls {
    /// Chain of the certificate, PEM.
    pub(crate) cert: Option<PathBuf>,
    /// Its key, PEM.
    pub(crate) key: Option<PathBuf>,
    /// Further certificates, each for the names that it holds.
    pub(crate) certificates: Vec<KeyPair>,
}

/// A certificate chain and its key, both PEM files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyPair {
    /// The chain.
    pub(crate) cert: PathBuf,
    /// The key.
    pub(crate) key: PathBuf,
}

/// `admin`: the operators' listener, plain HTTP on a loopback or otherwise protected address.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Admin {
    /// Address to listen on.
    pub(crate) listen: SocketAddr,
    /// Bearer token that every call must carry; without one every call is refused.
    pub(crate) token: Option<Secret>,
}

impl Default for Admin {
    fn default() -> Self {
        Self { listen: local(9443), token: None }
    }
}

/// `ops`: metrics and health, plain HTTP.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Ops {
    /// Address to listen on.
    pub(crate) listen: SocketAddr,
}

impl Default for Ops {
    fn default() -> Self {
        Self { listen: local(9464) }
    }
}

/// `log`: one line per request on standard output, everything else on standard error.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    /// How lines are written.
    pub(crate) format: LogFormat,
    /// `error`, `warn`, `info`, `debug`, `trace`, or filters per module.
    pub(crate) level: String,
    /// Whether requests are logged.
    pub(crate) access: bool,
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::Text, level: "info".into(), access: true }
    }
}

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// A list, or one element in place of a list; in the environment a list is separated by commas.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SocketAddr>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Addresses {
        One(String),
        Many(Vec<String>),
    }
    let texts = match Addresses::deserialize(deserializer)? {
        Addresses::One(text) => text.split(',').map(|part| part.trim().to_owned()).collect(),
        Addresses::Many(texts) => texts,
    };
    let parse = |text: String| {
        text.parse().map_err(|_| {
            serde::de::Error::custom(format!("'{text}' is not an address such as 127.0.0.1:8443"))
        })
    };
    texts.into_iter().map(parse).collect()
}
