//! Rampart's core: the API over Postgres, without a listener.
//!
//! Where to look: [`api`] is the table of every endpoint; `<domain>.rs` is a domain's model and
//! rules, `<domain>/<action>.rs` one endpoint in all its versions. [`Core`] is what an endpoint
//! may use. [`snapshot`] keeps Postgres off the path of catalogue reads.

pub mod api;
pub mod auth;
mod bootstrap;
pub mod endpoint;
pub mod http;
pub mod notify;
pub mod operate;
pub mod partners;
pub mod platform;
pub mod policies;
pub mod tenancy;
pub mod trading;
pub mod users;
pub mod workers;

use sqlx::PgPool;

use crate::auth::passwords::Passwords;
use crate::auth::tokens::Tokens;
use crate::endpoint::KeyClaims;
use crate::endpoint::router::ServedApi;
use crate::http::images::ImageProcessor;
use crate::notify::callbacks::Outbound;
use crate::partners::Attempts;
use crate::platform::clock::Clock;
use crate::platform::crypto::MasterKey;
use crate::platform::mail::Mailer;
use crate::platform::metrics::Metrics;
use crate::platform::object_store::DocumentStore;
use crate::platform::settings::Settings;
use crate::policies::ShadowQueue;
use crate::policies::runtime::Policies;
use crate::tenancy::snapshot::Snapshots;
use crate::tenancy::tenants::api_keys::ApiKeyUses;
use crate::trading::limits::upstream::Upstream;
use crate::trading::market::feed::PriceFeed;
use crate::trading::orders::{OrderInserts, OrderReads};
use crate::trading::payment_methods::MethodCache;

/// What every endpoint may use. One per edge, in an `Arc`.
#[derive(Debug)]
pub struct Core {
    /// The partners' API, served on the public listener.
    pub partners_api: &'static ServedApi,
    /// The operators' API, served on their listener.
    pub operators_api: &'static ServedApi,
    /// Time and entropy.
    pub clock: Clock,
    /// The pool. Hot paths read [`Core::snapshots`] instead.
    pub db: PgPool,
    /// The key that all others are derived from.
    pub keys: MasterKey,
    /// Metrics of this edge.
    pub metrics: Metrics,
    /// What partners' policies run in.
    pub policies: Policies,
    /// Shadow runs and samples of policies that wait for a worker.
    pub policy_shadows: ShadowQueue,
    /// How partners are called.
    pub outbound: Outbound,
    /// Where prices are read; `None` while the operator sets them by hand.
    pub price_feed: Option<PriceFeed>,
    /// The mail server, if there is one.
    pub mailer: Option<Mailer>,
    /// Who answers about limits, if it is another backend.
    pub upstream: Option<Upstream>,
    /// Settings as configured.
    pub settings: Settings,
    /// Tenants and catalogue as of now.
    pub snapshots: Snapshots,
    /// Password hashing, bounded.
    pub passwords: Passwords,
    /// Where images of documents and proofs are kept.
    pub documents: DocumentStore,
    /// Work on images, bounded.
    pub images: ImageProcessor,
    /// Tries of client credentials, by who tries.
    pub attempts: Attempts,
    /// Tries of users' e-mail addresses.
    pub user_attempts: users::Attempts,
    /// Payment-method lists of the current catalogue.
    pub method_cache: MethodCache,
    /// Access tokens.
    pub tokens: Tokens,
    /// Orders that share a commit.
    pub order_inserts: OrderInserts,
    /// Claims of idempotency keys.
    pub key_claims: KeyClaims,
    /// Reads of single orders.
    pub order_reads: OrderReads,
    /// Last uses of API keys, not yet written.
    pub api_key_uses: ApiKeyUses,
}

/// Compiles what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
