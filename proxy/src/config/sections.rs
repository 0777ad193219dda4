//! The sections that the binary itself reads, with their defaults and bounds.

mod admin;
mod connectors;
mod listener_tls;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use url::Url;

pub(crate) use self::admin::Admin;
pub(crate) use self::connectors::Connectors;
use self::listener_tls::ListenerTls;
use rampart_core::platform::network::canonical_network;
use rampart_core::platform::settings::Acme;

use super::tls::{KeyPair, Tls};
use crate::startup_error::StartupError;

/// `edge`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Edge {
    /// Addresses to listen on: one, or a list; port 0 takes a free one.
    #[serde(deserialize_with = "addresses")]
    #[schemars(with = "Vec<SocketAddr>")]
    pub(crate) listen: Vec<SocketAddr>,
    /// PROXY protocol that a balancer opens its connections with; one without it, and one from
    /// elsewhere than `edge.trusted_proxies`, is closed.
    pub(crate) proxy_protocol: ProxyProtocol,
    /// Networks of the balancers in front, in CIDR notation: one, or a list.
    #[serde(deserialize_with = "networks")]
    #[schemars(with = "Vec<String>")]
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// The client of a request from `edge.trusted_proxies` is the rightmost address in
    /// `X-Forwarded-For` that is not one of them.
    pub(crate) forwarded_for: bool,
    /// Address that callers and their users reach us at.
    #[schemars(extend("x-default" = "https:// and the first address of edge.listen"))]
    pub(crate) public_url: Option<String>,
    /// Certificates.
    pub(crate) tls: Tls,
    /// Time for which browsers that have seen a page use HTTPS alone; 0 does not tell them.
    #[schemars(range(min = 0, max = 63_072_000))]
    pub(crate) hsts_seconds: u64,
    /// Threads that serve.
    #[schemars(
        range(min = 1, max = 1_024),
        extend("x-unit" = "threads", "x-default" = "1 per processor")
    )]
    pub(crate) threads: usize,
    /// Most connections at once, and three quarters of them, or those of two addresses if that is
    /// more, of one network (/24 in IPv4, /48 in IPv6), but no more than three times as many as are
    /// free; more are closed unanswered.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-unit" = "connections"))]
    pub(crate) connections_max: usize,
    /// Most connections of one address at once, in IPv6 of one /64 network, and no more than are
    /// free, in its network and in all; more are closed unanswered.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-unit" = "connections"))]
    pub(crate) connections_per_address_max: usize,
    /// Most requests in the core at once; more are answered with 503.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-unit" = "requests"))]
    pub(crate) in_flight_max: usize,
    /// Most of them from one address, in IPv6 from one /64 network.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-unit" = "requests"))]
    pub(crate) in_flight_per_address_max: usize,
    /// Most of them of one partner.
    #[schemars(
        range(min = 1, max = 1_000_000),
        extend("x-unit" = "requests", "x-default" = "a quarter of edge.in_flight_max")
    )]
    pub(crate) in_flight_per_partner_max: Option<usize>,
    /// Most memory of request bodies and the JSON documents in them at once, half of it for large
    /// uploads and, while there is room, for answers of `limits.upstream`, an eighth for ordinary
    /// bodies from addresses without a credential, and half as much again for answers of more than
    /// 16 KiB that have not been taken; what exceeds it, or a sender's share of it
    /// (deploy/CAPACITY.md), is answered with 503.
    #[schemars(range(min = 1_048_576, max = 1_099_511_627_776u64))]
    pub(crate) body_memory_bytes: usize,
    /// Time from the first byte of a request's head to its last.
    #[schemars(range(min = 1, max = 60))]
    pub(crate) request_header_timeout_seconds: u64,
    /// Time that a connection may be open without a request.
    #[schemars(range(min = 1, max = 3_600))]
    pub(crate) keepalive_timeout_seconds: u64,
    /// Age at which a connection is closed, each request finished, so that clients come back through
    /// the balancer.
    #[schemars(range(min = 1, max = 604_800))]
    pub(crate) connection_max_age_seconds: u64,
    /// Requests after which a connection is closed, each of them finished.
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-unit" = "requests"))]
    pub(crate) connection_requests_max: u32,
    /// Time that the core may take for one answer of the public listener.
    #[schemars(range(min = 1, max = 600))]
    pub(crate) request_timeout_seconds: u64,
    /// Time that a client may take to read one answer, or each part of a file that is made while it is
    /// sent.
    #[schemars(range(min = 1, max = 3_600))]
    pub(crate) write_timeout_seconds: u64,
    /// Bytes of an answer that a client must take in each second of waiting for it, after the first 5;
    /// a slower one is disconnected.
    #[schemars(range(min = 1, max = 1_048_576), extend("x-unit" = "bytes per second"))]
    pub(crate) send_rate_min_bytes: u64,
    /// Longest graceful stop once no connection is accepted, and no less than
    /// `edge.request_timeout_seconds`; it ends as soon as nothing is in flight.
    #[schemars(range(min = 0, max = 3_600))]
    pub(crate) drain_seconds: u64,
    /// Time between going unready and accepting no connection, for a balancer that polls `/readyz`.
    #[schemars(range(min = 0, max = 600))]
    pub(crate) shutdown_delay_seconds: u64,
    /// Socket through which a new process takes over the listeners, in a private folder.
    pub(crate) upgrade_socket: Option<PathBuf>,
}

impl Default for Edge {
    fn default() -> Self {
        Self {
            listen: vec![local(8443)],
            proxy_protocol: ProxyProtocol::Off,
            trusted_proxies: Vec::new(),
            forwarded_for: false,
            public_url: None,
            tls: Tls::default(),
            hsts_seconds: 31_536_000,
            threads: std::thread::available_parallelism().map_or(2, usize::from),
            connections_max: 8_192,
            connections_per_address_max: 256,
            in_flight_max: 1_024,
            in_flight_per_address_max: 128,
            in_flight_per_partner_max: None,
            body_memory_bytes: 128 * 1024 * 1024,
            request_header_timeout_seconds: 10,
            keepalive_timeout_seconds: 60,
            connection_max_age_seconds: 3_600,
            connection_requests_max: 10_000,
            request_timeout_seconds: 30,
            write_timeout_seconds: 30,
            send_rate_min_bytes: 1_024,
            drain_seconds: 30,
            shutdown_delay_seconds: 0,
            upgrade_socket: None,
        }
    }
}

impl Edge {
    /// Checks what no single key's bounds say: addresses, certificates, the public URL.
    pub(super) fn check(&self, acme: &Acme) -> Result<(), StartupError> {
        if self.listen.is_empty() {
            return Err("'edge.listen' names no address".into());
        }
        acme.check()?;
        if self.certificates().is_empty() && !acme.is_configured() {
            return Err("no certificate: set 'edge.tls.cert' and 'edge.tls.key' to PEM files, or \
                        'acme.domains'"
                .into());
        }
        if self.tls.cert.is_some() != self.tls.key.is_some() {
            return Err("'edge.tls.cert' and 'edge.tls.key' go together".into());
        }
        let behind_proxies = self.proxy_protocol != ProxyProtocol::Off || self.forwarded_for;
        if behind_proxies && self.trusted_proxies.is_empty() {
            return Err(
                "'edge.proxy_protocol' and 'edge.forwarded_for' need 'edge.trusted_proxies'".into(),
            );
        }
        self.public_url.as_deref().map_or(Ok(()), check_public_url)
    }

    /// All certificates; the first one serves who names no host that another one is for.
    pub(crate) fn certificates(&self) -> Vec<KeyPair> {
        let own = self.tls.cert.clone().zip(self.tls.key.clone());
        let own = own.map(|(cert, key)| KeyPair { cert, key });
        own.into_iter().chain(self.tls.certificates.iter().cloned()).collect()
    }

    /// Time that a stop may take: `drain_seconds`, and no less than a request may take.
    pub(crate) fn drain(&self) -> Duration {
        Duration::from_secs(self.drain_seconds.max(self.request_timeout_seconds))
    }

    /// `in_flight_per_partner_max`
    pub(crate) fn in_flight_per_partner(&self) -> usize {
        self.in_flight_per_partner_max.unwrap_or_else(|| (self.in_flight_max / 4).max(1))
    }
}

/// Versions of the PROXY protocol that a listener accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProxyProtocol {
    /// None: connections begin with TLS.
    #[default]
    Off,
    /// Version 1, the text.
    V1,
    /// Version 2, the binary one.
    V2,
    /// Either of them.
    Any,
}

/// `ops`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
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

/// `log`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    /// Form of a line.
    pub(crate) format: LogFormat,
    /// `error`, `warn`, `info`, `debug`, `trace`, or filters per module.
    pub(crate) level: String,
    /// One line per request on standard output.
    pub(crate) access: bool,
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::Text, level: "info".into(), access: true }
    }
}

/// Form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// Checks the URL that every link of ours begins with.
fn check_public_url(text: &str) -> Result<(), StartupError> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let Some(rest) = rest else {
        return Err("'edge.public_url' begins with https:// or http://".into());
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // The parser drops line ends and slashes before the host, and mends blanks and backslashes.
    let is_mended = |c: char| c == '\\' || c.is_whitespace() || c.is_control();
    if authority.is_empty() || text.contains(is_mended) || Url::parse(text).is_err() {
        return Err("'edge.public_url' is not a URL such as https://pay.example.com".into());
    }
    if authority.contains('@') || rest.contains(['?', '#']) {
        return Err("'edge.public_url' holds a user, a query or a fragment".into());
    }
    Ok(())
}

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SocketAddr>, D::Error> {
    one_or_many(deserializer, "an address such as 127.0.0.1:8443", |text| text.parse().ok())
}

/// Networks; an address alone is a network of its own.
fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let network = |text: &str| {
        let alone = || text.parse::<IpAddr>().ok().map(IpNet::from);
        text.parse().ok().or_else(alone).map(canonical_network)
    };
    one_or_many(deserializer, "a network such as 10.0.0.0/8", network)
}

/// A list, or one element in place of a list; in the environment a list is separated by commas.
pub(super) fn one_or_many<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: impl fmt::Display,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Texts {
        One(String),
        Many(Vec<String>),
    }
    let texts = match Texts::deserialize(deserializer)? {
        Texts::One(text) => text.split(',').map(|part| part.trim().to_owned()).collect(),
        Texts::Many(texts) => texts,
    };
    let parse = |text: String| {
        parse(&text).ok_or_else(|| serde::de::Error::custom(format!("'{text}' is not {expected}")))
    };
    texts.into_iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partner_has_a_quarter_of_the_requests_in_flight_unless_it_is_set() {
        for (all, set, of_partner) in [(1_024, None, 256), (3, None, 1), (8, Some(2), 2)] {
            let edge =
                Edge { in_flight_max: all, in_flight_per_partner_max: set, ..Edge::default() };
            assert_eq!(edge.in_flight_per_partner(), of_partner, "{all} {set:?}");
        }
    }

    #[test]
    fn a_public_url_is_a_place_that_links_begin_with() {
        for url in [
            "https://pay.example.com",
            "https://pay.example.com/",
            "https://Pay.example.com:8443/shop",
            "http://localhost:8080",
            "https://[::1]:8443",
        ] {
            assert!(check_public_url(url).is_ok(), "{url}");
        }
        let begins = "begins with https:// or http://";
        let no_url = "is not a URL such as https://pay.example.com";
        let more = "holds a user, a query or a fragment";
        for (url, why) in [
            ("", begins),
            ("pay.example.com", begins),
            ("ftp://pay.example.com", begins),
            (" https://pay.example.com", begins),
            ("https://", no_url),
            ("https:///pay.example.com", no_url),
            ("https://:8443", no_url),
            ("https://pay.example.com:port", no_url),
            ("https://pay example.com", no_url),
            ("https://pay.example.com/our shop", no_url),
            ("https://pay.example.com\n", no_url),
            ("https://pay.example.com\\shop", no_url),
            ("https://ada:canary@pay.example.com", more),
            ("https://@pay.example.com", more),
            ("https://pay.example.com?canary", more),
            ("https://pay.example.com/#canary", more),
        ] {
            let sentence = check_public_url(url).unwrap_err().to_string();
            assert_eq!(sentence, format!("'edge.public_url' {why}"), "{url:?}");
        }
    }
}
