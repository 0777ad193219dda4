//! Lists and policy inputs shared by all users of whom only the country is known, which is nearly
//! everybody.

use std::array;
use std::sync::{Arc, OnceLock};

use rampart_plugins::contract::RankRequest;

use super::RankingContext;
use super::cache::CatalogueMethods;
use super::policy_input::policy_input;
use super::response_cache::MethodList;
use crate::platform::error::Result;
use rampart_types::PAYMENT_METHOD_COUNTRIES;

/// For each country of [`PAYMENT_METHOD_COUNTRIES`], in its order; the last one is no country.
#[derive(Debug)]
pub(super) struct CountryCache([OnceLock<CountryMethods>; PAYMENT_METHOD_COUNTRIES.len() + 1]);

/// The methods of one country.
#[derive(Debug)]
pub(super) struct CountryMethods {
    /// Their places in the catalogue, in the built-in order.
    pub(super) order: Vec<usize>,
    list: OnceLock<MethodList>,
    input: OnceLock<Arc<RankRequest>>,
}

impl Default for CountryCache {
    fn default() -> Self {
        Self(array::from_fn(|_| OnceLock::new()))
    }
}

impl CountryCache {
    /// The entry of the context's country; `None` when more than the country is known.
    pub(super) fn get<'a>(
        methods: &'a CatalogueMethods,
        context: &RankingContext,
    ) -> Option<&'a CountryMethods> {
        if context.last_used.is_some() || !context.tier.is_empty() {
            return None;
        }
        let place = match &context.country {
            None => PAYMENT_METHOD_COUNTRIES.len(),
            Some(country) => {
                let capital = |code: u8| code.to_ascii_uppercase();
                let same = |code: &&str| code.bytes().map(capital).eq(country.bytes());
                PAYMENT_METHOD_COUNTRIES.iter().position(same)?
            }
        };
        Some(methods.countries.0.get(place)?.get_or_init(|| CountryMethods {
            order: context.ranked(&methods.catalogue),
            list: OnceLock::new(),
            input: OnceLock::new(),
        }))
    }
}

impl CountryMethods {
    /// The list in the built-in order.
    ///
    /// # Errors
    /// As [`CatalogueMethods::list`].
    pub(super) fn list(&self, methods: &CatalogueMethods) -> Result<MethodList> {
        if let Some(list) = self.list.get() {
            return Ok(list.clone());
        }
        let list = methods.list(&self.order)?;
        Ok(self.list.get_or_init(|| list).clone())
    }

    /// The policy's input; `context` is that of the country.
    pub(super) fn policy_input(
        &self,
        methods: &CatalogueMethods,
        context: &RankingContext,
    ) -> Arc<RankRequest> {
        let build = || Arc::new(policy_input(methods, context, &self.order));
        Arc::clone(self.input.get_or_init(build))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::catalogue;
    use super::*;

    fn methods() -> CatalogueMethods {
        CatalogueMethods::new(Arc::new(catalogue()))
    }

    #[test]
    fn users_of_a_country_share_one_entry() {
        let methods = methods();
        let context = |country: Option<&str>| RankingContext {
            country: country.map(str::to_owned),
            ..RankingContext::default()
        };
        let entry = |country| CountryCache::get(&methods, &context(country)).unwrap();
        let (dutch, nobody) = (entry(Some("NL")), entry(None));
        assert!(std::ptr::eq(dutch, entry(Some("NL"))) && !std::ptr::eq(dutch, nobody));
        assert_eq!((&dutch.order[..], &nobody.order[..]), (&[4, 3, 0, 1][..], &[0, 1, 3, 4][..]));
        let input = dutch.policy_input(&methods, &context(Some("NL")));
        assert!(Arc::ptr_eq(&input, &dutch.policy_input(&methods, &context(Some("NL")))));
        assert_eq!((input.user.country.as_str(), input.methods.len()), ("NL", 4));
        assert_eq!(input.methods[0].id, "d");
        let german = entry(Some("DE")).policy_input(&methods, &context(Some("DE")));
        assert_eq!(german.user.country, "DE");
    }

    #[test]
    fn a_context_with_more_than_a_country_is_not_shared() {
        let methods = methods();
        for context in [
            RankingContext { tier: "basic".to_owned(), ..RankingContext::default() },
            RankingContext { last_used: Some("a".to_owned()), ..RankingContext::default() },
            RankingContext { country: Some("XX".to_owned()), ..RankingContext::default() },
            RankingContext { country: Some("nl".to_owned()), ..RankingContext::default() },
        ] {
            assert!(CountryCache::get(&methods, &context).is_none(), "{context:?}");
        }
    }
}
