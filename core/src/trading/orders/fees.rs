//! The fees of an order, as they are shown.

use schemars::JsonSchema;
use serde::Serialize;

use super::Order;
use rampart_types::{Amount, FeeBreakdown, JsonDecimal};
/// The fees of an order in version 2.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "OrderFees")]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fees {
    /// Fee of the partner.
    partner_fee: Amount,
    /// Fee of the payment method.
    payment_method_fee: Amount,
    /// Fee of the network.
    network_fee: Amount,
    /// Fee of the service.
    provider_fee: Amount,
    /// Spread, with what rounding has left.
    spread_fee: Amount,
    /// Fee of an affiliate.
    affiliate_fee: Amount,
    /// Fee of the partner, in percent.
    partner_fee_percentage: Option<JsonDecimal>,
}

impl Fees {
    /// The amounts alone.
    pub(crate) const fn breakdown(&self) -> FeeBreakdown {
        FeeBreakdown {
            partner: self.partner_fee.amount,
            provider: self.provider_fee.amount,
            payment_method: self.payment_method_fee.amount,
            network: self.network_fee.amount,
            spread: self.spread_fee.amount,
            affiliate: self.affiliate_fee.amount,
        }
    }

    /// Those of an order.
    pub(super) fn of(order: &Order) -> Self {
        let amount = |value| Amount::new(value, order.fiat.currency);
        let fees = &order.fees;
        Self {
            partner_fee: amount(fees.partner),
            payment_method_fee: amount(fees.payment_method),
            network_fee: amount(fees.network),
            provider_fee: amount(fees.provider),
            spread_fee: amount(fees.spread),
            affiliate_fee: amount(fees.affiliate),
            partner_fee_percentage: order.partner_fee_percentage.map(JsonDecimal),
        }
    }
}
