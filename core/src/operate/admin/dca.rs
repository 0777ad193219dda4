//! Savings plans: opening one, and reporting deposits to it.

pub mod deposit;
pub mod open;
