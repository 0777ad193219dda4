//! What a method-order policy is asked. What it is told of the methods is the catalogue's alone, so
//! it is reckoned once for each catalogue.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use rampart_plugins::contract::{Method, OrderRequest, Side, UserFacts};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use super::Tastes;
use crate::catalogue::{Catalogue, PaymentMethod};
use crate::policies::method_kind;
use crate::types::money::percent_of;

/// The purchase that tells a policy what a method costs, in fiat.
const REFERENCE_AMOUNT: Decimal = Decimal::ONE_HUNDRED;

/// What policies are told of the methods of one catalogue.
#[derive(Debug, Default)]
pub struct Told(OnceLock<Vec<Method>>);

impl Told {
    /// All methods of `catalogue`, which this belongs to, in its order.
    pub fn methods(&self, catalogue: &Catalogue) -> &[Method] {
        self.0.get_or_init(|| all(catalogue))
    }
}

/// The question about the methods at these places of `catalogue`, in the order that `tastes` gives.
pub(super) fn question(catalogue: &Catalogue, tastes: &Tastes, order: &[usize]) -> OrderRequest {
    let told = catalogue.told.methods(catalogue);
    OrderRequest {
        side: Side::Buy,
        amount: None,
        user: UserFacts {
            country: tastes.country.clone().unwrap_or_default(),
            tier: tastes.tier.clone(),
            returning: tastes.last_used.is_some(),
            last_used: tastes.last_used.clone(),
            channel: "web".to_owned(),
        },
        methods: order.iter().filter_map(|place| told.get(*place).cloned()).collect(),
    }
}

fn all(catalogue: &Catalogue) -> Vec<Method> {
    let pairs = catalogue.pairs.values();
    let currencies: BTreeSet<_> = pairs.map(|pair| pair.quote.code().to_string()).collect();
    let facts = catalogue.payment_methods.iter().map(|method| Method {
        id: method.code.clone(),
        kind: method_kind(&method.kind),
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
    use super::super::tests::{catalogue, method};
    use super::*;

    #[test]
    fn a_policy_is_told_what_a_purchase_of_100_costs() {
        let mut costly = PaymentMethod { fee_fixed: Decimal::new(35, 2), ..method("a", true) };
        assert_eq!(cost_ppm(&costly), Some(3_500));
        costly.fee_percentage = Decimal::new(25, 1);
        assert_eq!(cost_ppm(&costly), Some(28_500));
    }

    #[test]
    fn a_policy_is_told_the_methods_in_the_order_that_is_asked_about() {
        let asked = question(&catalogue(), &Tastes::default(), &[3, 0]);
        let ids: Vec<_> = asked.methods.iter().map(|method| method.id.as_str()).collect();
        assert_eq!(ids, ["c", "a"]);
    }
}
