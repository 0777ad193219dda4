//! The order of the methods, and policy inputs, shared by all users of whom only the country is known,
//! which is nearly everybody. Without them a list behind a policy takes 1.15 to 1.2 times the CPU time
//! (row a2 of `make bench`).

use std::array;
use std::sync::{Arc, OnceLock};

use rampart_plugins::contract::{Method, RankRequest};

use super::policy_input::policy_input;
use super::ranking::RankingContext;
use crate::trading::catalogue::Catalogue;
use rampart_types::PAYMENT_METHOD_COUNTRIES;

/// An entry for each country of [`PAYMENT_METHOD_COUNTRIES`], in its order; the last one is for no
/// country.
#[derive(Debug)]
pub(super) struct CountryCache([OnceLock<CountryMethods>; PAYMENT_METHOD_COUNTRIES.len() + 1]);

/// The methods of one country.
#[derive(Debug)]
pub(super) struct CountryMethods {
    /// Their positions in the catalogue, in the built-in order.
    pub(super) order: Vec<usize>,
    input: OnceLock<Arc<RankRequest>>,
}

impl Default for CountryCache {
    fn default() -> Self {
        Self(array::from_fn(|_| OnceLock::new()))
    }
}

impl CountryCache {
    /// The entry of the context's country; `None` when the order depends on more.
    pub(super) fn get(
        &self,
        catalogue: &Catalogue,
        context: &RankingContext,
    ) -> Option<&CountryMethods> {
        if context.last_used.is_some() || !context.tier.is_empty() {
            return None;
        }
        let position = match &context.country {
            None => PAYMENT_METHOD_COUNTRIES.len(),
            Some(country) => {
                let capital = |code: u8| code.to_ascii_uppercase();
                let same = |code: &&str| code.bytes().map(capital).eq(country.bytes());
                PAYMENT_METHOD_COUNTRIES.iter().position(same)?
            }
        };
        Some(self.0.get(position)?.get_or_init(|| CountryMethods {
            order: context.rank(catalogue),
            input: OnceLock::new(),
        }))
    }
}

impl CountryMethods {
    /// The policy's input; `context` is that of the country.
    pub(super) fn policy_input(
        &self,
        catalogue: &Catalogue,
        methods: &[Method],
        context: &RankingContext,
    ) -> Arc<RankRequest> {
        let build = || Arc::new(policy_input(catalogue, methods, context, &self.order, None));
        Arc::clone(self.input.get_or_init(build))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::catalogue;
    use super::*;
    use crate::policies::kinds::method_order::policy_methods;

    #[test]
    fn users_of_a_country_share_one_entry() {
        let (catalogue, countries) = (catalogue(), CountryCache::default());
        let methods = policy_methods(&catalogue);
        let context =
            |country: Option<&str>| RankingContext::for_country(country.map(str::to_owned));
        let entry = |country| countries.get(&catalogue, &context(country)).unwrap();
        let (dutch, unknown) = (entry(Some("NL")), entry(None));
        assert!(std::ptr::eq(dutch, entry(Some("NL"))) && !std::ptr::eq(dutch, unknown));
        assert_eq!((&dutch.order[..], &unknown.order[..]), (&[4, 3, 0, 1][..], &[0, 1, 3, 4][..]));
        let input_of = |entry: &CountryMethods, country| {
            entry.policy_input(&catalogue, &methods, &context(Some(country)))
        };
        let input = input_of(dutch, "NL");
        assert!(Arc::ptr_eq(&input, &input_of(dutch, "NL")));
        assert_eq!((input.user.country.as_str(), input.methods.len()), ("NL", 4));
        assert_eq!(input.methods[0].id, "d");
        let german = input_of(entry(Some("DE")), "DE");
        assert_eq!(german.user.country, "DE");
    }

    #[test]
    fn a_context_with_more_than_a_country_is_not_shared() {
        let (catalogue, countries) = (catalogue(), CountryCache::default());
        for context in [
            RankingContext { tier: "basic".to_owned(), ..RankingContext::default() },
            RankingContext { last_used: Some("a".to_owned()), ..RankingContext::default() },
            RankingContext::for_country(Some("XX".to_owned())),
            RankingContext::for_country(Some("nl".to_owned())),
        ] {
            assert!(countries.get(&catalogue, &context).is_none(), "{context:?}");
        }
    }
}
