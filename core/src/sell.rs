//! Selling: the user sends coins to a deposit address and is paid out in fiat.

pub mod onboarding;

/// Methods by which a sale is paid out.
pub(crate) const PAYOUT_METHODS: [&str; 3] = ["bankTransfer", "creditCard", "walletpay"];
