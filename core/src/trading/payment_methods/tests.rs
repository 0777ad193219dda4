//! Fixtures of the tests of payment methods.

use std::sync::Arc;

use rust_decimal::Decimal;
use serde_json::Value;

use crate::trading::catalogue::{Catalogue, PaymentMethod, PaymentMethodKind};

fn method(code: &str, enabled: bool) -> PaymentMethod {
    PaymentMethod {
        code: code.to_owned(),
        label: code.to_owned(),
        psp: "bank".to_owned(),
        kind: PaymentMethodKind::Other,
        limit: Decimal::ONE_HUNDRED,
        fee_fixed: Decimal::ZERO,
        fee_percentage: Decimal::ZERO,
        expiration_period_seconds: 900,
        open_in_new_tab: false,
        uses_estimated_quote: false,
        enabled,
        context: Value::Array(Vec::new()),
    }
}

/// Four enabled methods and a disabled one; the Netherlands prefer three of them.
pub(super) fn catalogue() -> Catalogue {
    let methods = [("a", true), ("b", true), ("off", false), ("c", true), ("d", true)];
    let mut catalogue = Catalogue::default();
    catalogue.payment_methods = methods.map(|(code, on)| Arc::new(method(code, on))).to_vec();
    let preferred = ["off", "d", "c"].map(str::to_owned).to_vec();
    catalogue.preferences.insert("NL".to_owned(), preferred);
    catalogue
}
