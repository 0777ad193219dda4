//! The portal of partners' staff at `/portal`, on the public listener. Its pages work without a script
//! and see the rows of the one partner whose session a request has.
//!
//! `page` is the way of a request to a page: session, role, token of the form; `forms` are those that
//! the pages send. Every other file is a page with its actions.

pub mod account;
pub mod branding;
pub mod deliveries;
pub mod events;
mod forms;
mod identity_checks;
pub mod keys;
pub mod orders;
pub mod overview;
mod page;
pub mod password;
pub mod policies;
pub mod sandbox;
pub mod sign_in;
pub mod team;
pub mod users;
pub mod webhooks;

pub use self::page::Page;
