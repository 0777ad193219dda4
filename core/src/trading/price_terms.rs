//! The price and each fee of a purchase, as shoppers see them before they buy, while they pay, and on
//! the receipt. A fee of an affiliate is nowhere shown: there is none yet.

use rampart_types::FeeBreakdown;
use rust_decimal::Decimal;

use crate::http::language::Texts;

/// A price or a fee: the message that names it, and the amount.
#[derive(Clone, Debug)]
pub(crate) struct PriceTerm {
    message: &'static str,
    /// The amount in fiat, as the catalogue formats it.
    amount: String,
}

impl PriceTerm {
    /// The price of one coin and the fees, in the order in which they are shown.
    pub(crate) fn all(
        price: Decimal,
        fees: &FeeBreakdown,
        format: impl Fn(Decimal) -> String,
    ) -> Vec<Self> {
        let shown = [
            ("term-price", price),
            ("checkout-fee-method", fees.payment_method),
            ("checkout-fee-network", fees.network),
            ("checkout-fee-service", fees.provider),
            ("checkout-fee-shop", fees.partner),
            ("checkout-fee-spread", fees.spread),
        ];
        shown.map(|(message, amount)| Self { message, amount: format(amount) }).into()
    }

    /// Its name and its amount.
    pub(crate) fn text(&self, texts: Texts, shop: &str) -> (String, String) {
        (texts.with(self.message, &[("shop", shop)]), texts.amount(&self.amount))
    }
}
