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
    payment_methods: Vec<PaymentMethodView>,
}

/// A payment method.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "PaymentMethod")]
#[serde(rename_all = "camelCase")]
struct PaymentMethodView {
    code: String,
    label: String,
    psp: String,
    limit: JsonDecimal,
    fees: Fees,
    expiration_period: u32,
    open_in_new_tab: bool,
    context: Value,
    uses_estimated_quote: bool,
}

#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "PaymentMethodFees")]
struct Fees {
    fixed: JsonDecimal,
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
