//! What a user still has to prove, and proving it (section 7 of the contract).

pub mod amld5;
pub(crate) mod questions;
