//! A row of the comparison.

use std::sync::Arc;

use chrono::SecondsFormat;
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

use super::Obstacle;
use crate::trading::catalogue::Pair;
use crate::trading::quotes::Quote;
use crate::trading::quotes::create::single_coin;
use crate::trading::quotes::limits::Reason;
use crate::trading::quotes::request::Request;
use crate::trading::quotes::token::Token;
use rampart_types::{CurrencyDetails, JsonDecimal, PairCode, Preserialized};

/// One payment method and pair.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ComparedQuote")]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The sealed quote, which the confirm takes unchanged; null where it cannot be bought so.
    quote: Option<Token>,
    /// Base and quote currency, such as `BTC-EUR`.
    currency_pair: PairCode,
    /// Code of the payment method.
    payment_method: String,
    /// Amount of the quote currency.
    fiat_amount: JsonDecimal,
    /// Amount of the base currency.
    crypto_amount: Option<JsonDecimal>,
    /// Price of one of the base currency.
    price: Option<JsonDecimal>,
    /// Fee of the payment method.
    payment_method_cost: Option<JsonDecimal>,
    /// Fee of the network.
    network_fee_cost: Option<JsonDecimal>,
    /// Fee of the service.
    provider_fee: Option<JsonDecimal>,
    /// Fee of the service, in percent.
    provider_fee_percentage: JsonDecimal,
    /// Fee of the partner.
    partner_fee: Option<JsonDecimal>,
    /// Fee of the partner, in percent.
    partner_fee_percentage: Option<JsonDecimal>,
    /// Spread, with what rounding has left.
    spread_fee: Option<JsonDecimal>,
    /// Price of one of the base currency, all fees included.
    single_coin_estimate: Option<JsonDecimal>,
    /// `true` if the price is fixed when the payment arrives.
    is_estimated_quote: bool,
    /// Time until which `quote` is good; null without one.
    #[schemars(extend("format" = "date-time"))]
    expiry_date: Option<String>,
    /// Reasons for which a confirm would be refused, or the order would wait.
    quote_unconfirmable_reasons: Vec<Reason>,
    /// The reasons for which it cannot be bought so; empty where it can.
    reasons: Vec<Obstacle>,
    /// Currency that is given.
    source_currency: Arc<Preserialized<CurrencyDetails>>,
    /// Currency that is received.
    target_currency: Arc<Preserialized<CurrencyDetails>>,
}

impl Row {
    pub(super) fn new(
        request: &Request,
        fiat: Decimal,
        quote: Option<Quote>,
        sealed: Option<Token>,
        quote_unconfirmable_reasons: Vec<Reason>,
        reasons: Vec<Obstacle>,
    ) -> Self {
        let pair: &Pair = &request.pair;
        let of = |amount: fn(&Quote) -> Decimal| quote.as_ref().map(|quote| amount(quote).into());
        let one = quote.as_ref().and_then(|q| single_coin(q.fiat, q.crypto, pair.quote.scale()));
        let sealed_quote = quote.as_ref().filter(|_| sealed.is_some());
        let expiry = sealed_quote.map(|quote| quote.expires_at);
        Self {
            quote: sealed,
            currency_pair: pair.code,
            payment_method: request.method.code.clone(),
            fiat_amount: fiat.into(),
            crypto_amount: of(|quote| quote.crypto),
            price: of(|quote| quote.price),
            payment_method_cost: of(|quote| quote.fees.payment_method),
            network_fee_cost: of(|quote| quote.fees.network),
            provider_fee: of(|quote| quote.fees.provider),
            provider_fee_percentage: pair.provider_fee_percentage.into(),
            partner_fee: of(|quote| quote.fees.partner),
            partner_fee_percentage: of(|quote| quote.partner_fee_percentage),
            spread_fee: of(|quote| quote.fees.spread),
            single_coin_estimate: one.map(JsonDecimal),
            is_estimated_quote: request.method.uses_estimated_quote,
            expiry_date: expiry.map(|at| at.to_rfc3339_opts(SecondsFormat::Millis, true)),
            quote_unconfirmable_reasons,
            reasons,
            source_currency: Arc::clone(&pair.quote.details),
            target_currency: Arc::clone(&pair.base.details),
        }
    }
}
