//! API clients as requests see them: settings, secrets, keys, limits and policies of one tenant.

pub mod api_keys;
pub(crate) mod create;
pub(crate) mod load;

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use ipnet::IpNet;
use rust_decimal::Decimal;

use crate::platform::crypto::Secret;
use crate::platform::crypto::day_key::DayKey;
use crate::platform::rate_limit::{Gcra, Quota};
use crate::policies::runtime::TenantPolicies;
use rampart_types::decimal::fits_decimals;
use rampart_types::{ApiKeyId, ClientId, LoopbackHttp};

/// Most that a request may ask for the partner, in percent (section 6.1 of the contract).
pub const FEE_PERCENTAGE_MAX: Decimal = Decimal::from_parts(5, 0, 0, false, 0);

/// Most decimals of such a percentage: parts per million.
const FEE_DECIMALS_MAX: u32 = 4;

/// One tenant as of one snapshot.
#[derive(Debug)]
pub struct Tenant {
    /// Its id; leads every key of its rows.
    pub id: ClientId,
    /// Its name in URLs, metrics and logs.
    pub slug: Arc<str>,
    /// Its user name for `authenticate`.
    pub username: Arc<str>,
    /// Its name for people.
    pub name: String,
    /// Test or live.
    pub mode: Mode,
    /// Whether every credential of it is refused.
    pub suspended: bool,
    /// Tokens issued before are refused.
    pub tokens_valid_from: DateTime<Utc>,
    /// Partner fee in percent of the fiat amount, where a request names none.
    pub default_fee_percentage: Decimal,
    /// Most that a request or a policy may charge for the partner, in percent.
    pub fee_cap_percentage: Decimal,
    /// Whether offers and checkouts must name a wallet address (ER325).
    pub wallet_address_required: bool,
    /// Countries it serves, ISO 3166-1 alpha-2; empty is every country.
    pub allowed_countries: Vec<String>,
    /// Its own rates.
    pub rates: Rates,
    /// Its buckets. They outlive a reload, or every change would refill them.
    pub buckets: Arc<Buckets>,
    /// Secrets that sign its offers: the current one first.
    pub signing_secrets: Vec<TimedSecret>,
    /// Secrets that sign its callbacks: the current one first.
    pub webhook_secrets: Vec<TimedSecret>,
    /// What its quotes are sealed with today.
    pub quote_key: DayKey,
    /// Its live API keys.
    pub api_keys: Vec<Arc<ApiKey>>,
    /// What it has put in the place of the built-in rules.
    pub policies: TenantPolicies,
}

impl Tenant {
    /// Whether it is simulated: payments, coins and verification follow the sandbox.
    pub fn is_test(&self) -> bool {
        self.mode == Mode::Test
    }

    /// Whether it may be called on loopback by plain HTTP.
    pub(crate) fn loopback_http(&self) -> LoopbackHttp {
        if self.is_test() { LoopbackHttp::Allowed } else { LoopbackHttp::Refused }
    }

    /// Whether a request of it may ask for this partner fee, in percent: 0 to
    /// [`FEE_PERCENTAGE_MAX`], not above its own cap, and with at most 4 decimals.
    pub fn accepts_fee(&self, percentage: Decimal) -> bool {
        let most = self.fee_cap_percentage.min(FEE_PERCENTAGE_MAX);
        (Decimal::ZERO..=most).contains(&percentage) && fits_decimals(percentage, FEE_DECIMALS_MAX)
    }
}

/// Test or live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Deserialize)]
#[schemars(rename = "PartnerMode")]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Payments and coins are simulated.
    Test,
    /// Real money.
    Live,
}

impl Mode {
    /// As stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Live => "live",
        }
    }
}

/// A tenant's rates; the edge's default where it has none of its own.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// All requests.
    pub client: Quota,
    /// Quotes.
    pub quotes: Quota,
    /// `authenticate` and `refresh` per user name and per address.
    pub credentials: Quota,
    /// Login and the like per e-mail address.
    pub login: Quota,
    /// Image uploads per user.
    pub uploads: Quota,
}

impl Rates {
    /// The rates of a tenant whose own are `own`, by bucket name.
    fn of(defaults: &crate::platform::settings::RateLimits, own: &BTreeMap<String, Quota>) -> Self {
        let quota = |name: &str, default: Quota| own.get(name).copied().unwrap_or(default);
        Self {
            client: quota("client", defaults.client),
            quotes: quota("quotes", defaults.quotes),
            credentials: quota("credentials", defaults.credentials),
            login: quota("login", defaults.login),
            uploads: quota("uploads", defaults.uploads),
        }
    }
}

/// Names that a partner's `rateLimits` may have.
pub const RATE_BUCKETS: &[&str] = &["client", "quotes", "credentials", "login", "uploads"];

/// A tenant's buckets.
#[derive(Debug, Default)]
pub struct Buckets {
    /// All requests.
    pub client: Gcra,
    /// Quotes.
    pub quotes: Gcra,
}

/// A secret of which a previous one stays live for a while after a rotation.
#[derive(Clone, Debug)]
pub struct TimedSecret {
    /// The secret.
    pub secret: Secret,
    /// Until when; `None` is the current one.
    pub valid_until: Option<DateTime<Utc>>,
}

impl TimedSecret {
    /// Whether it counts at `now`.
    pub fn is_live(&self, now: DateTime<Utc>) -> bool {
        self.valid_until.is_none_or(|until| now < until)
    }
}

/// An API key that is not revoked.
#[derive(Debug)]
pub struct ApiKey {
    /// Its id.
    pub id: ApiKeyId,
    /// Whose it is.
    pub client: ClientId,
    /// The `<id>` of `rk_test_<id>_<secret>`.
    pub public_id: Arc<str>,
    /// SHA-256 of the secret.
    pub secret_digest: [u8; 32],
    /// What it may do; empty is everything.
    pub scopes: Vec<String>,
    /// From when it is refused.
    pub expires_at: Option<DateTime<Utc>>,
    /// Networks it may come from; empty is everywhere.
    pub allowed_addresses: Vec<IpNet>,
}
