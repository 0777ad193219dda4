//! Endpoints that describe the market: pairs, prices, regions; and the price feed.
//!
//! Pairs, methods, prices and quotes of a request come from one catalogue revision, so that a
//! listed price can be quoted (section 5 of the contract).

pub mod client_info;
pub mod currency_pairs;
pub mod feed;
mod price_cache;
pub mod prices;
pub mod system_info;

pub use self::price_cache::PriceCache;
