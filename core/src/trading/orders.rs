//! Buy orders, from the confirmed quote to the delivery of the coins.

pub(crate) mod callback;
pub mod confirm;
pub mod expiry;
pub(crate) mod insert;
pub mod list;
pub(crate) mod lookup;
pub(crate) mod not_completed;
pub mod payment_link;
pub mod read;
pub(crate) mod row;
pub(crate) mod state;
pub mod status;
pub mod timeline;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

pub use self::insert::OrderInserts;
pub use self::lookup::OrderReads;
use self::status::{Cause, OrderStatus};
use crate::trading::catalogue::Currency;
use rampart_types::{Amount, DestinationTag, FeeBreakdown, OrderId, PairCode};

/// An order as stored. Its amounts obey the fee identity, its currencies are the catalogue's.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) id: OrderId,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) partner_reference: Option<String>,
    pub(crate) status: OrderStatus,
    /// Cause of its status.
    pub(crate) cause: Cause,
    /// The operator's reason for its status.
    pub(crate) reason: Option<String>,
    pub(crate) pair: PairCode,
    pub(crate) fiat_currency: Arc<Currency>,
    pub(crate) crypto_currency: Arc<Currency>,
    pub(crate) payment_method: String,
    pub(crate) wallet_type: WalletType,
    pub(crate) wallet_address: String,
    pub(crate) destination_tag: Option<DestinationTag>,
    /// Amount that the user pays.
    pub(crate) fiat: Amount,
    /// Amount that the user gets.
    pub(crate) crypto: Amount,
    /// In the fiat currency, as all of `fees`.
    pub(crate) fee_total: Decimal,
    pub(crate) fees: FeeBreakdown,
    pub(crate) partner_fee_percentage: Option<Decimal>,
    pub(crate) is_dca: bool,
    pub(crate) is_estimated: bool,
    pub(crate) transaction_id: Option<String>,
    /// Time after which it can no longer be paid; `None` for bank transfers, which may take any
    /// time.
    pub(crate) expires_at: Option<DateTime<Utc>>,
}

/// Type of the wallet that the coins go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WalletType {
    /// A wallet hosted by a service provider.
    Vasp,
    /// A wallet that the user holds the keys of.
    Unhosted,
}

impl WalletType {
    /// On the wire and in the database.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Vasp => "vasp",
            Self::Unhosted => "unhosted",
        }
    }

    /// The type of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Vasp, Self::Unhosted].into_iter().find(|kind| kind.as_str() == name)
    }
}

rampart_types::enum_column!(WalletType);

/// The wallet and the transaction, with explorer URLs, in both versions of an order.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockchainInfo {
    wallet_address: String,
    wallet_explorer: String,
    transaction_id: String,
    transaction_explorer: String,
}

impl BlockchainInfo {
    /// Texts are empty until they are known.
    pub(crate) fn new(currency: &Currency, address: &str, transaction_id: &str) -> Self {
        let explorers = currency.crypto.as_ref();
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

impl Order {
    fn blockchain_info(&self) -> BlockchainInfo {
        let transaction_id = self.transaction_id.as_deref().unwrap_or_default();
        BlockchainInfo::new(&self.crypto_currency, &self.wallet_address, transaction_id)
    }
}
