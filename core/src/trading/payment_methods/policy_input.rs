//! The input of a method-order policy.

use rampart_plugins::contract::{RankRequest, Side, UserFacts};

use super::RankingContext;
use super::cache::CatalogueMethods;

/// The input for the methods at these places of the catalogue, in the built-in `order`.
pub(super) fn policy_input(
    methods: &CatalogueMethods,
    context: &RankingContext,
    order: &[usize],
) -> RankRequest {
    let all = methods.policy_methods();
    RankRequest {
        side: Side::Buy,
        amount: None,
        user: UserFacts {
            country: context.country.clone().unwrap_or_default(),
            tier: context.tier.clone(),
            returning: context.last_used.is_some(),
            last_used: context.last_used.clone(),
            channel: "web".to_owned(),
        },
        methods: order.iter().filter_map(|place| all.get(*place).cloned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::tests::catalogue;
    use super::*;

    #[test]
    fn the_input_lists_methods_in_the_given_order() {
        let methods = CatalogueMethods::new(Arc::new(catalogue()));
        let input = policy_input(&methods, &RankingContext::default(), &[3, 0]);
        let ids: Vec<_> = input.methods.iter().map(|method| method.id.as_str()).collect();
        assert_eq!(ids, ["c", "a"]);
    }
}
