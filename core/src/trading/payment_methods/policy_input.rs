//! The input of a method-order policy.

use rampart_plugins::METHODS_MAX;
use rampart_plugins::contract::{Method, Money, RankRequest, Side, UserFacts};

use super::performance::Performance;
use super::ranking::RankingContext;
use crate::policies;
use crate::policies::kinds::method_order::cost_ppm;
use crate::trading::catalogue::Catalogue;

/// The input for the first [`METHODS_MAX`] methods at these positions of the catalogue, in the built-in
/// `order`. `methods` are all of the catalogue in the form of the contract.
pub(super) fn policy_input(
    catalogue: &Catalogue,
    methods: &[Method],
    context: &RankingContext,
    order: &[usize],
    performance: Option<&Performance>,
) -> RankRequest {
    let amount = context.amount.as_ref();
    let country = context.country.as_deref();
    let method = |position: &usize| {
        let mut method = methods.get(*position)?.clone();
        if let Some((amount, _)) = amount {
            let terms = catalogue.payment_methods.get(*position)?;
            method.cost = cost_ppm(terms, *amount);
        }
        if let Some(performance) = performance {
            method.success_rate = performance.success_rate(&method.id, country);
            method.settles_in = performance.settlement_seconds(&method.id);
        }
        Some(method)
    };
    let tier = match context.tier.as_str() {
        "" => policies::GUEST_TIER,
        tier => tier,
    };
    RankRequest {
        side: Side::Buy,
        amount: amount.map(|(amount, currency)| Money {
            amount: amount.normalize().to_string(),
            currency: currency.to_string(),
        }),
        user: UserFacts {
            country: country.unwrap_or(policies::COUNTRY_UNKNOWN).to_owned(),
            tier: tier.to_owned(),
            returning: context.last_used.is_some(),
            last_used: context.last_used.clone(),
            channel: context.channel.unwrap_or_default().to_owned(),
        },
        methods: order.iter().take(METHODS_MAX).filter_map(method).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rust_decimal::Decimal;

    use super::super::tests::catalogue;
    use super::*;
    use crate::policies::kinds::method_order::policy_methods;

    #[test]
    fn the_input_lists_methods_in_the_given_order() {
        let catalogue = catalogue();
        let methods = policy_methods(&catalogue);
        let context = RankingContext::default();
        let input = policy_input(&catalogue, &methods, &context, &[3, 0], None);
        let ids: Vec<_> = input.methods.iter().map(|method| method.id.as_str()).collect();
        assert_eq!(ids, ["c", "a"]);
        assert_eq!(
            (&*input.user.country, &*input.user.tier, &*input.user.channel),
            ("ZZ", "guest", "")
        );
    }

    #[test]
    fn the_input_has_no_more_methods_than_a_policy_takes() {
        let catalogue = catalogue();
        let methods = policy_methods(&catalogue);
        let order = [0; METHODS_MAX + 1];
        let input = policy_input(&catalogue, &methods, &RankingContext::default(), &order, None);
        assert_eq!(input.methods.len(), METHODS_MAX);
    }

    #[test]
    fn the_cost_is_that_of_the_amount_where_there_is_one() {
        let mut catalogue = catalogue();
        Arc::get_mut(&mut catalogue.payment_methods[0]).unwrap().fee_fixed = Decimal::ONE;
        let methods = policy_methods(&catalogue);
        let amount = Some((1000.into(), "EUR".parse().unwrap()));
        let context = RankingContext { amount, channel: Some("ios"), ..RankingContext::default() };
        let input = policy_input(&catalogue, &methods, &context, &[0], None);
        let amount = input.amount.unwrap();
        assert_eq!((&*amount.amount, &*amount.currency), ("1000", "EUR"));
        assert_eq!((methods[0].cost, input.methods[0].cost), (Some(10_000), Some(1_000)));
        assert_eq!(input.user.channel, "ios");
    }
}
