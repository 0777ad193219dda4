//! Selling: the user sends coins to a deposit address and is paid out in fiat.
//!
//! - [`onboarding`] prepares a user for selling, on the page in [`onboarding_page`], for the partner
//!   that [`onboarding_signers`] finds
//! - [`confirm`] turns a quote into a sale; `status` has its events, [`settle`] applies those that
//!   are due
//! - [`read`] lists and reads a user's sales, [`timeline`] shows what happened to one

pub mod confirm;
mod deposit;
mod insert;
pub mod onboarding;
pub mod onboarding_page;
pub mod onboarding_signers;
pub mod read;
mod row;
pub mod settle;
pub mod status;
pub mod timeline;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::trading::catalogue::Currency;
use crate::trading::orders::status::{Cause, OrderStatus};
use rampart_types::{Amount, DestinationTag, FeeBreakdown, OrderId, PairCode, UserId};

/// A sale as stored. Its currencies are the catalogue's.
#[derive(Clone, Debug)]
pub struct Sale {
    /// Its id.
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
    pub(crate) user: Option<UserId>,
    /// The user's account for the payout.
    pub(crate) account: Option<Uuid>,
    /// Deposit address of the coins.
    pub(crate) wallet_address: String,
    pub(crate) destination_tag: Option<DestinationTag>,
    /// Amount that the user gets.
    pub(crate) fiat: Amount,
    /// Amount that the user sends.
    pub(crate) crypto: Amount,
    /// Amount that has arrived.
    pub(crate) received: Option<Amount>,
    /// In the fiat currency, as all of `fees`.
    pub(crate) fee_total: Decimal,
    pub(crate) fees: FeeBreakdown,
    pub(crate) partner_fee_percentage: Decimal,
    pub(crate) transaction_id: Option<String>,
    /// Time after which a deposit is late.
    pub(crate) expires_at: DateTime<Utc>,
}
