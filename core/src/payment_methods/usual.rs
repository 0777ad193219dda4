//! What is the same for all users of whom only the country is known: nearly everybody who asks. It
//! is made for the first of them and serves until the catalogue changes.

use std::array;
use std::sync::{Arc, OnceLock};

use rampart_plugins::contract::OrderRequest;

use super::question::question;
use super::{List, Tastes, Written};
use crate::catalogue::Catalogue;
use crate::error::Result;
use crate::types::PAYMENT_METHOD_COUNTRIES;

/// For each country of [`PAYMENT_METHOD_COUNTRIES`], in its order; the last one is no country.
#[derive(Debug)]
pub struct Usual([OnceLock<OfCountry>; PAYMENT_METHOD_COUNTRIES.len() + 1]);

/// The methods of one country.
#[derive(Debug)]
pub(super) struct OfCountry {
    /// Their places in the catalogue, in the built-in order.
    pub(super) order: Vec<usize>,
    list: OnceLock<List>,
    question: OnceLock<Arc<OrderRequest>>,
}

impl Default for Usual {
    fn default() -> Self {
        Self(array::from_fn(|_| OnceLock::new()))
    }
}

impl Usual {
    /// What `tastes` has in common with all of its country; `None` when more than that is known.
    pub(super) fn of<'a>(catalogue: &'a Catalogue, tastes: &Tastes) -> Option<&'a OfCountry> {
        if tastes.last_used.is_some() || !tastes.tier.is_empty() {
            return None;
        }
        let place = match &tastes.country {
            None => PAYMENT_METHOD_COUNTRIES.len(),
            Some(country) => {
                let capital = |code: u8| code.to_ascii_uppercase();
                let same = |code: &&str| code.bytes().map(capital).eq(country.bytes());
                PAYMENT_METHOD_COUNTRIES.iter().position(same)?
            }
        };
        Some(catalogue.usual.0.get(place)?.get_or_init(|| OfCountry {
            order: tastes.ranked(catalogue),
            list: OnceLock::new(),
            question: OnceLock::new(),
        }))
    }
}

impl OfCountry {
    /// The list in the built-in order.
    ///
    /// # Errors
    /// As [`Written::list`].
    pub(super) fn list(&self, catalogue: &Catalogue) -> Result<List> {
        if let Some(list) = self.list.get() {
            return Ok(list.clone());
        }
        let list = Written::list(catalogue, &self.order)?;
        Ok(self.list.get_or_init(|| list).clone())
    }

    /// What a policy is asked; `tastes` are those of the country.
    pub(super) fn question(&self, catalogue: &Catalogue, tastes: &Tastes) -> Arc<OrderRequest> {
        let make = || Arc::new(question(catalogue, tastes, &self.order));
        Arc::clone(self.question.get_or_init(make))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::catalogue;
    use super::*;

    #[test]
    fn users_of_a_country_share_what_is_made_for_it() {
        let catalogue = catalogue();
        let tastes = |country: Option<&str>| Tastes {
            country: country.map(str::to_owned),
            ..Tastes::default()
        };
        let of = |country| Usual::of(&catalogue, &tastes(country)).unwrap();
        let (dutch, nobody) = (of(Some("NL")), of(None));
        assert!(std::ptr::eq(dutch, of(Some("NL"))) && !std::ptr::eq(dutch, nobody));
        assert_eq!((&dutch.order[..], &nobody.order[..]), (&[4, 3, 0, 1][..], &[0, 1, 3, 4][..]));
        let asked = dutch.question(&catalogue, &tastes(Some("NL")));
        assert!(Arc::ptr_eq(&asked, &dutch.question(&catalogue, &tastes(Some("NL")))));
        assert_eq!((asked.user.country.as_str(), asked.methods.len()), ("NL", 4));
        assert_eq!(asked.methods[0].id, "d");
        assert_eq!(of(Some("DE")).question(&catalogue, &tastes(Some("DE"))).user.country, "DE");
    }

    #[test]
    fn what_is_known_of_a_user_is_for_that_user_alone() {
        let catalogue = catalogue();
        for tastes in [
            Tastes { tier: "basic".to_owned(), ..Tastes::default() },
            Tastes { last_used: Some("a".to_owned()), ..Tastes::default() },
            Tastes { country: Some("XX".to_owned()), ..Tastes::default() },
            Tastes { country: Some("nl".to_owned()), ..Tastes::default() },
        ] {
            assert!(Usual::of(&catalogue, &tastes).is_none(), "{tastes:?}");
        }
    }
}
