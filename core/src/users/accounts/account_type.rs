//! Kinds of accounts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The type of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AccountType {
    /// A bank account, by its IBAN.
    BankTransfer,
    /// A card, by its masked number.
    CreditCard,
    /// An account with the wallet provider.
    Walletpay,
}

rampart_types::named_values! {
    pub(crate) AccountType {
        BankTransfer = "bankTransfer",
        CreditCard = "creditCard",
        Walletpay = "walletpay",
    }
}

impl AccountType {
    /// The display name in the API and in the portal, which are in English.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::BankTransfer => "Bank account",
            Self::CreditCard => "Card",
            Self::Walletpay => "Wallet account",
        }
    }
}
