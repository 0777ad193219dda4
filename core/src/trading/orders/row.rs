//! An order, and the row that it is stored in.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

use super::BlockchainInfo;
use super::column::id;
use super::state::{Cause, OrderStatus};
use crate::platform::error::{Error, Result};
use crate::trading::catalogue::{Catalogue, Currency};
use rampart_types::{
    Amount, CurrencyCode, DestinationTag, FeeBreakdown, OrderId, PairCode, TagKind,
};

/// An order as stored. Its amounts obey the fee identity, its currencies are the catalogue's.
#[derive(Clone, Debug)]
pub struct Order {
    pub id: OrderId,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) partner_reference: Option<String>,
    pub(crate) status: OrderStatus,
    /// Cause of its status.
    pub(crate) cause: Cause,
    pub(crate) pair: PairCode,
    pub(crate) fiat_currency: Arc<Currency>,
    pub(crate) crypto_currency: Arc<Currency>,
    pub(crate) payment_method: String,
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

impl Order {
    /// Wallet and transaction with their explorer URLs.
    pub(super) fn blockchain_info(&self) -> BlockchainInfo {
        let transaction_id = self.transaction_id.as_deref().unwrap_or_default();
        BlockchainInfo::new(Some(&self.crypto_currency), &self.wallet_address, transaction_id)
    }
}

/// The columns that make an [`Order`].
#[derive(Debug)]
pub(super) struct OrderRow {
    /// Position among the orders that were read together, from 1; 0 where one was.
    pub(super) place: i64,
    pub(super) order_id: i64,
    pub(super) created_at: DateTime<Utc>,
    pub(super) partner_reference: Option<String>,
    pub(super) status: OrderStatus,
    pub(super) status_cause: Cause,
    pub(super) pair: PairCode,
    pub(super) payment_method: String,
    pub(super) wallet_address: String,
    pub(super) destination_tag: Option<String>,
    pub(super) fiat_amount: Decimal,
    pub(super) fiat_currency: CurrencyCode,
    pub(super) crypto_amount: Decimal,
    pub(super) crypto_currency: CurrencyCode,
    pub(super) partner_fee: Decimal,
    pub(super) partner_fee_percentage: Option<Decimal>,
    pub(super) provider_fee: Decimal,
    pub(super) payment_method_fee: Decimal,
    pub(super) network_fee: Decimal,
    pub(super) spread_fee: Decimal,
    pub(super) affiliate_fee: Decimal,
    pub(super) is_dca_order: bool,
    pub(super) is_estimated_quote: bool,
    pub(super) transaction_id: Option<String>,
    pub(super) expires_at: Option<DateTime<Utc>>,
}

/// A statement that reads orders: the columns are written here, what follows `from buy_order` and
/// its arguments are the caller's. One that reads several by name joins the names that were asked
/// for, in their places, with a subquery for each.
macro_rules! select_orders {
    ($rest:literal, $($argument:expr),+ $(,)?) => {
        $crate::trading::orders::row::select_orders!(
            place "0::bigint", from "buy_order ", $rest, $($argument),+
        )
    };
    (each of $asked:literal, $rest:literal, $($argument:expr),+ $(,)?) => {
        $crate::trading::orders::row::select_orders!(
            place "asked.place",
            from $asked
                "cross join lateral ( \
                 select order_id, created_at, partner_reference, status, status_cause, \
                 pair, payment_method, wallet_address, \
                 destination_tag, fiat_amount, fiat_currency, crypto_amount, crypto_currency, \
                 partner_fee, partner_fee_percentage, provider_fee, payment_method_fee, \
                 network_fee, spread_fee, affiliate_fee, is_dca_order, is_estimated_quote, \
                 transaction_id, expires_at from buy_order ",
            $rest,
            $($argument),+
        )
    };
    (place $place:literal, from $($from:literal)+, $rest:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query_as!(
            $crate::trading::orders::row::OrderRow,
            "select " + $place + " as \"place!\", order_id, created_at, partner_reference, \
             status as \"status: _\", status_cause as \"status_cause: _\", \
             pair as \"pair: _\", payment_method, \
             wallet_address, destination_tag, \
             fiat_amount, fiat_currency as \"fiat_currency: _\", \
             crypto_amount, crypto_currency as \"crypto_currency: _\", \
             partner_fee, partner_fee_percentage, provider_fee, payment_method_fee, network_fee, \
             spread_fee, affiliate_fee, is_dca_order, is_estimated_quote, transaction_id, \
             expires_at from " $(+ $from)+ + $rest,
            $($argument),+
        )
    };
}

pub(super) use select_orders;

/// The fees in the columns of a row, which an order and a sale name alike.
macro_rules! fees_of_row {
    ($row:expr) => {
        rampart_types::FeeBreakdown {
            partner: $row.partner_fee,
            provider: $row.provider_fee,
            payment_method: $row.payment_method_fee,
            network: $row.network_fee,
            spread: $row.spread_fee,
            affiliate: $row.affiliate_fee,
        }
    };
}

pub(crate) use fees_of_row;

impl OrderRow {
    /// The order, in the catalogue's currencies.
    ///
    /// # Errors
    /// When the row says what no order can say; the edge never writes such a row.
    pub(super) fn order(self, catalogue: &Catalogue) -> Result<Order> {
        let fiat_currency = currency(catalogue, self.fiat_currency)?;
        let crypto_currency = currency(catalogue, self.crypto_currency)?;
        let fees = fees_of_row!(self);
        Ok(Order {
            id: id(self.order_id)?,
            created_at: self.created_at,
            partner_reference: self.partner_reference,
            status: self.status,
            cause: self.status_cause,
            pair: self.pair,
            fiat: Amount::new(self.fiat_amount, fiat_currency.code()),
            crypto: Amount::new(self.crypto_amount, crypto_currency.code()),
            payment_method: self.payment_method,
            wallet_address: self.wallet_address,
            destination_tag: tag(&crypto_currency, self.destination_tag)?,
            fiat_currency,
            crypto_currency,
            fee_total: known(fees.total())?,
            fees,
            partner_fee_percentage: self.partner_fee_percentage,
            is_dca: self.is_dca_order,
            is_estimated: self.is_estimated_quote,
            transaction_id: self.transaction_id,
            expires_at: self.expires_at,
        })
    }
}

/// The tag of a wallet of this currency.
pub(crate) fn tag(currency: &Currency, text: Option<String>) -> Result<Option<DestinationTag>> {
    let crypto = currency.crypto.as_ref();
    let kind = crypto.map_or(TagKind::None, |crypto| crypto.chain.tag_kind());
    let tag = text.map(|text| DestinationTag::parse(kind, &text)).transpose();
    tag.map_err(|error| Error::internal("read an order's tag", error))
}

/// The catalogue's currency of a column.
pub(crate) fn currency(catalogue: &Catalogue, code: CurrencyCode) -> Result<Arc<Currency>> {
    known(catalogue.currencies.get(&code).cloned())
}

/// A value that a row must have.
pub(crate) fn known<T>(value: Option<T>) -> Result<T> {
    value.ok_or_else(|| Error::invariant("read an order: a value nobody knows"))
}
