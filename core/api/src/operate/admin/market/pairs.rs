//! `GET /admin/v1/pairs` and `PATCH /admin/v1/pairs/{pair}`

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AFTER_PAIR, PAIR, PAIRS_MAX, outside_bounds, pair, publish, void_quotes};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict::{self, present};
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{Page, Part, limit};
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use crate::trading::catalogue::PairStatus;
use rampart_types::{JsonDecimal, PairCode};

/// `GET /admin/v1/pairs`
pub struct ListPairs;

impl Endpoint for ListPairs {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/pairs";
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "List the currency pairs",
        details: "With their prices, the status of both sides, and their terms.",
        query: &[AFTER_PAIR, limit(PAIRS_MAX)],
        answer: r#"[{"pair": "BTC-EUR", "price": 51234.56, "buy": "enabled", "sell": "enabled",
            "terms": {"pair": "BTC-EUR", "buy": {"status": "enabled", "min": 10, "max": 50000},
                "sell": {"status": "enabled", "min": 10, "max": 50000}, "spreadPercentage": 0.5,
                "networkFee": 1.25, "quoteLifetimeSeconds": 300, "priceMaxAgeSeconds": 60,
                "quotesValidFrom": null}}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Part;
    type Response = Page<Listed>;

    fn read(input: &Input, _: &Operator) -> Result<Part> {
        Part::read(input, PAIRS_MAX)
    }

    async fn call(core: &Core, _: Operator, part: Part) -> Result<Page<Listed>> {
        let mut conn = core.db.acquire().await?;
        let terms = Pair::all(&mut conn).await?;
        let mut terms: BTreeMap<_, _> =
            terms.into_iter().map(|terms| (terms.pair.clone(), terms)).collect();
        let catalogue = Arc::clone(&core.snapshots.current().catalogue);
        let pairs = catalogue.pairs.values().filter_map(|pair| {
            Some(Listed {
                pair: pair.code,
                price: pair.price.as_ref().map(|price| JsonDecimal(price.amount)),
                buy: pair.buy.status,
                sell: pair.sell.status,
                terms: terms.remove(&pair.code.to_string())?,
            })
        });
        part.of(pairs.collect(), |listed| listed.pair.to_string())
    }
}

/// `PATCH /admin/v1/pairs/{pair}`
pub struct UpdatePair;

impl Endpoint for UpdatePair {
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/admin/v1/pairs/{pair}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Treasury];
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Update a currency pair",
        details: "Members that are left out stay as they are. Every edge follows within a second; \
                  `quotesValidFrom` counts at once: quotes sealed before cannot be confirmed (ER006).",
        path: &[PAIR],
        body: Shape::of::<ChangePair>(),
        request: r#"{"buy": {"status": "maintenance"}, "spreadPercentage": 0.5}"#,
        answer: r#"{"pair": "BTC-EUR", "buy": {"status": "maintenance", "min": 10, "max": 50000},
            "sell": {"status": "enabled", "min": 10, "max": 50000}, "spreadPercentage": 0.5,
            "networkFee": 1.25, "quoteLifetimeSeconds": 300, "priceMaxAgeSeconds": 60,
            "quotesValidFrom": null}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Update;
    type Response = Json<Pair>;

    fn read(input: &Input, _: &Operator) -> Result<Update> {
        let change = strict::body(input)?;
        Ok(Update { change, pair: pair(input)?, detail: input.document.clone() })
    }

    async fn call(core: &Core, operator: Operator, update: Update) -> Result<Json<Pair>> {
        let Update { pair, change, detail } = update;
        let mut tx = core.db.begin().await?;
        let changed = change.write(&mut tx, pair).await?;
        publish(core, tx, &operator, "pair.change", &changed.pair, detail).await?;
        Ok(Json(changed))
    }
}

/// A change of one pair.
#[derive(Debug)]
pub struct Update {
    pair: PairCode,
    change: ChangePair,
    /// The body, for the audit.
    detail: Value,
}

/// The terms of a pair; one that is left out stays as it is.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "PairUpdate")]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(in crate::operate::admin) struct ChangePair {
    /// Terms of purchases.
    buy: ChangeSide,
    /// Terms of sales.
    sell: ChangeSide,
    /// Distance to the mid price, in percent, 0 to 20.
    spread_percentage: Option<JsonDecimal>,
    /// In the pair's fiat currency.
    network_fee: Option<JsonDecimal>,
    /// Seconds in which a quote can be confirmed; `null` is the edge's default.
    #[serde(deserialize_with = "present")]
    quote_lifetime_seconds: Option<Option<i32>>,
    /// Age at which a price is too old to quote; `null` takes it away. Without it a price set by
    /// hand has no end, and is quoted to test clients alone.
    #[serde(deserialize_with = "present")]
    price_max_age_seconds: Option<Option<i32>>,
    /// Quotes sealed before are void; it can only be raised, and a time to come counts as now.
    quotes_valid_from: Option<DateTime<Utc>>,
}

impl ChangePair {
    /// Writes the members that are there; returns the pair's terms. The table checks the bounds.
    ///
    /// # Errors
    /// 404 without the pair, 422 for a value out of its bounds.
    pub(in crate::operate::admin) async fn write(
        &self,
        conn: &mut Connection,
        pair: PairCode,
    ) -> Result<Pair> {
        let amount = |given: &Option<JsonDecimal>| given.as_ref().map(|amount| amount.0);
        let mut changed: Pair = sqlx::query_as!(
            PairRow,
            r#"
            update currency_pair set
                buy_status = coalesce($2, buy_status), buy_min = coalesce($3, buy_min),
                buy_max = coalesce($4, buy_max),
                sell_status = coalesce($5, sell_status), sell_min = coalesce($6, sell_min),
                sell_max = coalesce($7, sell_max),
                spread_percentage = coalesce($8, spread_percentage),
                network_fee = coalesce($9, network_fee),
                quote_lifetime_seconds = case when $10 then $11 else quote_lifetime_seconds end,
                price_max_age_seconds = case when $12 then $13 else price_max_age_seconds end
            where pair = $1
            returning pair, buy_status, buy_min, buy_max, sell_status, sell_min, sell_max,
                spread_percentage, network_fee, quote_lifetime_seconds, price_max_age_seconds,
                quotes_valid_from
            "#,
            pair.to_string(),
            self.buy.status,
            amount(&self.buy.min),
            amount(&self.buy.max),
            self.sell.status,
            amount(&self.sell.min),
            amount(&self.sell.max),
            amount(&self.spread_percentage),
            amount(&self.network_fee),
            self.quote_lifetime_seconds.is_some(),
            self.quote_lifetime_seconds.flatten(),
            self.price_max_age_seconds.is_some(),
            self.price_max_age_seconds.flatten(),
        )
        .fetch_optional(&mut *conn)
        .await
        .map_err(outside_bounds)?
        .ok_or_else(|| Denial::not_found("pair"))?
        .into();
        if let Some(from) = self.quotes_valid_from {
            changed.quotes_valid_from = Some(void_quotes(conn, pair, from).await?);
        }
        Ok(changed)
    }
}

/// The terms of one side of a pair; one that is left out stays as it is.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "PairSideUpdate")]
#[serde(deny_unknown_fields, default)]
struct ChangeSide {
    /// `enabled`, `disabled` or `maintenance`.
    #[schemars(with = "Option<PairStatus>")]
    status: Option<String>,
    /// Least amount: fiat to buy, crypto to sell.
    min: Option<JsonDecimal>,
    /// Highest amount: fiat to buy, crypto to sell.
    max: Option<JsonDecimal>,
}

/// A pair's terms.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pair {
    /// Both codes, such as `BTC-EUR`.
    pair: String,
    buy: Side,
    sell: Side,
    /// Distance to the mid price, in percent.
    spread_percentage: JsonDecimal,
    /// In the pair's fiat currency.
    network_fee: JsonDecimal,
    /// The edge's default without one.
    quote_lifetime_seconds: Option<i32>,
    /// Age at which a price is too old to quote.
    price_max_age_seconds: Option<i32>,
    /// Quotes sealed before are void; null: none are.
    quotes_valid_from: Option<DateTime<Utc>>,
}

/// A pair as stored.
struct PairRow {
    pair: String,
    buy_status: String,
    buy_min: Decimal,
    buy_max: Decimal,
    sell_status: String,
    sell_min: Decimal,
    sell_max: Decimal,
    spread_percentage: Decimal,
    network_fee: Decimal,
    quote_lifetime_seconds: Option<i32>,
    price_max_age_seconds: Option<i32>,
    quotes_valid_from: Option<DateTime<Utc>>,
}

impl From<PairRow> for Pair {
    fn from(row: PairRow) -> Self {
        let side = |status, min, max| Side { status, min: JsonDecimal(min), max: JsonDecimal(max) };
        Self {
            pair: row.pair,
            buy: side(row.buy_status, row.buy_min, row.buy_max),
            sell: side(row.sell_status, row.sell_min, row.sell_max),
            spread_percentage: JsonDecimal(row.spread_percentage),
            network_fee: JsonDecimal(row.network_fee),
            quote_lifetime_seconds: row.quote_lifetime_seconds,
            price_max_age_seconds: row.price_max_age_seconds,
            quotes_valid_from: row.quotes_valid_from,
        }
    }
}

impl Pair {
    /// All pairs, by their code.
    pub(in crate::operate::admin) async fn all(conn: &mut Connection) -> Result<Vec<Self>> {
        let rows = sqlx::query_as!(
            PairRow,
            "select pair, buy_status, buy_min, buy_max, sell_status, sell_min, sell_max, \
                 spread_percentage, network_fee, quote_lifetime_seconds, price_max_age_seconds, \
                 quotes_valid_from \
             from currency_pair order by pair",
        )
        .fetch_all(conn)
        .await?;
        Ok(rows.into_iter().map(Self::from).collect())
    }
}

/// The terms of one side of a pair.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "PairSide")]
struct Side {
    /// `enabled`, `disabled` or `maintenance`.
    #[schemars(with = "PairStatus")]
    status: String,
    /// Least amount: fiat to buy, crypto to sell.
    min: JsonDecimal,
    /// Highest amount: fiat to buy, crypto to sell.
    max: JsonDecimal,
}

/// A pair in the list.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ListedPair")]
pub struct Listed {
    /// Both codes, such as `BTC-EUR`.
    pair: PairCode,
    /// The mid price, if there is one.
    price: Option<JsonDecimal>,
    buy: PairStatus,
    sell: PairStatus,
    terms: Pair,
}
