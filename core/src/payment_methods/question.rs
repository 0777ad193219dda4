//! What a method-order policy is asked. What it is told of the methods is the catalogue's alone, so
//! it is reckoned once for each catalogue; the question about nobody in particular is that of a
//! country, so it is made once for each.

use std::array;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use rampart_plugins::contract::{Method, OrderRequest, Side, UserFacts};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use super::Tastes;
use crate::catalogue::{Catalogue, PaymentMethod};
use crate::policies::method_kind;
use crate::types::PAYMENT_METHOD_COUNTRIES;
use crate::types::money::percent_of;

/// The purchase that tells a policy what a method costs, in fiat.
const REFERENCE_AMOUNT: Decimal = Decimal::ONE_HUNDRED;

/// What policies are told of one catalogue.
#[derive(Debug)]
pub struct Questions {
    facts: OnceLock<Vec<Method>>,
    /// By the place of the country in [`PAYMENT_METHOD_COUNTRIES`]; the last one is for no country.
    of_countries: [OnceLock<Arc<OrderRequest>>; PAYMENT_METHOD_COUNTRIES.len() + 1],
}

impl Default for Questions {
    fn default() -> Self {
        Self { facts: OnceLock::new(), of_countries: array::from_fn(|_| OnceLock::new()) }
    }
}

impl Questions {
    /// What policies are told of all methods of `catalogue`, which these are the questions of, in
    /// its order.
    pub fn facts(&self, catalogue: &Catalogue) -> &[Method] {
        self.facts.get_or_init(|| all(catalogue))
    }

    /// Where the question is kept that is only about the country of `tastes`.
    fn of_country(&self, tastes: &Tastes) -> Option<&OnceLock<Arc<OrderRequest>>> {
        if tastes.last_used.is_some() || !tastes.tier.is_empty() {
            return None;
        }
        let place = match &tastes.country {
            None => PAYMENT_METHOD_COUNTRIES.len(),
            Some(country) => {
                let same = |code: &&str| code.eq_ignore_ascii_case(country);
                PAYMENT_METHOD_COUNTRIES.iter().position(same)?
            }
        };
        self.of_countries.get(place)
    }
}

/// The question about `methods`, those of `catalogue` in the order that `tastes` gives.
pub(super) fn question(
    catalogue: &Catalogue,
    tastes: &Tastes,
    methods: &[&PaymentMethod],
) -> Arc<OrderRequest> {
    let make = || Arc::new(made(catalogue, tastes, methods));
    match catalogue.questions.of_country(tastes) {
        Some(kept) => Arc::clone(kept.get_or_init(make)),
        None => make(),
    }
}

fn made(catalogue: &Catalogue, tastes: &Tastes, methods: &[&PaymentMethod]) -> OrderRequest {
    let facts = catalogue.questions.facts(catalogue);
    let told = |method: &&PaymentMethod| facts.get(catalogue.place_of(method)?).cloned();
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
        methods: methods.iter().filter_map(told).collect(),
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
        let catalogue = catalogue();
        let methods: Vec<_> = [3, 0].map(|at| &*catalogue.payment_methods[at]).to_vec();
        let asked = question(&catalogue, &Tastes::default(), &methods);
        let ids: Vec<_> = asked.methods.iter().map(|method| method.id.as_str()).collect();
        assert_eq!(ids, ["c", "a"]);
    }

    #[test]
    fn only_a_question_about_nobody_is_kept_and_for_its_country_alone() {
        let catalogue = catalogue();
        let of = |country: Option<&str>, tier: &str, last_used: Option<&str>| {
            let tastes = Tastes {
                country: country.map(str::to_owned),
                last_used: last_used.map(str::to_owned),
                tier: tier.to_owned(),
            };
            question(&catalogue, &tastes, &tastes.ranked(&catalogue))
        };
        let nobody = of(Some("NL"), "", None);
        assert!(Arc::ptr_eq(&nobody, &of(Some("NL"), "", None)), "it was made again");
        for other in [
            of(None, "", None),
            of(Some("DE"), "", None),
            of(Some("NL"), "basic", None),
            of(Some("NL"), "", Some("a")),
        ] {
            assert_ne!(nobody, other);
        }
    }
}
