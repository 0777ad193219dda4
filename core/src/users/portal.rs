//! Pages on which users meet us themselves: they sign in or register, link the identifier by which
//! a partner knows them, and see their account.
//!
//! - `invitation` is what a partner sends a user with: sealed into the address, which is then the
//!   permission
//! - `sign_in` is what these pages ask for, and what they do with it
//! - [`join`], [`dashboard`] and [`verify_bank_account`] are the pages; `bank_account` is the form
//!   of the last, which the sell onboarding has too

pub(crate) mod bank_account;
pub mod dashboard;
pub(crate) mod invitation;
pub mod join;
pub(crate) mod sign_in;
pub mod verify_bank_account;
