//! Tenants, and the snapshot that requests read instead of Postgres.

pub mod snapshot;
pub mod tenants;
