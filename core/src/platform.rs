//! Technical ground of the core: database, time, settings, metrics, cryptography, mail, storage.
//! Nothing here knows a tenant or an endpoint.

pub mod acme;
pub mod audit;
pub(crate) mod batch;
pub mod clock;
pub mod counted;
pub mod crypto;
pub mod db;
pub mod error;
pub mod heartbeats;
pub mod http_client;
#[cfg(test)]
pub(crate) mod interleavings;
pub mod keyed_budget;
pub mod keyed_semaphore;
pub(crate) mod keyed_shares;
pub(crate) mod log_throttle;
pub mod lookups;
pub mod mail;
pub mod metrics;
pub mod network;
pub mod object_store;
pub mod private_postgres;
pub mod rate_limit;
pub mod revision;
pub mod schema;
pub mod settings;
pub(crate) mod shared_bucket;
pub mod shared_rates;
pub(crate) mod single_flight;
pub mod sweeps;
pub mod telemetry;
