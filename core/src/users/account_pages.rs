//! Pages for users: they sign in or register, link the partner's identifier, and see their account.
//!
//! - `invitation` is a partner's invitation of a user, sealed into the URL as the permission
//! - `sign_in` has the forms of these pages and their actions, `sign_in_page` a page as they see it,
//!   `sign_in_outcome` the user whom they prove
//! - [`join`], [`dashboard`] and [`verify_bank_account`] are the pages; `bank_account` is the form of
//!   the last, which the sell onboarding uses too
//! - `passkey` and `authenticator_app` have the forms of second factors, which stand on the pages that
//!   sign in and on the account's
//! - `requirements`, `orders`, `sessions`, `languages`, `personal` and `erasure` are sections of the
//!   account's page, which is a `view` to them

mod authenticator_app;
pub(crate) mod bank_account;
pub mod dashboard;
mod erasure;
pub(crate) mod invitation;
pub mod join;
mod languages;
mod orders;
pub(crate) mod passkey;
mod personal;
mod requirements;
mod sessions;
pub(crate) mod sign_in;
pub(crate) mod sign_in_outcome;
pub(crate) mod sign_in_page;
pub mod verify_bank_account;
mod view;
