//! Offers: signed terms of a purchase that a partner stores for a limited time and a user confirms
//! once.
//!
//! - `terms`: the terms of an offer or a checkout, read from the request
//! - [`signature`]: the built-in signature scheme
//! - `proof`: the request's signature; `login`: the user it is bound to; `stored`: the row
//! - [`create`]: the endpoint
//! - `retention`: the end of those that nobody has confirmed
//!
//! A confirm compares its order with the offer's fixed terms (`orders/confirm/terms.rs`); this
//! module only writes offers.

pub mod create;
pub(crate) mod errors;
pub(crate) mod login;
pub(crate) mod proof;
mod retention;
pub mod signature;
pub(crate) mod stored;
pub(crate) mod terms;
