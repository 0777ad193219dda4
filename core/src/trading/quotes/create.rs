//! `POST /api/v1/buy/quote` and `POST /api/v1/sell/quote`: prices a trade and seals the quote for
//! the confirm.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, SubsecRound, TimeDelta, Utc};
use http::Method;
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

use super::fees::Fees;
use super::limits::{self, Reason, UserLimits};
use super::market::open_market;
use super::policy_user::PolicyUser;
pub use super::request::Request;
use super::request::{BUY_MEMBERS, MEMBERS, SELL_MEMBERS};
use super::token::{self, Token};
use super::{QUOTE_LIFETIME_SECONDS_MAX, Quote, Side};
use crate::Core;
use crate::auth::caller::ClientMaybeUser;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Bucket, Endpoint, Json};
use crate::http::request::Input;
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::tenants::Scope;
use crate::trading::market::prices::rounded;
use crate::trading::payment_methods::families::Family;
use crate::trading::pricing::{FeeRules, Priced, Terms};
use crate::users::accounts;
use rampart_types::{CurrencyDetails, JsonDecimal, PairCode, Preserialized};

const DETAILS: &str = "Confirm the quote unchanged before its expiry date, once. Limits never refuse \
                       a quote: `quoteUnconfirmableReasons` tells what would refuse the confirm. \
                       `fiatAmount` is exactly `cryptoAmount` × `price`, plus the fees of a \
                       purchase or minus those of a sale.";

/// Buying, version 1.
pub struct BuyV1;

impl Endpoint for BuyV1 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v1/buy/quote";
    const SCOPE: Option<Scope> = Some(Scope::QuotesRead);
    const ERRORS: &'static [Code] = &[
        Code::CurrencyInMaintenance,
        Code::CurrencyPairUnknown,
        Code::FiatAmountInvalid,
        Code::CryptoAmountInvalid,
        Code::PaymentMethodUnknown,
        Code::WalletAddressInvalid,
        Code::DestinationTagInvalid,
        Code::AmountMissing,
        Code::AmountAmbiguous,
        Code::DestinationTagUnsupported,
        Code::RequestMalformed,
        Code::FeeOutOfBounds,
        Code::PaymentMethodUnavailable,
        Code::CountryCodeInvalid,
        Code::CountryMissing,
        Code::CountryUnknown,
        Code::FeePolicyFailed,
        Code::TargetCurrencyUnsupported,
        Code::SourceCurrencyUnsupported,
    ];
    const BODY: Body = Body::Json;
    const BUCKET: Option<Bucket> = Some(Bucket::Quotes);
    const DOC: Doc = Doc {
        summary: "Quote a purchase",
        details: DETAILS,
        body: Shape::Joined(&[MEMBERS, BUY_MEMBERS]),
        request: r#"{
            "currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 250, "fee": 1
        }"#,
        answer: r#"{
            "quote": "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..c2VhbGVk.dGV4dA.dGFn",
            "currencyPair": "BTC-EUR",
            "fiatAmount": 250, "cryptoAmount": 0.00262011, "price": 90000,
            "paymentMethod": "creditCard", "paymentMethodCost": 6.5, "networkFeeCost": 1.5,
            "providerFee": 2.5, "providerFeePercentage": 1,
            "partnerFee": 2.5, "partnerFeePercentage": 1, "spreadFee": 1.19,
            "singleCoinEstimate": 95415.84,
            "isEstimatedQuote": false,
            "expiryDate": "2026-03-01T12:05:00.000Z",
            "quoteUnconfirmableReasons": [],
            "sourceCurrency": {
                "code": "EUR", "ticker": "EUR", "name": "Euro", "caip19": "swift:0/iso4217:EUR"
            },
            "targetCurrency": {
                "code": "BTC", "ticker": "BTC", "name": "Bitcoin",
                "caip19": "bip122:000000000019d6689c085ae165831e93/slip44:0"
            }
        }"#,
        ..Doc::NONE
    };
    type Caller = ClientMaybeUser;
    type Request = Request;
    type Response = Json<View>;

    fn read(input: &Input, caller: &ClientMaybeUser) -> Result<Request> {
        Request::read(Side::Buy, &input.document, &caller.client)
    }

    async fn call(core: &Core, caller: ClientMaybeUser, request: Request) -> Result<Json<View>> {
        let quote = create(core, &caller, request).await;
        quote.inspect(|_| core.quote_counts.record(Side::Buy)).map(Json)
    }
}

/// Selling, version 1.
pub struct SellV1;

impl Endpoint for SellV1 {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/api/v1/sell/quote";
    const SCOPE: Option<Scope> = Some(Scope::QuotesRead);
    const ERRORS: &'static [Code] = &[
        Code::CurrencyInMaintenance,
        Code::CurrencyPairUnknown,
        Code::FiatAmountInvalid,
        Code::CryptoAmountInvalid,
        Code::PaymentMethodUnknown,
        Code::SellingInMaintenance,
        Code::AmountMissing,
        Code::AmountAmbiguous,
        Code::RequestMalformed,
        Code::FeeOutOfBounds,
        Code::PaymentMethodUnavailable,
        Code::CountryCodeInvalid,
        Code::CountryMissing,
        Code::CountryUnknown,
        Code::FeePolicyFailed,
        Code::TargetCurrencyUnsupported,
        Code::SourceCurrencyUnsupported,
    ];
    const BODY: Body = Body::Json;
    const BUCKET: Option<Bucket> = Some(Bucket::Quotes);
    const DOC: Doc = Doc {
        summary: "Quote a sale",
        details: DETAILS,
        body: Shape::Joined(&[MEMBERS, SELL_MEMBERS]),
        request: r#"{"currencyPair": "BTC-EUR", "cryptoAmount": 0.01}"#,
        answer: r#"{
            "quote": "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..c2VhbGVk.dGV4dA.dGFn",
            "currencyPair": "BTC-EUR",
            "fiatAmount": 885.05, "cryptoAmount": 0.01, "price": 90000,
            "paymentMethod": "bankTransfer", "paymentMethodCost": 0, "networkFeeCost": 1.5,
            "providerFee": 9, "providerFeePercentage": 1,
            "partnerFee": 0, "partnerFeePercentage": 0, "spreadFee": 4.45,
            "singleCoinEstimate": 88505,
            "isEstimatedQuote": false,
            "expiryDate": "2026-03-01T12:05:00.000Z",
            "quoteUnconfirmableReasons": [],
            "fiatNetworkFee": 1.5, "bankAccountDisabled": false,
            "sourceCurrency": {
                "code": "BTC", "ticker": "BTC", "name": "Bitcoin",
                "caip19": "bip122:000000000019d6689c085ae165831e93/slip44:0"
            },
            "targetCurrency": {
                "code": "EUR", "ticker": "EUR", "name": "Euro", "caip19": "swift:0/iso4217:EUR"
            }
        }"#,
        ..Doc::NONE
    };
    type Caller = ClientMaybeUser;
    type Request = Request;
    type Response = Json<SellQuote>;

    fn read(input: &Input, caller: &ClientMaybeUser) -> Result<Request> {
        Request::read(Side::Sell, &input.document, &caller.client)
    }

    async fn call(
        core: &Core,
        caller: ClientMaybeUser,
        request: Request,
    ) -> Result<Json<SellQuote>> {
        let quote = create(core, &caller, request).await?;
        core.quote_counts.record(Side::Sell);
        let kind = accounts::AccountType::from_name(&quote.payment_method);
        let bank_account_disabled = match caller.user.zip(kind) {
            None => false,
            Some((user, kind)) => {
                let mut conn = core.db.acquire().await?;
                accounts::all_disabled(&mut conn, caller.client.key_of(user), kind).await?
            }
        };
        let fiat_network_fee = quote.network_fee_cost;
        Ok(Json(SellQuote { fiat_network_fee, bank_account_disabled, quote }))
    }
}

/// A sell quote's JSON.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SellQuote {
    #[serde(flatten)]
    quote: View,
    /// The same as `networkFeeCost`.
    fiat_network_fee: JsonDecimal,
    /// True if the user has accounts for the payout method and all of them are disabled.
    bank_account_disabled: bool,
}

/// A buy quote's JSON.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "BuyQuote")]
#[serde(rename_all = "camelCase")]
pub struct View {
    /// The sealed quote, which the confirm takes unchanged.
    quote: Token,
    /// Base and quote currency, such as `BTC-EUR`.
    currency_pair: PairCode,
    /// Amount of the quote currency.
    pub(crate) fiat_amount: JsonDecimal,
    /// Amount of the base currency.
    pub(crate) crypto_amount: JsonDecimal,
    /// Price of one of the base currency.
    pub(crate) price: JsonDecimal,
    /// Code of the payment method.
    payment_method: String,
    /// Fee of the payment method.
    pub(crate) payment_method_cost: JsonDecimal,
    /// Fee of the network.
    pub(crate) network_fee_cost: JsonDecimal,
    /// Fee of the service.
    pub(crate) provider_fee: JsonDecimal,
    /// Fee of the service, in percent.
    provider_fee_percentage: JsonDecimal,
    /// Fee of the partner.
    pub(crate) partner_fee: JsonDecimal,
    /// Fee of the partner, in percent.
    partner_fee_percentage: JsonDecimal,
    /// Spread, with what rounding has left.
    pub(crate) spread_fee: JsonDecimal,
    /// Price of one of the base currency, all fees included.
    single_coin_estimate: JsonDecimal,
    /// `true` if the price is fixed when the payment arrives.
    pub(crate) is_estimated_quote: bool,
    /// Time until which it is good.
    #[schemars(extend("format" = "date-time"))]
    expiry_date: String,
    /// The same.
    #[serde(skip)]
    pub(crate) expires_at: DateTime<Utc>,
    /// Reasons for which a confirm would be refused, or the order would wait.
    pub(crate) quote_unconfirmable_reasons: Vec<Reason>,
    /// Currency that is given.
    source_currency: Arc<Preserialized<CurrencyDetails>>,
    /// Currency that is received.
    target_currency: Arc<Preserialized<CurrencyDetails>>,
}

/// Prices the request and seals the quote.
///
/// # Errors
/// Those of [`quote`], and when the user or its limits cannot be read.
pub(crate) async fn create(
    core: &Core,
    caller: &ClientMaybeUser,
    request: Request,
) -> Result<View> {
    let side = request.side;
    let quote = quote(core, caller, &request).await?;
    let sealed = token::seal(core, &caller.client.tenant, &quote)?;
    let sold = (side == Side::Sell).then_some(quote.crypto);
    let mut reasons = limits::reasons(&request.pair, &request.method, quote.fiat, sold);
    let kind = Family::kind_of(&quote.payment_method).filter(|_| side == Side::Buy);
    if let Some(user) = UserLimits::of(core, caller, kind.as_slice()).await? {
        reasons.extend(user.reasons(core, &caller.client.catalogue, &quote));
    }
    View::new(&request, quote, sealed, reasons)
}

/// Quotes the request at the current price.
///
/// # Errors
/// When the market is closed, or the amount has no price.
pub(crate) async fn quote(
    core: &Core,
    caller: &ClientMaybeUser,
    request: &Request,
) -> Result<Quote> {
    let price = open_market(core, &caller.client, request)?;
    let facts = PolicyUser::of(core, caller).await?;
    quote_at(core, caller, request, price, facts.as_ref()).await
}

/// Quotes the request at this price, whether or not it is offered. `facts` are the user's.
///
/// # Errors
/// When the amount has no price.
pub(super) async fn quote_at(
    core: &Core,
    caller: &ClientMaybeUser,
    request: &Request,
    price: Decimal,
    facts: Option<&PolicyUser>,
) -> Result<Quote> {
    let pair = &request.pair;
    let fees = Fees::evaluate(core, caller, request, price, facts).await?;
    let terms = Terms {
        side: request.side,
        price,
        fiat_exponent: pair.quote.scale(),
        crypto_scale: pair.base.scale(),
        provider_percentage: pair.provider_fee_percentage,
        network_fee: pair.network_fee,
        rules: fees.rules.clone(),
        bounds: fees.bounds,
    };
    let priced = terms.price(request.given).map_err(|why| request.unpriceable(why))?;
    Ok(Quote {
        policy_decisions: fees.decisions(core, caller, &priced),
        fee_rules: Some(FeeRules::of(&terms)?),
        ..build(core, caller, request, price, &priced)?
    })
}

fn build(
    core: &Core,
    caller: &ClientMaybeUser,
    request: &Request,
    price: Decimal,
    priced: &Priced,
) -> Result<Quote> {
    let lifetime =
        request.pair.quote_lifetime_seconds.unwrap_or(core.settings.lifetimes.quote_seconds);
    let lifetime = TimeDelta::seconds(i64::from(lifetime.min(QUOTE_LIFETIME_SECONDS_MAX)));
    // An edge that knows from when on quotes are valid seals none that is not.
    let issued_at = core.clock.now().trunc_subsecs(3);
    let issued_at = request.pair.quotes_valid_from.map_or(issued_at, |from| issued_at.max(from));
    Ok(Quote {
        id: core.clock.uuid()?.into(),
        client: caller.client.id(),
        user: caller.user,
        side: request.side,
        pair: request.pair.code,
        payment_method: request.method.code.clone(),
        fiat: priced.fiat,
        crypto: priced.crypto,
        price,
        fees: priced.fees,
        partner_fee_percentage: priced.partner_fee_percentage,
        requested_fee_percentage: request.fee,
        wallet_address: request.wallet_address.clone(),
        destination_tag: request.destination_tag.clone(),
        country: request.country,
        is_estimated: request.side == Side::Buy && request.method.uses_estimated_quote,
        policy_decisions: serde_json::Value::Array(Vec::new()),
        catalogue_revision: caller.client.catalogue.revision,
        fee_rules: None,
        issued_at,
        expires_at: issued_at + lifetime,
    })
}

impl View {
    /// The sealed quote, to be confirmed unchanged.
    pub(crate) fn token(&self) -> &str {
        self.quote.as_str()
    }

    fn new(request: &Request, quote: Quote, sealed: Token, reasons: Vec<Reason>) -> Result<Self> {
        let pair = &request.pair;
        let single = single_coin(quote.fiat, quote.crypto, pair.quote.scale())
            .ok_or_else(|| Error::invariant("compute the price of one coin"))?;
        let (source, target) = request.paid_and_received();
        Ok(Self {
            quote: sealed,
            currency_pair: quote.pair,
            fiat_amount: quote.fiat.into(),
            crypto_amount: quote.crypto.into(),
            price: quote.price.into(),
            payment_method_cost: quote.fees.payment_method.into(),
            network_fee_cost: quote.fees.network.into(),
            provider_fee: quote.fees.provider.into(),
            provider_fee_percentage: pair.provider_fee_percentage.into(),
            partner_fee: quote.fees.partner.into(),
            partner_fee_percentage: quote.partner_fee_percentage.into(),
            spread_fee: quote.fees.spread.into(),
            single_coin_estimate: single.into(),
            is_estimated_quote: quote.is_estimated,
            expiry_date: quote.expires_at.to_rfc3339_opts(SecondsFormat::Millis, true),
            expires_at: quote.expires_at,
            quote_unconfirmable_reasons: reasons,
            payment_method: quote.payment_method,
            source_currency: Arc::clone(&source.details),
            target_currency: Arc::clone(&target.details),
        })
    }
}

/// Price of one coin with its fees, rounded as by the prices endpoint. `None` when it does not fit.
pub(super) fn single_coin(fiat: Decimal, crypto: Decimal, exponent: u32) -> Option<Decimal> {
    rounded(fiat.checked_div(crypto)?, exponent)
}
