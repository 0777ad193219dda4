//! Offers: terms of a purchase that a partner stores for a while, signed, and a user confirms once.
//!
//! - `terms`: what an offer says, read member by member; a checkout says it too
//! - [`signature`]: the built-in scheme that proves who said it
//! - `proof`: what of that a request brings; `login`: whom it is for; `stored`: the row
//! - [`create`]: the endpoint
//!
//! What an offer fixes is compared where it is confirmed (`orders/confirm/terms.rs`); nothing here
//! reads an offer back.

pub mod create;
pub(crate) mod errors;
pub(crate) mod login;
pub(crate) mod proof;
pub mod signature;
pub(crate) mod stored;
pub(crate) mod terms;
