//! Offers: terms of a purchase that a partner stores for a while, signed, and a user confirms once.
//!
//! - `terms`: what an offer says, read member by member
//! - [`signature`]: the built-in scheme that proves who said it
//! - [`create`]: the endpoint
//!
//! What an offer fixes is compared where it is confirmed (`orders/confirm/terms.rs`); nothing here
//! reads an offer back.

pub mod create;
pub mod signature;
mod terms;
