//! Buy orders: what a confirmed quote becomes, until the coins arrive.

mod callback;
pub mod expiry;
pub mod status;
