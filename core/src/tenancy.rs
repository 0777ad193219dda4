//! Tenants, and the snapshot that requests read instead of Postgres.

pub mod house;
pub mod snapshot;
pub mod tenant_keys;
pub mod tenants;
