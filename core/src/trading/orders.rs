//! Buy orders, from the confirmed quote to the delivery of the coins.

pub(crate) mod callback;
pub mod column;
pub mod confirm;
pub mod expiry;
mod fees;
pub(crate) mod insert;
pub mod list;
pub mod lookup;
pub(crate) mod not_completed;
pub mod payment_link;
pub(crate) mod quoted;
pub mod read;
pub mod receipt;
pub(crate) mod row;
pub mod state;
pub mod status;
pub mod timeline;
pub mod wallet_check;
pub mod wallet_proof;

use schemars::JsonSchema;
use serde::Serialize;

pub use self::insert::OrderInserts;
pub use self::lookup::OrderReads;
pub(crate) use self::row::Order;
pub(crate) use self::state::WalletType;
use crate::trading::catalogue::Currency;

/// The wallet and the transaction, with explorer URLs, in both versions of an order.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockchainInfo {
    /// Address that the coins are sent to.
    pub(crate) wallet_address: String,
    /// URL of the address at an explorer of the chain.
    pub(crate) wallet_explorer: String,
    /// Id of the transaction on the chain.
    pub(crate) transaction_id: String,
    /// URL of the transaction at an explorer of the chain.
    pub(crate) transaction_explorer: String,
}

impl BlockchainInfo {
    /// Texts are empty until they are known.
    pub(crate) fn new(currency: Option<&Currency>, address: &str, transaction_id: &str) -> Self {
        let explorers = currency.and_then(|currency| currency.crypto.as_ref());
        let join = |base: Option<&String>, id: &str| match base.map(String::as_str) {
            Some(base) if !id.is_empty() => [base, id].concat(),
            _ => String::new(),
        };
        Self {
            wallet_explorer: join(
                explorers.and_then(|crypto| crypto.address_explorer.as_ref()),
                address,
            ),
            transaction_explorer: join(
                explorers.and_then(|crypto| crypto.transaction_explorer.as_ref()),
                transaction_id,
            ),
            wallet_address: address.to_owned(),
            transaction_id: transaction_id.to_owned(),
        }
    }
}
