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
mod performance;
mod policy_input;
mod ranking;
mod response;
mod response_cache;

use std::borrow::Cow;

use rampart_plugins::METHODS_MAX;
use rampart_plugins::contract::PolicyKind;
use rust_decimal::Decimal;
use serde_json::Value;

pub use self::cache::MethodCache;
pub use self::performance::PerformanceCache;
use self::policy_input::policy_input;
use self::ranking::RankingContext;
pub use self::response_cache::MethodList;
use crate::Core;
use crate::auth::caller::{Client, ClientMaybeUser};
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::endpoint::{Cache, Endpoint};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::platform::error::Result;
use crate::policies::kinds::method_order;
use crate::tenancy::tenants::Scope;
use crate::trading::catalogue::Catalogue;
use crate::trading::channel::{CHANNELS, channel};
use crate::trading::quotes::Side;
use crate::trading::routing;
use rampart_types::decimal::{fits_decimals, from_number_or_text};
use rampart_types::money::AMOUNT_MAX;
use rampart_types::{CurrencyCode, PAYMENT_METHOD_COUNTRIES};

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: http::Method = http::Method::GET;
    const PATH: &'static str = "/api/v2/buy/payment-methods";
    const SCOPE: Option<Scope> = Some(Scope::QuotesRead);
    const CACHE: Cache = Cache::Revalidate;
    const DOC: Doc = Doc {
        summary: "List payment methods, best first",
        details: "The order follows the partner's own rule if it has one, else the user's last \
                  method, then what users of the country prefer.",
        query: &[
            optional(
                "countryCode",
                Kind::Known(&PAYMENT_METHOD_COUNTRIES),
                "The user's country; any other text is ignored. It counts only without a user.",
            ),
            optional(
                "channel",
                Kind::Known(&CHANNELS),
                "The kind of program that the user holds, for the partner's own rule; any other \
                 text is ignored.",
            ),
            optional(
                "fiatAmount",
                Kind::Text,
                "Amount of the payment, for the partner's own rule; counts with `fiatCurrency`.",
            ),
            optional("fiatCurrency", Kind::Text, "Code of the amount's currency, such as `EUR`."),
        ],
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
    type Request = Stated;
    type Response = MethodList;

    fn read(input: &Input, caller: &ClientMaybeUser) -> Result<Stated> {
        Ok(Stated::read(input.head.query.as_deref(), &caller.client.catalogue))
    }

    async fn call(
        core: &Core,
        caller: ClientMaybeUser,
        Stated { country, channel, amount }: Stated,
    ) -> Result<MethodList> {
        let ClientMaybeUser { client, user } = caller;
        let context = match user {
            Some(user) => RankingContext::for_user(core, client.key_of(user)).await?,
            None => RankingContext::for_country(country),
        };
        let context = RankingContext { channel, amount, ..context };
        let methods = core.method_cache.of(&client.catalogue);
        let (catalogue, responses) = (&methods.catalogue, &methods.responses);
        let cached = methods.countries.get(catalogue, &context);
        let order = match cached {
            Some(country) => Cow::Borrowed(&country.order[..]),
            None => Cow::Owned(context.rank(catalogue)),
        };
        let order = offered(&client, order);
        if client.tenant.policies.has(PolicyKind::MethodOrder) {
            let policy_methods = methods.policy_methods();
            let performance = core.method_performance.get(client.id());
            // A live client may be offered less than others of the country.
            let is_shared = matches!(order, Cow::Borrowed(_))
                && performance.is_none()
                && !context.states_more_than_country();
            let input = match cached.filter(|_| is_shared) {
                Some(country) => country.policy_input(catalogue, policy_methods, &context),
                None => {
                    let performance = performance.as_deref();
                    policy_input(catalogue, policy_methods, &context, &order, performance).into()
                }
            };
            if let Some(ranking) = method_order::rank(core, &client, user, input).await {
                let ranked = ranking.indices.iter().filter_map(|index| order.get(*index));
                // Those beyond what a policy is shown follow, as those that it does not name.
                let shown = ranked.chain(order.iter().skip(METHODS_MAX)).copied();
                return responses.list(client.id(), catalogue, &shown.collect::<Vec<_>>());
            }
        }
        responses.list(client.id(), catalogue, &order)
    }
}

/// The query of a request; what cannot be read counts as absent, because the document has no code
/// for it.
#[derive(Debug)]
pub struct Stated {
    country: Option<String>,
    channel: Option<&'static str>,
    amount: Option<(Decimal, CurrencyCode)>,
}

impl Stated {
    fn read(query: Option<&str>, catalogue: &Catalogue) -> Self {
        let fields = Fields::of_query(query);
        let text = |name| fields.value(name).and_then(Value::as_str);
        let listed = |code: &String| PAYMENT_METHOD_COUNTRIES.contains(&code.as_str());
        let country = text("countryCode").map(str::to_lowercase).filter(listed);
        let currency = text("fiatCurrency").and_then(|code| code.parse().ok());
        let currency = currency.and_then(|code| catalogue.currencies.get(&code));
        let currency = currency.filter(|currency| currency.crypto.is_none());
        let amount = fields
            .value("fiatAmount")
            .and_then(from_number_or_text)
            .filter(|amount| *amount > Decimal::ZERO && *amount <= Decimal::from(AMOUNT_MAX));
        Self {
            country: country.map(|code| code.to_uppercase()),
            channel: text("channel").and_then(channel),
            amount: amount
                .zip(currency)
                .filter(|(amount, currency)| fits_decimals(*amount, currency.scale()))
                .map(|(amount, currency)| (amount, currency.code())),
        }
    }
}

/// The positions of those methods that the client is offered: all of `order` without a copy, if it is
/// offered them all.
fn offered<'a>(client: &Client, order: Cow<'a, [usize]>) -> Cow<'a, [usize]> {
    let Client { tenant, catalogue, .. } = client;
    let is_offered = |at: &usize| {
        let method = catalogue.payment_methods.get(*at);
        let code = method.map(|method| &*method.code);
        code.is_some_and(|code| routing::offers_method(catalogue, tenant, Side::Buy, code))
    };
    let Some(first) = order.iter().position(|at| !is_offered(at)) else { return order };
    let (before, rest) = order.split_at(first);
    before.iter().chain(rest.iter().filter(|at| is_offered(at))).copied().collect()
}

#[cfg(test)]
mod tests;
