//! Tenants in the snapshot: settings, secrets, keys, limits and policies.

pub mod api_keys;
pub mod branding;
pub mod create;
pub mod load;
pub mod scope;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use ipnet::IpNet;
use rust_decimal::Decimal;
use sqlx::PgExecutor;

use crate::http::fields::Fields;
use crate::http::html::brand::Brand;
use crate::http::request::Head;
use crate::platform::crypto::Secret;
use crate::platform::crypto::day_key::DayKey;
use crate::platform::error::Code;
use crate::platform::rate_limit::Quota;
use crate::platform::settings::Gate;
use crate::platform::shared_rates::SharedGcra;
use crate::policies::runtime::TenantPolicies;
use crate::trading::catalogue::PaymentMethodKind;
use rampart_types::decimal::fits_decimals;
use rampart_types::{ApiKeyId, ClientId, Country, LoopbackHttp};
pub use scope::{Scope, Scopes};

/// Highest partner fee that a request may set, in percent (section 6.1 of the contract).
pub const FEE_PERCENTAGE_MAX: Decimal = Decimal::from_parts(5, 0, 0, false, 0);

/// Most decimals of a fee percentage.
const FEE_DECIMALS_MAX: u32 = 4;

/// A tenant in a snapshot.
#[derive(Debug)]
pub struct Tenant {
    /// Its id, the first column of every key of its rows.
    pub id: ClientId,
    /// Its name in URLs, metrics and logs.
    pub slug: Arc<str>,
    /// Its user name for `authenticate`.
    pub username: Arc<str>,
    /// Its display name.
    pub name: String,
    /// Its appearance on pages for shoppers.
    pub brand: Brand,
    /// Test or live.
    pub mode: Mode,
    /// True if all of its credentials are refused.
    pub suspended: bool,
    /// Tokens issued before this time are refused.
    pub tokens_valid_from: DateTime<Utc>,
    /// Default partner fee in percent of the fiat amount.
    pub default_fee_percentage: Decimal,
    /// Highest partner fee that a request or a policy may charge, in percent.
    pub fee_cap_percentage: Decimal,
    /// True if offers and checkouts require a wallet address (ER325).
    pub wallet_address_required: bool,
    /// Countries it serves, ISO 3166-1 alpha-2 in any case; empty for all countries. See
    /// [`Tenant::serves`].
    pub allowed_countries: Vec<String>,
    /// Senders from which its credentials are accepted.
    pub allowed_senders: AllowedSenders,
    /// Its rate limits.
    pub rates: Rates,
    /// Its buckets. They survive a reload at the same rate, so that a change of anything else does
    /// not refill them.
    pub buckets: Arc<Buckets>,
    /// Secrets that sign its offers, the current one first.
    pub signing_secrets: Vec<TimedSecret>,
    /// Secrets that sign its callbacks, the current one first.
    pub webhook_secrets: Vec<TimedSecret>,
    /// Today's key for its quotes.
    pub quote_key: DayKey,
    /// Its live API keys.
    pub api_keys: Vec<Arc<ApiKey>>,
    /// Its policies, which replace built-in rules.
    pub policies: TenantPolicies,
    /// Gate that its orders pass; `None` is the default of its mode.
    pub compliance_gate: Option<Gate>,
    /// Gates of orders by the kind of their payment method, in its place.
    pub compliance_gates: BTreeMap<PaymentMethodKind, Gate>,
    /// Its orders without a user.
    pub guest_orders: GuestOrders,
    /// Permission for callbacks to loopback by plain HTTP: a test tenant's, where the configuration
    /// lets it (`callbacks.allow_loopback`).
    pub loopback_http: LoopbackHttp,
}

impl Tenant {
    /// True for a test tenant, whose payments, coins and verifications are simulated.
    pub fn is_test(&self) -> bool {
        self.mode == Mode::Test
    }

    /// True if checks of its users must be done before an order by a method of this kind is
    /// confirmed. The functions `payout_gate` and `transfer_gate` have the same order of gates.
    pub fn checks_before_payment(&self, method: PaymentMethodKind, default: Gate) -> bool {
        let of_mode = if self.is_test() { Gate::None } else { default };
        let of_method = self.compliance_gates.get(&method).copied();
        of_method.or(self.compliance_gate).unwrap_or(of_mode) == Gate::BeforePayment
    }

    /// True if it serves users of this country.
    pub fn serves(&self, country: Country) -> bool {
        let served = &self.allowed_countries;
        let is_it = |code: &String| code.eq_ignore_ascii_case(country.as_str());
        served.is_empty() || served.iter().any(is_it)
    }

    /// The country of a user in a member, if sent: ER063 when it is not served, otherwise as
    /// [`Fields::country`].
    pub(crate) fn country(&self, fields: &mut Fields<'_>, name: &'static str) -> Option<Country> {
        let country = fields.country(name)?;
        if self.serves(country) {
            return Some(country);
        }
        fields.refuse_with(Code::CountryUnknown, name, "not served");
        None
    }

    /// The partner fee that a request without one is charged, in percent: the default, as far as the
    /// cap lets it.
    pub fn default_fee(&self) -> Decimal {
        self.default_fee_percentage.min(self.fee_cap_percentage)
    }

    /// True if a request may set this partner fee, in percent: 0 to [`FEE_PERCENTAGE_MAX`], not
    /// above the tenant's cap, and with at most 4 decimals.
    pub fn accepts_fee(&self, percentage: Decimal) -> bool {
        let most = self.fee_cap_percentage.min(FEE_PERCENTAGE_MAX);
        (Decimal::ZERO..=most).contains(&percentage) && fits_decimals(percentage, FEE_DECIMALS_MAX)
    }
}

/// Orders without a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestOrders {
    /// There are none.
    Refused,
    /// Up to this amount, in the currency of limits.
    UpTo(Decimal),
    /// Up to what others may.
    Allowed,
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

rampart_types::named_values! {
    pub Mode {
        Test = "test",
        Live = "live",
    }
}

/// A tenant's rate limits, by default those of the edge.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// All requests.
    pub client: Quota,
    /// Quotes.
    pub quotes: Quota,
    /// `authenticate` and `refresh` per user name and per address.
    pub credentials: Quota,
    /// Login, reset-password and exists, per e-mail address.
    pub login: Quota,
    /// The same for all addresses together: no less than one has, but by the tenant's own word.
    pub client_login: Quota,
    /// Image uploads per user.
    pub uploads: Quota,
}

impl Rates {
    /// The defaults with a tenant's overrides, by bucket name.
    pub(super) fn new(
        defaults: &crate::platform::settings::RateLimits,
        overrides: &BTreeMap<String, Quota>,
    ) -> Self {
        let quota = |name: &str, default: Quota| overrides.get(name).copied().unwrap_or(default);
        let login = quota("login", defaults.login);
        Self {
            client: quota("client", defaults.client),
            quotes: quota("quotes", defaults.quotes),
            credentials: quota("credentials", defaults.credentials),
            login,
            client_login: quota("clientLogin", defaults.client_login.or_faster(login)),
            uploads: quota("uploads", defaults.uploads),
        }
    }
}

/// Valid names in a partner's `rateLimits`.
pub const RATE_BUCKETS: &[&str] =
    &["client", "quotes", "credentials", "login", "clientLogin", "uploads"];

/// A tenant's rate limit buckets.
#[derive(Debug)]
pub struct Buckets {
    /// All requests.
    pub client: Arc<SharedGcra>,
    /// Quotes.
    pub quotes: Arc<SharedGcra>,
}

impl Buckets {
    /// The buckets of a tenant with these rates. Those of the tenant `before` are kept where the
    /// rate is the same. With another rate it is another bucket, and a full one: a tenant whose
    /// rate is raised does not wait for what it took at the old one.
    pub(crate) fn new(tenant: ClientId, rates: &Rates, before: Option<&Tenant>) -> Self {
        let new = |name: &str, quota: Quota| {
            let name = format!("{name}/{tenant}/{quota}");
            Arc::new(SharedGcra::new(&name))
        };
        let client = before.filter(|before| before.rates.client == rates.client);
        let client = client.map(|before| Arc::clone(&before.buckets.client));
        let quotes = before.filter(|before| before.rates.quotes == rates.quotes);
        let quotes = quotes.map(|before| Arc::clone(&before.buckets.quotes));
        Self {
            client: client.unwrap_or_else(|| new("client", rates.client)),
            quotes: quotes.unwrap_or_else(|| new("quotes", rates.quotes)),
        }
    }
}

/// A secret that stays valid for a while after a rotation.
#[derive(Clone, Debug)]
pub struct TimedSecret {
    /// The secret.
    pub secret: Secret,
    /// End of validity; `None` for the current secret.
    pub valid_until: Option<DateTime<Utc>>,
}

impl TimedSecret {
    /// True if it is valid at `now`.
    pub fn is_live(&self, now: DateTime<Utc>) -> bool {
        self.valid_until.is_none_or(|until| now < until)
    }
}

/// An API key that is not revoked.
#[derive(Debug)]
pub struct ApiKey {
    /// Its id.
    pub id: ApiKeyId,
    /// Its tenant.
    pub client: ClientId,
    /// The `<id>` in `rk_test_<id>_<secret>`.
    pub public_id: Arc<str>,
    /// SHA-256 of the secret.
    pub secret_digest: [u8; 32],
    /// Permitted scopes.
    pub scopes: Scopes,
    /// Time of expiry.
    pub expires_at: Option<DateTime<Utc>>,
    /// Senders from which it is accepted.
    pub allowed_senders: AllowedSenders,
}

/// The sender of a request, as far as its connection tells.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Its address.
    pub address: IpAddr,
    /// Subject of its TLS certificate, which has been verified; `None` without one.
    pub certificate: Option<Arc<str>>,
}

impl Sender {
    /// The sender of this head.
    pub fn of(head: &Head) -> Self {
        Self { address: head.peer, certificate: head.client_certificate.clone() }
    }
}

/// Senders from which credentials are accepted.
#[derive(Clone, Debug, Default)]
pub struct AllowedSenders {
    /// Their networks; empty for all.
    pub networks: Vec<IpNet>,
    /// Subject of the TLS certificate that they need; `None` if they need none.
    pub certificate: Option<String>,
}

impl AllowedSenders {
    /// True if credentials are accepted from this sender.
    pub fn include(&self, sender: &Sender) -> bool {
        let known = |network: &IpNet| network.contains(&sender.address);
        let certified = self.certificate.as_deref().is_none_or(|subject| {
            sender.certificate.as_deref().is_some_and(|shown| shown == subject)
        });
        certified && (self.networks.is_empty() || self.networks.iter().any(known))
    }
}

/// The id of the tenant with this slug, partner or house; `None` if there is none.
///
/// # Errors
/// The database's.
pub async fn id_of(
    executor: impl PgExecutor<'_>,
    slug: &str,
) -> Result<Option<ClientId>, sqlx::Error> {
    let id = sqlx::query_scalar!("select client_id from client where slug = $1", slug);
    Ok(id.fetch_optional(executor).await?.map(ClientId::from))
}

/// Most networks of one partner, and of one API key.
pub const NETWORKS_MAX: usize = 64;
/// Longest subject of a certificate, in characters.
pub const SUBJECT_CHARS_MAX: usize = 1_024;
