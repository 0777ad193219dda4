//! Selling: the user sends coins to a deposit address and is paid out in fiat.
//!
//! - [`onboarding`] gets a user ready, on the page in [`onboarding_page`]
//! - [`confirm`] makes a sale of a quote; `status` is the one way to change it, [`settle`] what
//!   happens by itself
//! - [`orders`] shows sales to their user

pub mod confirm;
mod insert;
pub mod onboarding;
pub mod onboarding_page;
pub mod orders;
mod row;
pub mod settle;
pub(crate) mod status;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::trading::catalogue::Currency;
use crate::trading::orders::status::{Cause, OrderStatus};
use rampart_types::{Amount, DestinationTag, FeeBreakdown, OrderId, PairCode, UserId};

/// Methods by which a sale is paid out.
pub(crate) const PAYOUT_METHODS: [&str; 3] = ["bankTransfer", "creditCard", "walletpay"];

/// A sale as it stands, consistent: its currencies are the catalogue's.
#[derive(Clone, Debug)]
pub(crate) struct Sale {
    pub(crate) id: OrderId,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) partner_reference: Option<String>,
    pub(crate) status: OrderStatus,
    /// What brought it to its status.
    pub(crate) cause: Cause,
    /// The operator's words for it.
    pub(crate) reason: Option<String>,
    pub(crate) pair: PairCode,
    pub(crate) fiat_currency: Arc<Currency>,
    pub(crate) crypto_currency: Arc<Currency>,
    pub(crate) payment_method: String,
    pub(crate) user: Option<UserId>,
    /// The user's account that is paid out to.
    pub(crate) account: Option<Uuid>,
    /// Where the coins are to go.
    pub(crate) wallet_address: String,
    pub(crate) destination_tag: Option<DestinationTag>,
    /// What the user gets.
    pub(crate) fiat: Amount,
    /// What the user sends.
    pub(crate) crypto: Amount,
    /// What has arrived.
    pub(crate) received: Option<Amount>,
    /// In the fiat currency, as all of `fees`.
    pub(crate) fee_total: Decimal,
    pub(crate) fees: FeeBreakdown,
    pub(crate) partner_fee_percentage: Decimal,
    pub(crate) transaction_id: Option<String>,
    /// Coins that come later are late.
    pub(crate) expires_at: DateTime<Utc>,
}
