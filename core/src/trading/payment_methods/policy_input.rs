//! The input of a method-order policy.

use rampart_plugins::contract::{Method, RankRequest, Side, UserFacts};

use super::ranking::RankingContext;

/// The input for the methods at these positions of `methods`, in the built-in `order`.
pub(super) fn policy_input(
    methods: &[Method],
    context: &RankingContext,
    order: &[usize],
) -> RankRequest {
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
        methods: order.iter().filter_map(|position| methods.get(*position).cloned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::catalogue;
    use super::*;
    use crate::policies::policy_methods;

    #[test]
    fn the_input_lists_methods_in_the_given_order() {
        let methods = policy_methods(&catalogue());
        let input = policy_input(&methods, &RankingContext::default(), &[3, 0]);
        let ids: Vec<_> = input.methods.iter().map(|method| method.id.as_str()).collect();
        assert_eq!(ids, ["c", "a"]);
    }
}
