//! Rampart's core: the API over Postgres, without a listener.
//!
//! Where to look: [`api`] is the table of every endpoint; `<domain>.rs` is a domain's model and
//! rules, `<domain>/<action>.rs` one endpoint in all its versions. [`Core`] is what an endpoint
//! may use. [`snapshot`] keeps Postgres off the path of catalogue reads.

pub mod accounts;
pub mod admin;
pub mod admission;
pub mod api;
pub mod audit;
pub mod callbacks;
pub mod caller;
pub mod catalogue;
mod changes;
pub mod checkout;
pub mod clients;
pub mod clock;
pub mod credentials;
pub mod db;
pub mod dca;
pub mod documents;
pub mod endpoint;
pub mod error;
pub mod events;
pub mod exchange;
pub mod fields;
mod gather;
pub mod identifiers;
pub mod images;
pub mod limits;
pub mod mail;
pub mod market;
pub mod metrics;
pub mod offers;
pub mod openapi;
pub mod orders;
mod page;
mod page_token;
pub mod passwords;
pub mod pay;
pub mod payment_methods;
pub mod policies;
pub mod portal;
pub mod pricing;
pub mod private_postgres;
pub mod quotes;
pub mod rate_limit;
pub mod readiness;
pub mod sandbox;
pub mod secrets;
pub mod sell;
pub mod settings;
pub mod snapshot;
pub mod start;
pub mod system;
pub mod tenants;
pub mod tokens;
pub mod types;
pub mod upload;
pub mod users;
pub mod verification;
pub mod webhooks;
pub mod workers;

use sqlx::PgPool;

use crate::callbacks::Outbound;
use crate::clients::Attempts;
use crate::clock::Clock;
use crate::documents::Documents;
use crate::images::Images;
use crate::limits::upstream::Upstream;
use crate::mail::Mailer;
use crate::market::feed::PriceFeed;
use crate::metrics::Metrics;
use crate::orders::OrderReads;
use crate::orders::confirm::Confirms;
use crate::passwords::Passwords;
use crate::policies::Policies;
use crate::secrets::MasterKey;
use crate::settings::Settings;
use crate::snapshot::Snapshots;
use crate::tenants::api_keys::ApiKeyUses;
use crate::tokens::Tokens;

/// What every endpoint may use. One per edge, in an `Arc`.
#[derive(Debug)]
pub struct Core {
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
    pub documents: Documents,
    /// Work on images, bounded.
    pub images: Images,
    /// Tries of client credentials, by who tries.
    pub attempts: Attempts,
    /// Tries of users' e-mail addresses.
    pub user_attempts: users::Attempts,
    /// Access tokens.
    pub tokens: Tokens,
    /// Confirms that share a commit.
    pub confirms: Confirms,
    /// Reads of single orders.
    pub order_reads: OrderReads,
    /// Last uses of API keys, not yet written.
    pub api_key_uses: ApiKeyUses,
}

/// Compiles what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
