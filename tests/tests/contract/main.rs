//! The contract of every endpoint, seen as bytes over real Postgres: a file per domain, and the
//! loops over the whole table.

#![expect(clippy::panic, clippy::unwrap_used, reason = "what a test cannot do must fail it")]

mod access;
mod admin;
mod backlogs;
mod broken_rows;
mod callbacks;
mod checkout;
mod connectors;
mod console;
mod database_time;
mod dca;
mod deliveries;
mod events;
mod gate;
mod growth;
mod idempotency;
mod mail;
mod market;
mod offers;
mod openapi;
mod operators;
mod orders;
mod pay;
mod payments;
mod policies;
mod policy_calls;
mod portal;
mod quotes;
mod readiness;
mod refusal_pages;
mod sandbox;
mod sell;
mod snapshots;
mod sweeps;
mod table;
mod tenancy;
mod tenants;
mod users;
mod verification;
mod webhooks;
