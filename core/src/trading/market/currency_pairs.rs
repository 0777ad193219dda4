//! `GET /api/v1/system/currency-pairs`: every pair, with the decimals and bounds of its amounts.

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Cache, Endpoint, Json};
use crate::http::request::Input;
use crate::platform::error::Result;
use crate::tenancy::tenants::Scope;
use crate::trading::catalogue::{Currency, Pair, PairSide, PairStatus};
use crate::trading::quotes::Side;
use crate::trading::routing;
use rampart_types::{Amount, Caip19, CurrencyCode, CurrencyDetails, PairCode};

/// Version 1, the only one.
pub struct V1;

impl Endpoint for V1 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v1/system/currency-pairs";
    const SCOPE: Option<Scope> = Some(Scope::QuotesRead);
    const CACHE: Cache = Cache::Revalidate;
    const DOC: Doc = Doc {
        summary: "List the currency pairs",
        details: "The base currency is the one that is bought or sold. Bounds of buying are in \
                  fiat, bounds of selling in crypto.",
        answer: r#"[{
            "currencyPair": "XRP-EUR",
            "baseCurrency": {
                "code": "XRP", "ticker": "XRP", "name": "XRP", "caip19": "xrpl:0/slip44:144",
                "chain": null, "decimals": 6, "supportsTag": true
            },
            "quoteCurrency": {
                "code": "EUR", "name": "Euro", "decimals": 2, "caip19": "swift:0/iso4217:EUR"
            },
            "buy": {
                "status": "enabled",
                "min": {"amount": 30, "currencyCode": "EUR"},
                "max": {"amount": 50000, "currencyCode": "EUR"}
            },
            "sell": {
                "status": "maintenance",
                "min": {"amount": 20, "currencyCode": "XRP"},
                "max": {"amount": 40000, "currencyCode": "XRP"}
            }
        }]"#,
        ..Doc::NONE
    };
    type Caller = Client;
    type Request = ();
    type Response = Json<Vec<Listing>>;

    fn read(_: &Input, _: &Client) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, client: Client, (): ()) -> Result<Json<Vec<Listing>>> {
        let now = core.clock.now();
        let pairs = client.catalogue.pairs.values();
        Ok(Json(pairs.map(|pair| Listing::new(&client, pair, now)).collect()))
    }
}

/// One pair.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "CurrencyPair")]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// Base and quote currency, such as `BTC-EUR`.
    currency_pair: PairCode,
    /// The crypto currency.
    base_currency: CryptoView,
    /// The fiat currency.
    quote_currency: FiatView,
    /// Buying.
    buy: SideView,
    /// Selling.
    sell: SideView,
}

impl Listing {
    fn new(client: &Client, pair: &Pair, now: DateTime<Utc>) -> Self {
        let (base, quote) = (pair.base.code(), pair.quote.code());
        let status = |side| routing::pair_status(client, pair, side, now);
        Self {
            currency_pair: pair.code,
            base_currency: CryptoView::new(&pair.base),
            quote_currency: FiatView {
                code: quote,
                name: pair.quote.details.name.to_string(),
                decimals: pair.quote.decimals,
                caip19: pair.quote.details.caip19.clone(),
            },
            buy: SideView::new(&pair.buy, status(Side::Buy), quote),
            sell: SideView::new(&pair.sell, status(Side::Sell), base),
        }
    }
}

#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "CryptoCurrency")]
#[serde(rename_all = "camelCase")]
struct CryptoView {
    #[serde(flatten)]
    details: CurrencyDetails,
    /// The network's name where it differs from the currency's.
    chain: Option<String>,
    /// Of the chain; amounts carry at most 8 of them.
    decimals: u32,
    /// `true` if addresses may have a tag or memo.
    supports_tag: bool,
}

impl CryptoView {
    fn new(currency: &Currency) -> Self {
        let crypto = currency.crypto.as_ref();
        Self {
            details: CurrencyDetails::clone(&currency.details),
            chain: crypto.and_then(|crypto| crypto.chain_name.clone()),
            decimals: currency.decimals,
            supports_tag: crypto.is_some_and(|crypto| crypto.supports_tag),
        }
    }
}

/// A fiat currency.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "FiatCurrency")]
struct FiatView {
    /// Code of ISO 4217.
    code: CurrencyCode,
    /// English name.
    name: String,
    /// Decimal places of amounts.
    decimals: u32,
    /// Identifier of the form of CAIP-19.
    caip19: Caip19,
}

/// One direction: bounds in what the user hands over.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "PairSide")]
struct SideView {
    /// `enabled`, `disabled` or `maintenance`.
    status: PairStatus,
    /// Least amount: of fiat for buying, of coins for selling.
    min: Amount,
    /// Largest amount.
    max: Amount,
}

impl SideView {
    fn new(side: &PairSide, status: PairStatus, currency: CurrencyCode) -> Self {
        let amount = |amount| Amount::new(amount, currency);
        Self { status, min: amount(side.min), max: amount(side.max) }
    }
}
