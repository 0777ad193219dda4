//! Checkouts: an offer with a page of its own, to which a partner sends its user (section 6.5 of
//! the contract).
//!
//! - [`create`]: the endpoint; what a checkout says is read and stored as an offer's terms are
//! - [`show`]: the page, at the address that `session` makes
//!
//! The partner's own identifier of the user travels in that address, sealed (`identifiers.rs`).

pub mod create;
mod page;
mod session;
pub mod show;
