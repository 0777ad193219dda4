//! A payment method, and the kinds of them.

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::language::{Language, Texts};

/// A payment method.
#[derive(Debug)]
pub struct PaymentMethod {
    /// The service's code.
    pub code: String,
    /// Name shown to users.
    pub label: String,
    /// The payment service provider behind it.
    pub psp: String,
    /// Its kind.
    pub kind: PaymentMethodKind,
    /// Largest amount, in fiat.
    pub limit: Decimal,
    /// Fixed fee, in fiat.
    pub fee_fixed: Decimal,
    /// Fee in percent of the fiat amount.
    pub fee_percentage: Decimal,
    /// Seconds that a user has to pay.
    pub expiration_period_seconds: u32,
    /// True if the payment page needs a tab of its own.
    pub open_in_new_tab: bool,
    /// True if the rate is fixed when the payment arrives instead of when it is ordered.
    pub uses_estimated_quote: bool,
    /// False if it is not offered.
    pub enabled: bool,
    /// `{type, value}` pairs for the partner's user interface; no check reads them, `countries`
    /// neither.
    pub context: serde_json::Value,
}

impl PaymentMethod {
    /// True if one payment may be of this amount. Quotes report a refusal, confirms fail with it.
    pub fn accepts(&self, fiat: Decimal) -> bool {
        fiat <= self.limit
    }

    /// The name on a page: the label, in the reader's language while it is the one that the method
    /// came with. One that an operator has set is shown as it is, as those of brands are.
    pub(crate) fn name(&self, texts: Texts) -> String {
        let id = match &*self.code {
            "bankTransfer" => "method-bank-transfer",
            "creditCard" => "method-credit-card",
            "localcard" => "method-local-card",
            "payByBank" => "method-pay-by-bank",
            "walletpay" => "method-wallet",
            _ => return self.label.clone(),
        };
        match Language::English.texts().get(id) == self.label {
            true => texts.get(id),
            false => self.label.clone(),
        }
    }
}

/// The kind of a payment method, as method-order policies know it (`wit/method-order.wit`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PaymentMethodKind {
    /// A card.
    Card,
    /// A transfer that the user makes at the bank, in the user's own time.
    BankTransfer,
    /// A wallet.
    Wallet,
    /// A transfer that arrives at once.
    InstantTransfer,
    /// Cash.
    Cash,
    /// Any other.
    Other,
}

rampart_types::named_values! {
    pub PaymentMethodKind {
        Card = "card",
        BankTransfer = "bank-transfer",
        Wallet = "wallet",
        InstantTransfer = "instant-transfer",
        Cash = "cash",
        Other = "other",
    }
}

impl PaymentMethodKind {
    /// True if an order expires when it is not paid in time. A bank transfer may take any time.
    pub const fn has_time_limit(self) -> bool {
        !matches!(self, Self::BankTransfer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_their_names() {
        for kind in PaymentMethodKind::ALL {
            assert_eq!(PaymentMethodKind::from_name(kind.as_str()), Some(kind));
        }
        assert_eq!(PaymentMethodKind::from_name("bankTransfer"), None);
    }
}
