//! `GET /api/v2/buy/payment-methods`: the enabled payment methods, best first.
//!
//! The partner's method-order policy decides the order if it has one. Otherwise the method of the
//! user's last completed order comes first, then the methods that users of the country prefer, then
//! the catalogue's order. `countryCode` counts only without a user, and only when it is one of the
//! API document's list: any other text leaves the default order, because the document has no code
//! for it.

mod cache;
mod country_cache;
pub(crate) mod families;
mod policy_input;
mod ranking;
mod response;
mod response_cache;

use std::borrow::Cow;

use rampart_plugins::contract::PolicyKind;
use serde_json::Value;

pub use self::cache::MethodCache;
use self::policy_input::policy_input;
use self::ranking::RankingContext;
pub use self::response_cache::MethodList;
use crate::Core;
use crate::auth::caller::ClientMaybeUser;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::endpoint::{Cache, Endpoint};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::policies;
use crate::tenancy::tenants::Scope;
use rampart_types::PAYMENT_METHOD_COUNTRIES;

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: http::Method = http::Method::GET;
    const PATH: &'static str = "/api/v2/buy/payment-methods";
    const SCOPE: Option<Scope> = Some(Scope::QuotesRead);
    const ERRORS: &'static [Code] = &[];
    const CACHE: Cache = Cache::Revalidate;
    const DOC: Doc = Doc {
        summary: "List payment methods, best first",
        details: "The order follows the partner's own rule if it has one, else the user's last \
                  method, then what users of the country prefer.",
        query: &[optional(
            "countryCode",
            Kind::Known(&PAYMENT_METHOD_COUNTRIES),
            "The user's country; any other text is ignored. It counts only without a user.",
        )],
        answer: r#"{"paymentMethods": [{
            "code": "creditCard",
            "label": "Credit card",
            "psp": "cardprocessor",
            "limit": 5000,
            "fees": {"fixed": 0.25, "percentage": 2.5},
            "expirationPeriod": 900,
            "openInNewTab": false,
            "context": [{"type": "acceptedCards", "value": ["visa", "mastercard"]}],
            "usesEstimatedQuote": false
        }]}"#,
        ..Doc::NONE
    };
    type Caller = ClientMaybeUser;
    type Request = Option<String>;
    type Response = MethodList;

    fn read(input: &Input, _: &ClientMaybeUser) -> Result<Option<String>> {
        let fields = Fields::of_query(input.head.query.as_deref());
        let code = fields.value("countryCode").and_then(Value::as_str).map(str::to_lowercase);
        let listed = |code: &String| PAYMENT_METHOD_COUNTRIES.contains(&code.as_str());
        Ok(code.filter(listed).map(|code| code.to_uppercase()))
    }

    async fn call(
        core: &Core,
        caller: ClientMaybeUser,
        country: Option<String>,
    ) -> Result<MethodList> {
        let ClientMaybeUser { client, user } = caller;
        let context = match user {
            Some(user) => RankingContext::for_user(core, &client, user).await?,
            None => RankingContext::for_country(country),
        };
        let methods = core.method_cache.for_catalogue(&client.catalogue);
        let (catalogue, responses) = (&methods.catalogue, &methods.responses);
        let cached = methods.countries.get(catalogue, &context);
        let order = match cached {
            Some(country) => Cow::Borrowed(&country.order[..]),
            None => Cow::Owned(context.rank(catalogue)),
        };
        if client.tenant.policies.has(PolicyKind::MethodOrder) {
            let policy_methods = methods.policy_methods();
            let input = match cached {
                Some(country) => country.policy_input(policy_methods, &context),
                None => policy_input(policy_methods, &context, &order).into(),
            };
            if let Some(ranking) = policies::rank(core, &client, user, input).await {
                let shown = ranking.indices.iter().filter_map(|index| order.get(*index).copied());
                return responses.list(catalogue, &shown.collect::<Vec<_>>());
            }
        }
        match cached {
            Some(country) => country.list(catalogue, responses),
            None => responses.list(catalogue, &order),
        }
    }
}

#[cfg(test)]
mod tests;
