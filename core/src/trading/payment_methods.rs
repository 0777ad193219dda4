//! `GET /api/v2/buy/payment-methods`: the methods that are offered, best first.
//!
//! The partner's method-order policy decides the order if it has one. Otherwise the user does before
//! the country: the method of the last completed order comes
//! first, then what users of the country prefer, then the operator's default order. `countryCode`
//! counts only without a user, and only when it is one of the API document's list: any other text
//! leaves the default order, because the document has no code for it.

mod cache;
mod country_cache;
mod policy_input;
mod response_cache;

use std::borrow::Cow;
use std::sync::Arc;

use rampart_plugins::contract::PolicyKind;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub use self::cache::MethodCache;
use self::country_cache::CountryCache;
use self::policy_input::policy_input;
pub use self::response_cache::MethodList;
use crate::Core;
use crate::auth::caller::{Client, ClientMaybeUser};
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::endpoint::{Cache, Endpoint};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::policies;
use crate::trading::catalogue::{Catalogue, PaymentMethod};
use rampart_types::{JsonDecimal, PAYMENT_METHOD_COUNTRIES, UserId};

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: http::Method = http::Method::GET;
    const PATH: &'static str = "/api/v2/buy/payment-methods";
    const ERRORS: &'static [Code] = &[];
    const CACHE: Cache = Cache::Revalidate;
    const DOC: Doc = Doc {
        summary: "List payment methods, best first",
        details: "The order follows the partner's own rule if it has one, else the user's last \
                  method, then what users of the country prefer.",
        query: &[optional(
            "countryCode",
            Kind::Known(&PAYMENT_METHOD_COUNTRIES),
            "Where the user is; any other is as none. It counts only when no user is named.",
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
            None => RankingContext { country, ..RankingContext::default() },
        };
        let methods = core.method_cache.for_catalogue(&client.catalogue);
        let cached = CountryCache::get(&methods, &context);
        let order = match cached {
            Some(country) => Cow::Borrowed(&country.order[..]),
            None => Cow::Owned(context.ranked(&methods.catalogue)),
        };
        if client.tenant.policies.has(PolicyKind::MethodOrder) {
            let input = match cached {
                Some(country) => country.policy_input(&methods, &context),
                None => policy_input(&methods, &context, &order).into(),
            };
            if let Some(ranking) = policies::rank(core, &client, user, input) {
                let shown = ranking.indices.iter().filter_map(|index| order.get(*index).copied());
                return methods.list(&shown.collect::<Vec<_>>());
            }
        }
        match cached {
            Some(country) => country.list(&methods),
            None => methods.list(&order),
        }
    }
}

/// The facts about a user that decide the order.
#[derive(Debug, Default)]
struct RankingContext {
    /// ISO 3166-1 alpha-2, in capitals.
    country: Option<String>,
    /// The method of the user's last completed order.
    last_used: Option<String>,
    /// The user's verification level; empty without a user.
    tier: String,
}

impl RankingContext {
    async fn for_user(core: &Core, client: &Client, user: UserId) -> Result<Self> {
        let row = sqlx::query!(
            r#"
            select country, level, (
                select payment_method from buy_order
                where client_id = $1 and user_id = $2 and status = 'completed'
                order by created_at desc
                limit 1
            ) as "last_used?"
            from end_user
            where client_id = $1 and user_id = $2
            "#,
            client.id().uuid(),
            user.uuid(),
        )
        .fetch_optional(&core.db)
        .await?;
        let context =
            row.map(|row| Self { country: row.country, last_used: row.last_used, tier: row.level });
        Ok(context.unwrap_or_default())
    }

    /// The places in the catalogue of the methods that are offered, in the built-in order.
    fn ranked(&self, catalogue: &Catalogue) -> Vec<usize> {
        let preferred = self.country.as_ref().and_then(|code| catalogue.preferences.get(code));
        let rank = |(_, method): &(usize, &Arc<PaymentMethod>)| {
            let used = self.last_used.as_ref() == Some(&method.code);
            let place = preferred.and_then(|codes| codes.iter().position(|c| *c == method.code));
            (!used, place.unwrap_or(usize::MAX))
        };
        let mut methods: Vec<_> = catalogue.payment_methods.iter().enumerate().collect();
        methods.retain(|(_, method)| method.enabled);
        // Stable: what nothing decides stays in the default order.
        methods.sort_by_key(rank);
        methods.into_iter().map(|(place, _)| place).collect()
    }
}

/// The answer.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentMethods {
    payment_methods: Vec<View>,
}

/// A method as the API document shows it.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "PaymentMethod")]
#[serde(rename_all = "camelCase")]
struct View {
    code: String,
    label: String,
    psp: String,
    limit: JsonDecimal,
    fees: Fees,
    expiration_period: u32,
    open_in_new_tab: bool,
    context: Value,
    uses_estimated_quote: bool,
}

#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "PaymentMethodFees")]
struct Fees {
    fixed: JsonDecimal,
    percentage: JsonDecimal,
}

impl View {
    fn of(method: &PaymentMethod) -> Self {
        Self {
            code: method.code.clone(),
            label: method.label.clone(),
            psp: method.psp.clone(),
            limit: method.limit.into(),
            fees: Fees { fixed: method.fee_fixed.into(), percentage: method.fee_percentage.into() },
            expiration_period: method.expiration_period_seconds,
            open_in_new_tab: method.open_in_new_tab,
            context: method.context.clone(),
            uses_estimated_quote: method.uses_estimated_quote,
        }
    }
}

#[cfg(test)]
mod tests {
    use rust_decimal::Decimal;

    use super::cache::CatalogueMethods;
    use super::*;
    use crate::endpoint::Respond as _;

    pub(super) fn method(code: &str, enabled: bool) -> PaymentMethod {
        PaymentMethod {
            code: code.to_owned(),
            label: code.to_owned(),
            psp: "bank".to_owned(),
            kind: "other".to_owned(),
            limit: Decimal::ONE_HUNDRED,
            fee_fixed: Decimal::ZERO,
            fee_percentage: Decimal::ZERO,
            expiration_period_seconds: 900,
            open_in_new_tab: false,
            uses_estimated_quote: false,
            enabled,
            context: Value::Array(Vec::new()),
        }
    }

    pub(super) fn catalogue() -> Catalogue {
        let methods = [("a", true), ("b", true), ("off", false), ("c", true), ("d", true)];
        let mut catalogue = Catalogue::default();
        catalogue.payment_methods = methods.map(|(code, on)| Arc::new(method(code, on))).to_vec();
        let liked = ["off", "d", "c"].map(str::to_owned).to_vec();
        catalogue.preferences.insert("NL".to_owned(), liked);
        catalogue
    }

    fn order(country: Option<&str>, last_used: Option<&str>) -> String {
        let context = RankingContext {
            country: country.map(str::to_owned),
            last_used: last_used.map(str::to_owned),
            ..RankingContext::default()
        };
        let catalogue = catalogue();
        let ranked = context.ranked(&catalogue);
        ranked.into_iter().map(|place| catalogue.payment_methods[place].code.as_str()).collect()
    }

    #[test]
    fn the_last_used_method_leads_then_the_country_then_the_default() {
        assert_eq!(order(None, None), "abcd");
        assert_eq!(order(Some("NL"), None), "dcab");
        assert_eq!(order(Some("NL"), Some("b")), "bdca");
        assert_eq!(order(Some("DE"), Some("c")), "cabd");
    }

    #[test]
    fn a_list_is_serialized_once_for_each_order_of_its_methods() {
        let methods = CatalogueMethods::new(Arc::new(catalogue()));
        let body = |order: &[usize]| {
            let reply = methods.list(order).unwrap().respond().unwrap();
            (reply.headers["etag"].clone(), reply.body)
        };
        let (tag, first) = body(&[0, 1]);
        let (same_tag, again) = body(&[0, 1]);
        assert_eq!((&tag, first.as_ptr()), (&same_tag, again.as_ptr()), "it was serialized again");
        let (other_tag, turned) = body(&[1, 0]);
        assert!(other_tag != tag && turned != first);
        let written: Value = serde_json::from_slice(&turned).unwrap();
        assert_eq!(written["paymentMethods"][0]["code"], "b");
    }

    #[test]
    fn a_method_that_is_off_is_not_offered_however_well_liked() {
        assert_eq!(order(Some("NL"), Some("off")), "dcab");
    }
}
