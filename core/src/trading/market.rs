//! The market as partners read it: what can be traded, at which price, and where.
//!
//! Pairs, methods, prices and quotes of a request come from one catalogue version, so what is
//! listed can be quoted (section 5 of the contract).

pub mod client_info;
pub mod currency_pairs;
pub mod feed;
pub mod prices;
pub mod system_info;
