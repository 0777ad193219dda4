//! Money that moves and the books about it.
//!
//! - [`payments`] are facts: what providers, banks, chains and operators report
//! - `ledger` holds the entries that every fact posts
//! - [`connectors`] carries commands to providers and their events back
//! - `reconciliation` compares a statement with the payments on record

pub mod connectors;
pub mod ledger;
mod metrics;
pub mod payments;
pub mod reconciliation;
