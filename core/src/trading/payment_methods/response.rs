//! The response's JSON.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::trading::catalogue::PaymentMethod;
use rampart_types::JsonDecimal;

/// A list of payment methods, as the API document has it.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentMethods {
    /// The methods, in the order in which they are shown.
    payment_methods: Vec<PaymentMethodView>,
}

/// A payment method.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "PaymentMethod")]
#[serde(rename_all = "camelCase")]
struct PaymentMethodView {
    /// Code, which quotes take.
    code: String,
    /// Name for people.
    label: String,
    /// Payment provider.
    psp: String,
    /// Highest amount of one order, in the order's fiat currency.
    limit: JsonDecimal,
    /// Its fees.
    fees: Fees,
    /// Seconds that a user has for the payment.
    expiration_period: u32,
    /// `true` if its page wants a tab of its own.
    open_in_new_tab: bool,
    /// Data of its provider.
    context: Value,
    /// `true` if the price is fixed when the payment arrives.
    uses_estimated_quote: bool,
}

/// Fees of a payment method.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "PaymentMethodFees")]
struct Fees {
    /// Fixed part, in the fiat currency.
    fixed: JsonDecimal,
    /// Part in percent of the amount.
    percentage: JsonDecimal,
}

impl PaymentMethods {
    pub(super) fn new<'a>(methods: impl Iterator<Item = &'a PaymentMethod>) -> Self {
        Self { payment_methods: methods.map(PaymentMethodView::from).collect() }
    }
}

impl From<&PaymentMethod> for PaymentMethodView {
    fn from(method: &PaymentMethod) -> Self {
        Self {
            code: method.code.clone(),
            label: method.label.clone(),
            psp: method.psp.clone(),
            limit: method.limit.into(),
            fees: Fees { fixed: method.fee_fixed.into(), percentage: method.fee_percentage.into() },
            expiration_period: method.expiration_period_seconds,
            open_in_new_tab: method.open_in_new_tab,
            context: method.context.clone(),
            uses_estimated_quote: method.uses_estimated_quote,
        }
    }
}
