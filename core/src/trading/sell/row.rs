//! A sale from its row.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::Sale;
use crate::platform::error::Result;
use crate::trading::catalogue::Catalogue;
use crate::trading::orders::column::id;
use crate::trading::orders::row::{currency, fees_of_row, known, tag};
use crate::trading::orders::status::{Cause, OrderStatus};
use rampart_types::{Amount, CurrencyCode, PairCode, UserId};

/// The columns that make a [`Sale`].
#[derive(Debug)]
pub(super) struct SaleRow {
    pub(super) order_id: i64,
    pub(super) created_at: DateTime<Utc>,
    pub(super) partner_reference: Option<String>,
    pub(super) status: OrderStatus,
    pub(super) status_cause: Cause,
    pub(super) pair: PairCode,
    pub(super) payment_method: String,
    pub(super) user_id: Option<Uuid>,
    pub(super) account_id: Option<Uuid>,
    pub(super) wallet_address: String,
    pub(super) destination_tag: Option<String>,
    pub(super) fiat_amount: Decimal,
    pub(super) fiat_currency: CurrencyCode,
    pub(super) crypto_amount: Decimal,
    pub(super) crypto_currency: CurrencyCode,
    pub(super) received_amount: Option<Decimal>,
    pub(super) partner_fee: Decimal,
    pub(super) partner_fee_percentage: Decimal,
    pub(super) provider_fee: Decimal,
    pub(super) payment_method_fee: Decimal,
    pub(super) network_fee: Decimal,
    pub(super) spread_fee: Decimal,
    pub(super) affiliate_fee: Decimal,
    pub(super) transaction_id: Option<String>,
    pub(super) expires_at: DateTime<Utc>,
}

/// A statement that reads sales: it has the columns; the caller adds the SQL after `from
/// sell_order` and its arguments.
macro_rules! select_sales {
    ($rest:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query_as!(
            $crate::trading::sell::row::SaleRow,
            "select order_id, created_at, partner_reference, \
             status as \"status: _\", status_cause as \"status_cause: _\", \
             pair as \"pair: _\", payment_method, user_id, account_id, wallet_address, \
             destination_tag, fiat_amount, fiat_currency as \"fiat_currency: _\", \
             crypto_amount, crypto_currency as \"crypto_currency: _\", received_amount, \
             partner_fee, partner_fee_percentage, provider_fee, payment_method_fee, network_fee, \
             spread_fee, affiliate_fee, transaction_id, expires_at from sell_order " + $rest,
            $($argument),+
        )
    };
}

pub(super) use select_sales;

impl SaleRow {
    /// The sale, in the catalogue's currencies.
    ///
    /// # Errors
    /// When the row is invalid; the edge never writes such a row.
    pub(super) fn sale(self, catalogue: &Catalogue) -> Result<Sale> {
        let fiat_currency = currency(catalogue, self.fiat_currency)?;
        let crypto_currency = currency(catalogue, self.crypto_currency)?;
        let fees = fees_of_row!(self);
        let crypto = |amount| Amount::new(amount, crypto_currency.code());
        Ok(Sale {
            id: id(self.order_id)?,
            created_at: self.created_at,
            partner_reference: self.partner_reference,
            status: self.status,
            cause: self.status_cause,
            pair: self.pair,
            fiat: Amount::new(self.fiat_amount, fiat_currency.code()),
            crypto: crypto(self.crypto_amount),
            received: self.received_amount.map(crypto),
            payment_method: self.payment_method,
            user: self.user_id.map(UserId::from),
            account: self.account_id,
            wallet_address: self.wallet_address,
            destination_tag: tag(&crypto_currency, self.destination_tag)?,
            fiat_currency,
            crypto_currency,
            fee_total: known(fees.total())?,
            fees,
            partner_fee_percentage: self.partner_fee_percentage,
            transaction_id: self.transaction_id,
            expires_at: self.expires_at,
        })
    }
}
