//! The columns that an order has from its quote, bought or sold.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::Core;
use crate::trading::catalogue::Catalogue;
use crate::trading::limits;
use crate::trading::pricing::FeeRules;
use crate::trading::quotes::Quote;

/// The columns that an order has from its quote.
#[derive(Debug, Serialize)]
pub(crate) struct QuotedColumns {
    pub(super) quote_id: Uuid,
    pub(super) pair: String,
    pub(super) payment_method: String,
    pub(super) fiat_amount: Decimal,
    pub(super) fiat_currency: String,
    /// `fiat_amount` in the currency of limits at the rate of the confirm; `None` without a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit_amount: Option<Decimal>,
    pub(super) crypto_amount: Decimal,
    pub(super) crypto_currency: String,
    pub(super) price: Decimal,
    pub(super) partner_fee: Decimal,
    pub(super) partner_fee_percentage: Decimal,
    pub(super) provider_fee: Decimal,
    pub(super) payment_method_fee: Decimal,
    pub(super) network_fee: Decimal,
    pub(super) spread_fee: Decimal,
    pub(super) affiliate_fee: Decimal,
    #[serde(serialize_with = "in_hexadecimal")]
    pub(super) fee_rules: Option<FeeRules>,
    /// Time and revision of the catalogue of the quote, by which the statement knows one that is void.
    pub(super) quote_sealed_at: DateTime<Utc>,
    pub(super) quote_revision: i64,
}

impl QuotedColumns {
    /// The columns of this quote, at the rates of now.
    pub(crate) fn new(core: &Core, catalogue: &Catalogue, quote: &Quote) -> Self {
        Self {
            quote_id: quote.id.uuid(),
            pair: quote.pair.to_string(),
            payment_method: quote.payment_method.clone(),
            fiat_amount: quote.fiat,
            fiat_currency: quote.fiat_currency().to_string(),
            limit_amount: limits::limit_amount(core, catalogue, quote),
            crypto_amount: quote.crypto,
            crypto_currency: quote.crypto_currency().to_string(),
            price: quote.price,
            partner_fee: quote.fees.partner,
            partner_fee_percentage: quote.partner_fee_percentage,
            provider_fee: quote.fees.provider,
            payment_method_fee: quote.fees.payment_method,
            network_fee: quote.fees.network,
            spread_fee: quote.fees.spread,
            affiliate_fee: quote.fees.affiliate,
            fee_rules: quote.fee_rules.clone(),
            quote_sealed_at: quote.issued_at,
            quote_revision: quote.catalogue_revision,
        }
    }
}

/// Writes rules in Postgres's hexadecimal form of bytes, if there are any.
fn in_hexadecimal<S: Serializer>(
    rules: &Option<FeeRules>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let rules = rules.as_ref().map(|rules| format!("\\x{}", hex::encode(rules.as_bytes())));
    rules.serialize(serializer)
}
