//! The price and each fee of a purchase, as shoppers see them before they buy, while they pay, and on
//! the receipt. A fee of an affiliate is nowhere shown: there is none yet.

use rampart_types::FeeBreakdown;
use rust_decimal::Decimal;

use crate::http::language::Texts;
use crate::trading::catalogue::Catalogue;
use crate::trading::market::prices::rounded;

/// A price or a fee: the message that names it, and the amount.
#[derive(Clone, Debug)]
pub(crate) struct PriceTerm {
    message: &'static str,
    /// The amount in fiat, as the catalogue formats it.
    amount: String,
}

impl PriceTerm {
    /// The price of one coin and the fees in this currency, in the order in which they are shown.
    pub(crate) fn all(
        catalogue: &Catalogue,
        currency: &str,
        price: Decimal,
        fees: &FeeBreakdown,
    ) -> Vec<Self> {
        let price = ("term-price", format_price(catalogue, price, currency));
        let fees = [
            ("checkout-fee-method", fees.payment_method),
            ("checkout-fee-network", fees.network),
            ("checkout-fee-service", fees.provider),
            ("checkout-fee-shop", fees.partner),
            ("checkout-fee-spread", fees.spread),
        ];
        let fees = fees.map(|(name, fee)| (name, catalogue.format_amount(fee, currency)));
        let shown = [price].into_iter().chain(fees);
        shown.map(|(message, amount)| Self { message, amount }).collect()
    }

    /// Its name and its amount.
    pub(crate) fn text(&self, texts: Texts, shop: &str) -> (String, String) {
        (texts.with(self.message, &[("shop", shop)]), texts.amount(&self.amount))
    }
}

/// A price of one coin for people, with the digits that partners see: `50000.00 EUR`, and
/// `0.0712346 EUR` of a coin that is worth some cents.
pub fn format_price(catalogue: &Catalogue, price: Decimal, currency: &str) -> String {
    let fiat = currency.parse().ok().and_then(|code| catalogue.currencies.get(&code));
    let exponent = fiat.map_or(0, |fiat| fiat.scale());
    let price = rounded(price, exponent).unwrap_or(price).normalize();
    let decimals = usize::try_from(exponent.max(price.scale())).unwrap_or(0);
    format!("{price:.decimals$} {currency}")
}
