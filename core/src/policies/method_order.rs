//! The order in which a partner's policy wants payment methods shown.

use std::collections::BTreeSet;
use std::sync::Arc;

use rampart_plugins::Ranking;
use rampart_plugins::contract::{Method, MethodKind, OrderRequest};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use super::call::run;
use crate::Core;
use crate::auth::caller::Client;
use crate::trading::catalogue::{Catalogue, PaymentMethod, PaymentMethodKind};
use rampart_types::UserId;
use rampart_types::money::percent_of;

/// The purchase that tells a policy what a method costs, in fiat.
const REFERENCE_AMOUNT: Decimal = Decimal::ONE_HUNDRED;

/// What to show, best first; `None` when the built-in order applies, because there is no policy for
/// this user or it malfunctioned. A policy that hides everything is not obeyed: the order of
/// `request` stands.
///
/// At most 64 methods; more is a malfunction.
pub fn rank(
    core: &Core,
    client: &Client,
    user: Option<UserId>,
    request: Arc<OrderRequest>,
) -> Option<Ranking> {
    let user = user.map(|user| user.uuid());
    let answered = run(core, client, user.as_ref().map(|user| &user.as_bytes()[..]), request);
    Some(answered.ok()??.answer)
}

/// A catalogue's kind of payment method as the policy contract has it.
pub(crate) const fn method_kind(kind: PaymentMethodKind) -> MethodKind {
    match kind {
        PaymentMethodKind::Card => MethodKind::Card,
        PaymentMethodKind::BankTransfer => MethodKind::BankTransfer,
        PaymentMethodKind::Wallet => MethodKind::Wallet,
        PaymentMethodKind::InstantTransfer => MethodKind::InstantTransfer,
        PaymentMethodKind::Cash => MethodKind::Cash,
        PaymentMethodKind::Other => MethodKind::Other,
    }
}

/// Every method of the catalogue as a policy is told of it, in the catalogue's order.
pub(crate) fn policy_methods(catalogue: &Catalogue) -> Vec<Method> {
    let pairs = catalogue.pairs.values();
    let currencies: BTreeSet<_> = pairs.map(|pair| pair.quote.code().to_string()).collect();
    let facts = catalogue.payment_methods.iter().map(|method| Method {
        id: method.code.clone(),
        kind: method_kind(method.kind),
        currencies: currencies.iter().cloned().collect(),
        success_rate: None,
        cost: cost_ppm(method),
        settles_in: None,
    });
    facts.collect()
}

/// What a purchase of [`REFERENCE_AMOUNT`] costs with this method, in parts per million of it.
fn cost_ppm(method: &PaymentMethod) -> Option<i32> {
    let percentage = percent_of(REFERENCE_AMOUNT, method.fee_percentage)?;
    let cost = method.fee_fixed.checked_add(percentage)?.checked_div(REFERENCE_AMOUNT)?;
    cost.checked_mul(Decimal::ONE_THOUSAND)?.checked_mul(Decimal::ONE_THOUSAND)?.to_i32()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_told_what_a_purchase_of_100_costs() {
        let mut method = PaymentMethod {
            code: "a".to_owned(),
            label: "a".to_owned(),
            psp: "bank".to_owned(),
            kind: PaymentMethodKind::Other,
            limit: Decimal::ONE_HUNDRED,
            fee_fixed: Decimal::new(35, 2),
            fee_percentage: Decimal::ZERO,
            expiration_period_seconds: 900,
            open_in_new_tab: false,
            uses_estimated_quote: false,
            enabled: true,
            context: serde_json::Value::Array(Vec::new()),
        };
        assert_eq!(cost_ppm(&method), Some(3_500));
        method.fee_percentage = Decimal::new(25, 1);
        assert_eq!(cost_ppm(&method), Some(28_500));
    }
}
