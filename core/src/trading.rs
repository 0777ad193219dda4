//! Buying and selling: catalogue, prices, quotes, offers, orders, sales, savings plans, limits.

pub mod catalogue;
mod channel;
pub mod checkout;
pub mod checks;
pub mod dca;
pub mod limits;
pub mod market;
pub mod offers;
pub mod orders;
mod packed;
pub mod pay;
pub mod payment_methods;
pub mod price_terms;
pub mod pricing;
pub mod quotes;
pub mod receipt_keys;
pub mod routing;
pub mod sandbox;
pub mod sell;
pub mod wallet_proof;
