//! Rampart's core: the trading API on Postgres, without a listener.
//!
//! `<domain>.rs` is a domain's model and rules, `<domain>/<action>.rs` one endpoint in all its
//! versions; `rampart-api` has the tables of all endpoints and the operators' room. [`Core`] holds the
//! shared state of an edge. [`tenancy::snapshot`] keeps Postgres off the path of catalogue reads.

pub mod auth;
mod bootstrap;
pub mod endpoint;
pub mod http;
pub mod money;
pub mod notify;
pub mod partners;
pub mod platform;
pub mod policies;
mod queues;
pub mod readiness;
pub mod tenancy;
pub mod trading;
pub mod users;

use std::sync::Arc;

use crate::auth::login_failures::LoginFailures;
use crate::auth::oidc::Provider;
use crate::auth::passwords::Passwords;
use crate::auth::tokens::Tokens;
pub use crate::bootstrap::StartError;
use crate::endpoint::KeyClaims;
use crate::endpoint::router::ServedApis;
use crate::http::images::ImageProcessor;
use crate::money::connectors::waits::LeaseWaits;
use crate::notify::callbacks::{Outbound, SweptDeliveries};
use crate::notify::events::marks::TransactionMarks;
use crate::partners::Attempts;
use crate::platform::acme::AcmeClient;
use crate::platform::clock::Clock;
use crate::platform::crypto::MasterKey;
use crate::platform::crypto::tenant_key::TenantKeys;
use crate::platform::db::Pool;
use crate::platform::heartbeats::Heartbeats;
use crate::platform::log_throttle::LogThrottle;
use crate::platform::mail::Mailer;
use crate::platform::metrics::Metrics;
use crate::platform::object_store::DocumentStore;
use crate::platform::settings::Settings;
use crate::platform::shared_rates::SharedRates;
use crate::platform::telemetry::Telemetry;
use crate::policies::ShadowQueue;
use crate::policies::runtime::Policies;
use crate::tenancy::snapshot::Snapshots;
use crate::tenancy::tenants::api_keys::ApiKeyUses;
use crate::trading::limits::upstream::Upstream;
use crate::trading::market::PriceCache;
use crate::trading::market::feed::PriceFeed;
use crate::trading::orders::{OrderInserts, OrderReads};
use crate::trading::pay::OrderWatches;
use crate::trading::payment_methods::{MethodCache, PerformanceCache};
use crate::trading::quotes::counts::QuoteCounts;
use crate::trading::sell::onboarding_signers::OnboardingSigners;

/// The shared state of an edge, passed to every endpoint.
#[derive(Debug)]
pub struct Core {
    /// The APIs that it serves.
    pub apis: ServedApis,
    /// Time and entropy.
    pub clock: Clock,
    /// The connection pool. Hot paths read [`Core::snapshots`] instead.
    pub db: Pool,
    /// The master key, from which all other keys are derived.
    pub keys: MasterKey,
    /// Keys of tenants, which the master key has wrapped.
    tenant_keys: TenantKeys,
    /// True if tenants get keys of their own (`keys.per_tenant`).
    has_tenant_keys: bool,
    /// Metrics of this edge.
    pub metrics: Metrics,
    /// Traces of this edge.
    pub telemetry: Telemetry,
    /// The runtime of partners' policies.
    pub policies: Arc<Policies>,
    /// The queue of shadow runs and samples of policies.
    pub policy_shadows: ShadowQueue,
    /// The HTTP client for deliveries to partners.
    pub outbound: Outbound,
    /// The price feed; `None` if the operator sets prices manually.
    pub price_feed: Option<PriceFeed>,
    /// The SMTP client, if configured.
    pub mailer: Option<Mailer>,
    /// The backend for limits, if configured.
    pub upstream: Option<Upstream>,
    /// The configuration.
    pub settings: Settings,
    /// Current tenants and catalogue.
    pub snapshots: Snapshots,
    /// Password hashing on its own threads.
    pub passwords: Passwords,
    /// The object store of documents and proofs.
    pub documents: DocumentStore,
    /// Image processing with limits.
    pub images: ImageProcessor,
    /// The certificate that edges obtain from an authority.
    pub acme: AcmeClient,
    /// The log's lines about senders that have used up their shares.
    used_up_shares: LogThrottle,
    /// Rate limits that edges share.
    pub shared_rates: Arc<SharedRates>,
    /// Rate limits of client credentials.
    pub attempts: Attempts,
    /// The OpenID Connect provider of operators, if configured.
    pub oidc: Option<Provider>,
    /// Failed logins of operators by address.
    pub login_failures: LoginFailures,
    /// Wrong tokens of connectors by address.
    pub connector_failures: LoginFailures,
    /// Waiting leases of connectors.
    pub lease_waits: LeaseWaits,
    /// Rate limits of users' e-mail addresses.
    pub user_attempts: users::Attempts,
    /// Cached payment-method lists of the current catalogue.
    pub method_cache: MethodCache,
    /// Cached price lists of the current catalogue.
    pub price_cache: PriceCache,
    /// Success rates and settlement times of partners' payment methods.
    pub method_performance: PerformanceCache,
    /// Verification of access tokens.
    pub tokens: Tokens,
    /// Orders that share a commit.
    pub order_inserts: OrderInserts,
    /// Claims of idempotency keys.
    pub key_claims: KeyClaims,
    /// Batched reads of single orders.
    pub order_reads: OrderReads,
    /// Orders that pages follow.
    pub order_watches: OrderWatches,
    /// Last uses of API keys that are not written yet.
    pub api_key_uses: ApiKeyUses,
    /// Marks of transactions, by which the event log is read on.
    pub transaction_marks: TransactionMarks,
    /// The place of the sweep of old deliveries.
    pub swept_deliveries: SweptDeliveries,
    /// Quotes that are not written to their hour yet.
    pub quote_counts: QuoteCounts,
    /// Signers of onboarding URLs.
    pub onboarding_signers: OnboardingSigners,
    /// Last successful runs of the background workers.
    pub heartbeats: Heartbeats,
}
