//! The core's settings, with their defaults. The binary reads them (section 12 of the contract).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::platform::crypto::Secret;
use crate::platform::rate_limit::Quota;

/// Everything the core can be told. An unknown key is an error.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where Postgres is, and how much of it we use.
    pub database: Database,
    /// Key material.
    pub keys: Keys,
    /// How long things live, in seconds.
    pub lifetimes: Lifetimes,
    /// Default rates; a partner may have its own.
    pub ratelimit: RateLimits,
    /// Bounds of policy calls.
    pub policy: Policy,
    /// Where prices come from.
    pub prices: Prices,
    /// How users get mail.
    pub mail: Mail,
    /// Where documents are kept.
    pub documents: Documents,
    /// Who knows the users' limits.
    pub limits: Limits,
    /// Simulated settlement for test clients.
    pub sandbox: Sandbox,
    /// Where deposits for savings plans of live clients are sent to; without it, none is opened.
    pub deposits: Option<Deposits>,
    /// Address that partners' users reach us at, without a trailing slash, such as
    /// `https://pay.example.com`. Set from `edge.public_url`.
    #[serde(skip)]
    pub public_url: String,
    /// Bearer token of the admin listener; without one it refuses every call. Set from
    /// `admin.token`.
    #[serde(skip)]
    pub admin_token: Option<Secret>,
}

/// `database`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Database {
    /// `postgres://user:password@host/name`; required by `rampart serve`.
    pub url: Option<Secret>,
    /// Most connections of one edge.
    pub connections_max: u32,
    /// Longest wait for a connection, in milliseconds; then 503.
    pub acquire_timeout_ms: u64,
    /// Longest run of a statement, in milliseconds.
    pub statement_timeout_ms: u64,
}

impl Default for Database {
    fn default() -> Self {
        Self {
            url: None,
            connections_max: 16,
            acquire_timeout_ms: 1_000,
            statement_timeout_ms: 2_000,
        }
    }
}

/// `keys`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Keys {
    /// 32 bytes as base64, the same on every edge. All other keys are derived from it. Without
    /// one, a key is made once and kept in the database, which `rampart doctor` warns about.
    pub master: Option<Secret>,
}

/// `lifetimes`, in seconds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Lifetimes {
    /// Client and user tokens.
    pub access_token: u32,
    /// Refresh tokens, from their last use.
    pub refresh_token: u32,
    /// Quotes, where the pair does not say otherwise.
    pub quote: u32,
    /// Offers without an `expireTime`.
    pub offer: u32,
    /// Login tokens.
    pub login_token: u32,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            access_token: 3_600,
            refresh_token: 2_592_000,
            quote: 300,
            offer: 3_600,
            login_token: 300,
        }
    }
}

/// `ratelimit` (section 4 of the contract)
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateLimits {
    /// Per address, before authentication.
    pub address: Quota,
    /// Per client.
    pub client: Quota,
    /// Quotes per client.
    pub quotes: Quota,
    /// `authenticate` and `refresh`, per user name and per address.
    pub credentials: Quota,
    /// Login, reset-password and exists, per e-mail address.
    pub login: Quota,
    /// Image uploads per user.
    pub uploads: Quota,
    /// Redis or Valkey through which several edges share their rates.
    pub redis_url: Option<Secret>,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self {
            address: Quota::new(50, 1, 100),
            client: Quota::new(100, 1, 200),
            quotes: Quota::new(50, 1, 100),
            credentials: Quota::new(10, 60, 10),
            login: Quota::new(5, 60, 5),
            uploads: Quota::new(10, 60, 10),
            redis_url: None,
        }
    }
}

/// `policy`: what `None` leaves at the policy engine's own default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Fuel of one call on the request path.
    pub fuel: Option<u64>,
    /// Milliseconds of wall clock of one call.
    pub deadline_ms: Option<u64>,
    /// Linear memory of one call, in bytes.
    pub memory_bytes: Option<usize>,
    /// Most calls at once.
    pub live_max: Option<u32>,
    /// Whether every change of a partner's policy needs a manifest that an operator's key signed.
    pub require_signature: bool,
    /// Folder for the native code of policies, which only this user may enter; made if missing.
    /// Without one every start compiles every policy.
    pub cache_folder: Option<PathBuf>,
}

/// `prices`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    /// `static` (set by the operator) or `http` (read from `sources`).
    pub source: PriceSource,
    /// By pair, for `http`.
    pub sources: BTreeMap<String, HttpPrice>,
    /// Seconds between two readings of the sources.
    pub interval_seconds: u32,
    /// Age in seconds at which a price read from a source is too old to quote, unless the pair
    /// says otherwise. Prices set by the operator do not age by this.
    pub max_age_seconds: u32,
}

impl Default for Prices {
    fn default() -> Self {
        Self {
            source: PriceSource::Static,
            sources: BTreeMap::new(),
            interval_seconds: 10,
            max_age_seconds: 120,
        }
    }
}

/// Where prices come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PriceSource {
    /// The operator sets them through the admin API.
    Static,
    /// The edge reads them from HTTP sources.
    Http,
}

/// One pair's source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpPrice {
    /// An https URL that answers JSON.
    pub url: String,
    /// JSON pointer (RFC 6901) to the price, a number or a numeric string.
    pub pointer: String,
}

/// `mail`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mail {
    /// `smtps://user:password@host:port` (TLS), or `smtp://…` (TLS by STARTTLS; without TLS to a
    /// server on this machine alone). Without one, messages wait in the outbox and are shown by the
    /// admin API.
    pub smtp_url: Option<Secret>,
    /// The sender's address; the default is `no-reply@` the host of `edge.public_url`.
    pub from: Option<String>,
}

/// `documents`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Documents {
    /// Folder of the local object store.
    pub folder: Option<PathBuf>,
}

/// `limits`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Base URL of a backend that answers `GET /api/v2/user/limit`: `https://`, `http://`, or
    /// `h2c://` for HTTP/2 without TLS. Without one, the built-in limit book answers.
    pub upstream: Option<String>,
    /// PEM file with the authorities that the backend's certificate is checked against; the
    /// default is the system's.
    pub upstream_ca: Option<PathBuf>,
}

/// `sandbox`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// Milliseconds between two steps of a test client's settlement.
    pub step_ms: u32,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self { step_ms: 500 }
    }
}

/// `deposits`: a bank account.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deposits {
    /// Name of the bank.
    pub bank_name: String,
    /// Number of the account.
    pub iban: String,
    /// The bank's BIC.
    pub bic: String,
}
