//! The core's settings with their defaults, bounds and units. The binary reads them (section 12 of
//! the contract) and makes its reference of every setting from these types: a doc comment is one
//! sentence for operators, a key ends in its unit, and `x-unit` names a unit that the key does not.

mod acme;
mod compliance;
mod connectors;
mod documents;
mod operators;
mod pages;
mod payments;
mod policy;
mod prices;
mod rate_limits;
mod retention;
mod telemetry;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

pub use self::acme::Acme;
pub use self::compliance::{Compliance, Gate};
pub use self::connectors::Connectors;
pub use self::documents::Documents;
pub use self::operators::{Names, Oidc, Operators};
pub use self::pages::{PageUrl, Pages};
pub use self::payments::{Payments, Quotes, Unexpected};
pub(crate) use self::policy::CREDENTIAL_HEADERS;
pub use self::policy::{COMPILER_ARGUMENTS, Policy};
pub use self::prices::{HttpPrice, PriceSource, Prices};
pub use self::rate_limits::RateLimits;
pub use self::retention::{Privacy, Retention};
pub use self::telemetry::Telemetry;
use crate::platform::crypto::Secret;
use rampart_types::CurrencyCode;

/// Longest life of a quote, in seconds.
pub const QUOTE_SECONDS_MAX: u32 = 3_600;

/// Every setting of the core. An unknown key is an error.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Connections to Postgres.
    pub database: Database,
    /// Key material.
    pub keys: Keys,
    /// Lifetimes of tokens, quotes and offers.
    pub lifetimes: Lifetimes,
    /// Default rate limits; a partner may have its own.
    pub ratelimit: RateLimits,
    /// Limits of policy calls.
    pub policy: Policy,
    /// Bounds of the metrics.
    pub metrics: Metrics,
    /// Traces for an OpenTelemetry collector.
    pub telemetry: Telemetry,
    /// Source of prices.
    pub prices: Prices,
    /// Mail to users.
    pub mail: Mail,
    /// Storage of users' documents.
    pub documents: Documents,
    /// The certificate that is ordered from an authority.
    pub acme: Acme,
    /// Personal data of users who were erased.
    pub privacy: Privacy,
    /// Time for which rows of tables that grow with every order are kept.
    pub retention: Retention,
    /// Source of users' limits.
    pub limits: Limits,
    /// Callbacks and webhooks to partners.
    pub callbacks: Callbacks,
    /// Checks before coins leave.
    pub compliance: Compliance,
    /// Commands to connectors. Set from `connectors`.
    #[serde(skip)]
    pub connectors: Connectors,
    /// Simulated settlement for test clients.
    pub sandbox: Sandbox,
    /// Bank account that receives deposits for savings plans of live clients; without it, no plan
    /// is opened.
    pub deposits: Option<Deposits>,
    /// Address that partners' users reach us at, without a trailing slash, such as
    /// `https://pay.example.com`. Set from `edge.public_url`.
    #[serde(skip)]
    pub public_url: String,
    /// Our pages for people.
    pub pages: Pages,
    /// Unexpected payments.
    pub payments: Payments,
    /// Quotes whose rate is fixed when they are paid.
    pub quotes: Quotes,
    /// Payments that one operator reports alone, and the sign-in of operators at a provider.
    pub operators: Operators,
    /// Bearer token of the break-glass owner; without one only operators with tokens of their own
    /// are let in. Set from `admin.token`.
    #[serde(skip)]
    pub admin_token: Option<Secret>,
    /// Host name of the admin listener, besides `localhost` and addresses. Set from `admin.url`.
    #[serde(skip)]
    pub admin_host: Option<String>,
    /// Beginning of the admin listener's URLs, without a trailing slash. Set from `admin.url`, or
    /// where it listens.
    #[serde(skip)]
    pub admin_url: String,
}

/// `database`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Database {
    /// `postgres://user:password@host/name`; required by `rampart serve`.
    #[serde(skip_serializing)]
    pub url: Option<Secret>,
    /// URL for workers, operators and connectors: of a role that may see every partner's rows
    /// (`rampart_worker`).
    #[serde(skip_serializing)]
    #[schemars(extend("x-default" = "database.url"))]
    pub worker_url: Option<Secret>,
    /// URLs of read replicas, in a list or in lines, for operators' reports and searches: of the role
    /// of `database.worker_url`.
    #[serde(skip_serializing, deserialize_with = "many")]
    #[schemars(extend("x-default" = "none"))]
    pub replica_urls: Vec<Secret>,
    /// Time by which a replica may be behind; then reads go to the primary.
    #[schemars(range(min = 1_000, max = 600_000))]
    pub replica_lag_max_ms: u64,
    /// Postgres, or the pooler in front of it, keeps prepared statements.
    #[schemars(extend("x-default" = "true, and false behind a pooler in transaction mode"))]
    pub prepared_statements: Option<bool>,
    /// URL under which `rampart migrate` connects, past any pooler: of the role that owns the schema.
    #[serde(skip_serializing)]
    #[schemars(extend("x-default" = "database.url"))]
    pub migrate_url: Option<Secret>,
    /// `rampart serve` applies missing migrations; otherwise it refuses to start without them.
    pub migrate_on_start: bool,
    /// Longest wait of a migration for a lock; then it is undone and can be run again.
    #[schemars(range(min = 1, max = 600_000))]
    pub lock_timeout_ms: u64,
    /// Most connections of one edge for partners' requests.
    #[schemars(range(min = 1, max = 10_000), extend("x-unit" = "connections"))]
    pub connections_max: u32,
    /// Most of these connections that one partner's requests hold, and of those for logins at most
    /// half; further ones wait.
    #[schemars(range(min = 1, max = 10_000), extend("x-unit" = "connections"))]
    pub partner_connections_max: u32,
    /// Most connections besides for logins and registrations.
    #[schemars(range(min = 2, max = 10_000), extend("x-unit" = "connections"))]
    pub login_connections_max: u32,
    /// Most connections besides for background workers.
    #[schemars(range(min = 2, max = 10_000), extend("x-unit" = "connections"))]
    pub worker_connections_max: u32,
    /// Most connections besides for the operators' API, of which one operator's calls leave one to
    /// the others; further ones wait.
    #[schemars(range(min = 2, max = 10_000), extend("x-unit" = "connections"))]
    pub operator_connections_max: u32,
    /// Most connections besides for the connectors' API, of which one connector's calls leave one to
    /// the others; further ones wait.
    #[schemars(range(min = 2, max = 10_000), extend("x-unit" = "connections"))]
    pub connector_connections_max: u32,
    /// Longest wait for a connection; then the request is answered with 503.
    #[schemars(range(min = 1, max = 600_000))]
    pub acquire_timeout_ms: u64,
    /// Longest run of a request's statement; its connection is closed when no answer has come then.
    #[schemars(range(min = 1, max = 600_000))]
    pub statement_timeout_ms: u64,
    /// The same for a background worker's statement.
    #[schemars(range(min = 1, max = 600_000))]
    pub worker_statement_timeout_ms: u64,
}

impl Default for Database {
    fn default() -> Self {
        Self {
            url: None,
            worker_url: None,
            replica_urls: Vec::new(),
            replica_lag_max_ms: 5_000,
            prepared_statements: None,
            migrate_url: None,
            migrate_on_start: false,
            lock_timeout_ms: 2_000,
            connections_max: 16,
            partner_connections_max: 8,
            login_connections_max: 4,
            worker_connections_max: 6,
            operator_connections_max: 4,
            connector_connections_max: 4,
            acquire_timeout_ms: 1_000,
            statement_timeout_ms: 2_000,
            worker_statement_timeout_ms: 10_000,
        }
    }
}

/// `keys`
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Keys {
    /// Master key that all others are derived from, 32 bytes as base64, the same on every edge; in a
    /// list or in lines the one in use comes first and earlier ones follow.
    #[serde(skip_serializing, deserialize_with = "one_or_many")]
    #[schemars(extend(
        "x-default" = "none: one is made and kept in the database, for test clients",
        "x-bounds" = "1 to 8 keys"
    ))]
    pub master: Option<Secret>,
    /// Program with its arguments that prints the master key, in place of `keys.master`.
    #[schemars(extend("x-default" = "none"))]
    pub master_command: Vec<String>,
    /// True if each partner's values are sealed under a key of that partner, which the master key wraps;
    /// for a database of an earlier version from when every edge runs one that knows such keys.
    #[schemars(extend("x-default" = "on in a database that had no partner, or has such a key"))]
    pub per_tenant: Option<bool>,
}

impl Keys {
    /// True if the master key comes from outside of the database.
    pub fn is_configured(&self) -> bool {
        self.master.is_some() || !self.master_command.is_empty()
    }
}

/// A secret, or a list of them as its lines.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Secret>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Secrets {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Option::deserialize(deserializer)? {
        None => None,
        Some(Secrets::One(text)) => Some(Secret::new(text)),
        Some(Secrets::Many(texts)) => Some(Secret::new(texts.join("\n"))),
    })
}

/// Secrets in a list, or in one text with commas between them.
fn many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Secret>, D::Error> {
    let secrets = one_or_many(deserializer)?;
    let texts = secrets.iter().flat_map(|secrets| secrets.expose().split([',', '\n']));
    Ok(texts.map(str::trim).filter(|text| !text.is_empty()).map(Secret::new).collect())
}

/// `lifetimes`
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Lifetimes {
    /// Lifetime of client and user tokens.
    #[schemars(range(min = 1, max = 604_800))]
    pub access_token_seconds: u32,
    /// Lifetime of refresh tokens, from their last use.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub refresh_token_seconds: u32,
    /// Lifetime of quotes, where the pair does not say otherwise.
    #[schemars(range(min = 1, max = QUOTE_SECONDS_MAX))]
    pub quote_seconds: u32,
    /// Lifetime of offers without an `expireTime`.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub offer_seconds: u32,
    /// Lifetime of login tokens, and of the visits and forms of secured pages.
    #[schemars(range(min = 1, max = 86_400))]
    pub login_token_seconds: u32,
    /// Time to pay an order by bank transfer; partners are not told an end.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub bank_transfer_seconds: u32,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            access_token_seconds: 3_600,
            refresh_token_seconds: 2_592_000,
            quote_seconds: 300,
            offer_seconds: 3_600,
            login_token_seconds: 300,
            bank_transfer_seconds: 604_800,
        }
    }
}

/// `metrics`
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Metrics {
    /// Most partners with series of their own; those of the least recently active are dropped.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-unit" = "partners"))]
    pub partners_max: u32,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { partners_max: 1_000 }
    }
}

/// `mail`
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mail {
    /// `smtps://user:password@host:port` (TLS), or `smtp://…` (STARTTLS; without TLS only to a
    /// server on this machine).
    #[serde(skip_serializing)]
    #[schemars(extend("x-default" = "none: messages wait in the outbox"))]
    pub smtp_url: Option<Secret>,
    /// Sender's address and name; without a name each mail has its partner's, and the host of the
    /// default is localhost in place of an IP address.
    #[schemars(extend("x-default" = "no-reply@ the host of edge.public_url"))]
    pub from: Option<String>,
}

/// `callbacks`
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Callbacks {
    /// Lets test clients be called on this machine, by plain HTTP too: for a demo or tests, never where
    /// another service listens on loopback.
    pub allow_loopback: bool,
}

/// `limits`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Base URL of a backend that answers `GET /api/v2/user/limit`: `https://`, `http://`, or
    /// `h2c://` for HTTP/2 without TLS.
    #[schemars(extend("x-default" = "none: the built-in rules answer"))]
    pub upstream: Option<String>,
    /// PEM file with the authorities that the backend's certificate is checked against.
    #[schemars(extend("x-default" = "none: the system's authorities"))]
    pub upstream_ca: Option<PathBuf>,
    /// Fiat currency of all limits, in which an order counts at the rate of its confirm.
    pub currency: CurrencyCode,
}

impl Default for Limits {
    fn default() -> Self {
        Self { upstream: None, upstream_ca: None, currency: CurrencyCode::EURO }
    }
}

/// `sandbox`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// Time between two steps of a test client's settlement.
    #[schemars(range(min = 0, max = 3_600_000))]
    pub step_ms: u32,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self { step_ms: 500 }
    }
}

/// `deposits`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deposits {
    /// Name of the bank.
    pub bank_name: String,
    /// Number of the account.
    pub iban: String,
    /// The bank's BIC.
    pub bic: String,
}
