//! `GET /api/v2/quotes/matrix`: one amount by every payment method and pair, priced as a quote would
//! be, with the reasons for which it is none.

mod row;

use std::sync::Arc;

use http::Method;
use rampart_plugins::contract::Stage;
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

pub use self::row::Row;
use super::Side;
use super::create::quote_at;
use super::limits::{self, Reason, UserLimits};
use super::market::is_open;
use super::policy_user::PolicyUser;
use super::request::{self, CHANNEL, COUNTRY_CODE, PROMO_CODE, Request};
use super::token;
use crate::Core;
use crate::auth::caller::{Client, ClientMaybeUser};
use crate::endpoint::openapi::doc::{Doc, Kind, Member, optional, required};
use crate::endpoint::{Bucket, Endpoint, Json};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;
use crate::trading::catalogue::{Catalogue, Pair, PairStatus};
use crate::trading::channel::channel;
use crate::trading::pricing::Given;
use crate::trading::routing::{self, is_payable};
use crate::users::accounts::AccountType;
use rampart_types::Country;

/// Most rows of an answer: pairs by their codes, each with the methods in the default order.
const ROWS_MAX: usize = 1_000;

/// Parameters of the query.
const QUERY: &[Member] = &[
    required("fiatAmount", Kind::Text, "Amount that the user would pay, such as `250`."),
    required("currency", Kind::Text, "Code of the amount's currency: `EUR`."),
    optional(
        "currencyPair",
        Kind::Matching("^[A-Z0-9]{2,12}-[A-Z0-9]{2,12}$"),
        "The one pair to compare methods for, of that currency; all its pairs if omitted.",
    ),
    optional(
        "fee",
        Kind::Text,
        "The partner's fee in percent, 0 to 5 within the client's cap; the client's default if \
         omitted.",
    ),
    COUNTRY_CODE,
    PROMO_CODE,
    CHANNEL,
];

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/quotes/matrix";
    const SCOPE: Option<Scope> = Some(Scope::QuotesRead);
    const ERRORS: &'static [Code] = &[
        Code::CurrencyPairUnknown,
        Code::FiatAmountInvalid,
        Code::AmountMissing,
        Code::RequestMalformed,
        Code::FeeOutOfBounds,
        Code::CountryCodeInvalid,
        Code::CountryMissing,
        Code::CountryUnknown,
        Code::CurrencyMissing,
        Code::CurrencyUnsupported,
    ];
    const BUCKET: Option<Bucket> = Some(Bucket::Quotes);
    const COST: fn(&Core, &Client, Option<&str>) -> u32 = |core, client, query| {
        let rows = Terms::read(query, client).map_or(0, |terms| terms.rows(&client.catalogue));
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        rows.div_ceil(core.settings.ratelimit.matrix_rows_per_quote.max(1)).max(1)
    };
    const DOC: Doc = Doc {
        summary: "Compare an amount by payment method and pair",
        details: "A row for every payment method and every pair of the currency, available or not: \
                  the members of a quote, at the prices and fees that a quote would have now, and \
                  `reasons` for which it cannot be bought so. They are empty where it can be: then \
                  the `quote` of the row that the user picks is confirmed before its `expiryDate`; \
                  both are null elsewhere. What has no price has no amounts either. At most 1000 \
                  rows; every 20 of them, unless the service is configured otherwise, count as \
                  one request in the rate of quotes.",
        query: QUERY,
        answer: r#"[
            {
                "quote": "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..c2VhbGVk.dGV4dA.dGFn",
                "currencyPair": "BTC-EUR", "paymentMethod": "creditCard",
                "fiatAmount": 250, "cryptoAmount": 0.00262011, "price": 90000,
                "paymentMethodCost": 6.5, "networkFeeCost": 1.5,
                "providerFee": 2.5, "providerFeePercentage": 1,
                "partnerFee": 2.5, "partnerFeePercentage": 1, "spreadFee": 1.19,
                "singleCoinEstimate": 95415.84, "isEstimatedQuote": false,
                "expiryDate": "2026-03-01T12:05:00.000Z",
                "quoteUnconfirmableReasons": [], "reasons": [],
                "sourceCurrency": {
                    "code": "EUR", "ticker": "EUR", "name": "Euro", "caip19": "swift:0/iso4217:EUR"
                },
                "targetCurrency": {
                    "code": "BTC", "ticker": "BTC", "name": "Bitcoin",
                    "caip19": "bip122:000000000019d6689c085ae165831e93/slip44:0"
                }
            },
            {
                "quote": null,
                "currencyPair": "XRP-EUR", "paymentMethod": "creditCard",
                "fiatAmount": 250, "cryptoAmount": null, "price": null,
                "paymentMethodCost": null, "networkFeeCost": null,
                "providerFee": null, "providerFeePercentage": 1,
                "partnerFee": null, "partnerFeePercentage": null, "spreadFee": null,
                "singleCoinEstimate": null, "isEstimatedQuote": false,
                "expiryDate": null,
                "quoteUnconfirmableReasons": [], "reasons": ["noPrice"],
                "sourceCurrency": {
                    "code": "EUR", "ticker": "EUR", "name": "Euro", "caip19": "swift:0/iso4217:EUR"
                },
                "targetCurrency": {
                    "code": "XRP", "ticker": "XRP", "name": "XRP", "caip19": "xrpl:0/slip44:144"
                }
            }
        ]"#,
        ..Doc::NONE
    };
    type Caller = ClientMaybeUser;
    type Request = Terms;
    type Response = Json<Vec<Row>>;

    fn read(input: &Input, caller: &ClientMaybeUser) -> Result<Terms> {
        Terms::read(input.head.query.as_deref(), &caller.client)
    }

    async fn call(core: &Core, caller: ClientMaybeUser, terms: Terms) -> Result<Self::Response> {
        let comparison = Comparison {
            core,
            caller: &caller,
            user: UserLimits::of(core, &caller, &AccountType::ALL).await?,
            facts: PolicyUser::of(core, &caller).await?,
            is_country_served: terms.is_country_served(&caller.client),
        };
        let catalogue = &caller.client.catalogue;
        let mut rows = Vec::new();
        for request in terms.requests(catalogue).take(ROWS_MAX) {
            rows.push(comparison.row(&request).await?);
            // A row waits for nothing: a thousand of them would keep the thread from other requests.
            tokio::task::yield_now().await;
        }
        Ok(Json(rows))
    }
}

/// Terms of a comparison.
#[derive(Debug)]
pub struct Terms {
    pairs: Vec<Arc<Pair>>,
    fiat: Decimal,
    fee: Option<Decimal>,
    country: Option<Country>,
    promo_code: Option<String>,
    channel: Option<&'static str>,
}

impl Terms {
    fn read(query: Option<&str>, client: &Client) -> Result<Self> {
        let mut fields = Fields::of_query(query);
        let is_sent = |fields: &Fields<'_>, name| {
            fields.value(name).is_some_and(|value| value.as_str() != Some(""))
        };
        let currency = match is_sent(&fields, "currency") {
            false => fields.required("currency", Code::CurrencyMissing, |_| None),
            true => fields.required("currency", Code::CurrencyUnsupported, |code| {
                let known = client.catalogue.currencies.get(&request::parsed(code)?)?;
                known.crypto.is_none().then(|| Arc::clone(known))
            }),
        };
        let pair = fields.optional("currencyPair", Code::CurrencyPairUnknown, |code| {
            client.catalogue.pairs.get(&request::parsed(code)?)
        });
        let pairs = currency.as_ref().map(|currency| {
            let all = client.catalogue.pairs.values();
            let of_currency = all.filter(|pair| pair.quote.code() == currency.code());
            let wanted = of_currency.filter(|one| pair.is_none_or(|pair| pair.code == one.code));
            wanted.cloned().collect::<Vec<_>>()
        });
        if pair.is_some() && pairs.as_ref().is_some_and(Vec::is_empty) {
            fields.refuse_member(Code::CurrencyPairUnknown, "currencyPair");
        }
        let decimals = currency.as_ref().map(|currency| currency.scale());
        let fiat = match is_sent(&fields, "fiatAmount") {
            false => fields.required("fiatAmount", Code::AmountMissing, |_| None),
            true => request::amount(&mut fields, "fiatAmount", Code::FiatAmountInvalid, decimals),
        };
        let fee = request::fee(&mut fields, client);
        let country = fields.country("countryCode");
        let promo_code = fields.optional("promoCode", Code::RequestMalformed, request::promo_code);
        let channel =
            fields.optional("channel", Code::RequestMalformed, |name| channel(name.as_str()?));
        let terms = pairs.zip(fiat).map(|(pairs, fiat)| Self {
            pairs,
            fiat,
            fee,
            country,
            promo_code: promo_code.flatten(),
            channel,
        });
        fields.finish(terms)
    }

    /// The number of rows.
    fn rows(&self, catalogue: &Catalogue) -> usize {
        self.pairs.len().saturating_mul(catalogue.payment_methods.len()).min(ROWS_MAX)
    }

    /// The quote requests that are compared.
    fn requests<'a>(&'a self, catalogue: &'a Catalogue) -> impl Iterator<Item = Request> + 'a {
        self.pairs.iter().flat_map(move |pair| {
            catalogue.payment_methods.iter().map(move |method| Request {
                side: Side::Buy,
                pair: Arc::clone(pair),
                method: Arc::clone(method),
                given: Given::Fiat(self.fiat),
                fee: self.fee,
                wallet_address: None,
                destination_tag: None,
                country: self.country,
                promo_code: self.promo_code.clone(),
                channel: self.channel,
                stage: Stage::Quote,
            })
        })
    }

    /// `true` unless the client does not serve the country that is named.
    fn is_country_served(&self, client: &Client) -> bool {
        self.country.is_none_or(|country| client.tenant.serves(country))
    }
}

/// Context of all rows of an answer.
struct Comparison<'a> {
    core: &'a Core,
    caller: &'a ClientMaybeUser,
    user: Option<UserLimits>,
    facts: Option<PolicyUser>,
    is_country_served: bool,
}

impl Comparison<'_> {
    async fn row(&self, request: &Request) -> Result<Row> {
        let Self { core, caller, .. } = self;
        let (client, pair, method) = (&caller.client, &request.pair, &request.method);
        let price = routing::price(&client.tenant, pair, core.clock.now());
        let in_maintenance = pair.buy.status == PairStatus::Maintenance;
        let closed = [
            (in_maintenance, Obstacle::BuyingInMaintenance),
            (!in_maintenance && !is_open(client, Side::Buy, pair), Obstacle::BuyingDisabled),
            (price.is_none(), Obstacle::NoPrice),
            (!is_payable(client, Side::Buy, method), Obstacle::PaymentMethodUnavailable),
            (!self.is_country_served, Obstacle::CountryNotServed),
        ];
        let closed = closed.into_iter().filter_map(|(holds, reason)| holds.then_some(reason));
        let mut unavailable: Vec<_> = closed.collect();
        let facts = self.facts.as_ref();
        let quote = match price {
            None => None,
            Some(price) => match quote_at(core, caller, request, price, facts).await {
                Ok(quote) => Some(quote),
                Err(error) if error.is(Code::FiatAmountInvalid) => {
                    unavailable.push(Obstacle::AmountUnpriceable);
                    None
                }
                Err(error) if error.is(Code::FeePolicyFailed) => {
                    unavailable.push(Obstacle::FeePolicyFailed);
                    None
                }
                Err(error) => return Err(error),
            },
        };
        let (Given::Fiat(fiat) | Given::Crypto(fiat)) = request.given;
        let mut reasons = limits::reasons(pair, method, fiat, None);
        if let Some((user, quote)) = self.user.as_ref().zip(quote.as_ref()) {
            reasons.extend(user.reasons(core, &client.catalogue, quote));
        }
        unavailable.extend(reasons.iter().filter_map(|reason| Obstacle::of(*reason)));
        // A confirm would refuse any other; and fewer are sealed under the key of a day.
        let sealed = quote.as_ref().filter(|_| unavailable.is_empty());
        let sealed = sealed.map(|quote| token::seal(core, &client.tenant, quote)).transpose()?;
        Ok(Row::new(request, fiat, quote, sealed, reasons, unavailable))
    }
}

/// A reason of `reasons`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(rename = "UnavailableReason")]
#[serde(rename_all = "camelCase")]
enum Obstacle {
    /// The pair cannot be bought by this client.
    BuyingDisabled,
    /// Buying the pair is in maintenance.
    BuyingInMaintenance,
    /// The pair has no price now.
    NoPrice,
    /// The payment method is switched off, or not offered to this client.
    PaymentMethodUnavailable,
    /// The client does not serve the country.
    CountryNotServed,
    /// Nothing is left of the amount after the fees, or it is too large.
    AmountUnpriceable,
    /// The partner's fee rule has failed.
    FeePolicyFailed,
    /// The amount is outside the pair's bounds.
    CurrencyLimitExceeded,
    /// The amount is above the payment method's limit.
    PaymentMethodLimitExceeded,
    /// The user's accounts to buy with the method are all disabled.
    PaymentMethodDisabled,
    /// The amount is above the remainder of the user's day limit.
    UserLimitExceeded,
}

impl Obstacle {
    /// The reason for which a confirm would refuse a quote; a hint is none.
    const fn of(reason: Reason) -> Option<Self> {
        match reason {
            Reason::CurrencyLimitExceeded => Some(Self::CurrencyLimitExceeded),
            Reason::PaymentMethodLimitExceeded => Some(Self::PaymentMethodLimitExceeded),
            Reason::PaymentMethodDisabled => Some(Self::PaymentMethodDisabled),
            Reason::UserLimitExceeded => Some(Self::UserLimitExceeded),
            Reason::UserRegistrationNotCompleted => None,
        }
    }
}
