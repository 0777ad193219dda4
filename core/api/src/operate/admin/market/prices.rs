//! `PUT /admin/v1/prices/{pair}` and `GET /admin/v1/prices`

use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AFTER_PAIR, PAIR, PAIRS_MAX, pair, publish, void_quotes};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{Page, Part, limit};
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use crate::trading::catalogue;
use rampart_types::{JsonDecimal, PairCode};

/// Longest time for which a price set by hand counts, in seconds.
const MAX_AGE_SECONDS: i32 = 31_536_000;

/// `PUT /admin/v1/prices/{pair}`
pub struct SetPrice;

impl Endpoint for SetPrice {
    const METHOD: Method = Method::PUT;
    const PATH: &'static str = "/admin/v1/prices/{pair}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Treasury];
    const APPROVAL: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Set the price of a pair",
        details: "Sets the mid price, and confirms one that deviates. It ends after \
                  `maxAgeSeconds`, else the pair's `priceMaxAgeSeconds`, else `prices.max_age_seconds` \
                  where the pair has sources, whose next readings replace it. Without any of them it \
                  has no end, and is quoted to test clients alone. To correct a price, send \
                  `quotesValidFrom` as well: quotes sealed before cannot be confirmed (ER006).",
        path: &[PAIR],
        body: Shape::of::<NewPrice>(),
        request: r#"{"price": 51234.56, "maxAgeSeconds": 3600}"#,
        answer: r#"{"pair": "BTC-EUR", "price": 51234.56, "observedAt": "2026-03-01T12:00:00Z",
            "maxAgeSeconds": 3600, "quotesValidFrom": null}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Update;
    type Response = Json<Price>;

    fn read(input: &Input, _: &Operator) -> Result<Update> {
        let new: NewPrice = strict::body(input)?;
        new.check()?;
        Ok(Update { pair: pair(input)?, new, detail: input.document.clone() })
    }

    async fn needs_approval(core: &Core, _: &Operator, update: &Update) -> Result<bool> {
        let known = sqlx::query_scalar!(
            r#"select exists (select from currency_pair where pair = $1) as "known!""#,
            update.pair.to_string(),
        );
        if !known.fetch_one(&core.db).await? {
            return Err(Denial::not_found("pair").into());
        }
        Ok(true)
    }

    async fn call(core: &Core, operator: Operator, update: Update) -> Result<Json<Price>> {
        let Update { pair, new, detail } = update;
        let code = pair.to_string();
        let mut tx = core.db.begin().await?;
        let set = new.write(&mut tx, pair).await?;
        publish(core, tx, &operator, "price.set", &code, detail).await?;
        Ok(Json(set))
    }
}

/// A price to set.
#[derive(Debug)]
pub struct Update {
    pair: PairCode,
    new: NewPrice,
    /// The body, for the audit.
    detail: Value,
}

/// A price that an operator sets.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::operate::admin) struct NewPrice {
    /// The mid price, above zero.
    pub(in crate::operate::admin) price: JsonDecimal,
    /// Age at which it is too old to quote, 1 to 31536000.
    pub(in crate::operate::admin) max_age_seconds: Option<i32>,
    /// Quotes sealed before are void; it can only be raised, and a time to come counts as now.
    quotes_valid_from: Option<DateTime<Utc>>,
}

impl NewPrice {
    /// Checks what one look at the members shows.
    ///
    /// # Errors
    /// 422 with the first member that is not valid.
    pub(in crate::operate::admin) fn check(&self) -> Result<()> {
        if self.price.0 <= Decimal::ZERO {
            return Err(Denial::unprocessable("price: above zero").into());
        }
        if self.max_age_seconds.is_some_and(|age| !(1..=MAX_AGE_SECONDS).contains(&age)) {
            let bounds = format!("maxAgeSeconds: 1 to {MAX_AGE_SECONDS}");
            return Err(Denial::unprocessable(bounds).into());
        }
        Ok(())
    }

    /// Sets the price of the pair.
    ///
    /// # Errors
    /// 404 without the pair.
    pub(in crate::operate::admin) async fn write(
        &self,
        conn: &mut Connection,
        pair: PairCode,
    ) -> Result<Price> {
        let code = pair.to_string();
        // Edges that read sources change prices under the same lock.
        let held = sqlx::query!(
            "select quotes_valid_from from currency_pair where pair = $1 for no key update",
            code,
        );
        let held =
            held.fetch_optional(&mut *conn).await?.ok_or_else(|| Denial::not_found("pair"))?;
        let set = sqlx::query!(
            "insert into price (pair, price, fixed, observed_at, max_age_seconds) \
             values ($1, $2, true, rampart_now(), $3) \
             on conflict (pair) do update \
             set price = excluded.price, fixed = true, observed_at = excluded.observed_at, \
                 max_age_seconds = excluded.max_age_seconds, deviating = null, \
                 deviating_since = null \
             returning observed_at",
            code,
            self.price.0,
            self.max_age_seconds,
        )
        .fetch_one(&mut *conn)
        .await?;
        let quotes_valid_from = match self.quotes_valid_from {
            Some(from) => Some(void_quotes(conn, pair, from).await?),
            None => held.quotes_valid_from,
        };
        Ok(Price {
            pair,
            price: self.price,
            observed_at: set.observed_at,
            max_age_seconds: self.max_age_seconds,
            quotes_valid_from,
        })
    }
}

/// The price of a pair.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Price {
    /// Both codes, such as `BTC-EUR`.
    pair: PairCode,
    /// The mid price.
    price: JsonDecimal,
    /// The time that its age counts from.
    observed_at: DateTime<Utc>,
    /// Age at which it is too old to quote, where that is not the pair's.
    max_age_seconds: Option<i32>,
    /// Quotes sealed before are void; null: none are.
    quotes_valid_from: Option<DateTime<Utc>>,
}

/// `GET /admin/v1/prices`
pub struct ListPrices;

impl Endpoint for ListPrices {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/prices";
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "List the prices",
        details: "The price of every pair with what its sources say. A pair whose `status` is not \
                  `open` is not quoted (ER008): it has no price, its price is `stale`, or \
                  `deviating` is so far from it that a second source or `PUT` must confirm it.",
        query: &[AFTER_PAIR, limit(PAIRS_MAX)],
        answer: r#"[{"pair": "BTC-EUR", "status": "deviating", "price": 51234.56, "fixed": false,
            "observedAt": "2026-03-01T12:00:00Z", "maxAgeSeconds": 120,
            "validUntil": "2026-03-01T12:02:00Z", "deviating": 62000,
            "quotesValidFrom": null,
            "sources": [{"source": "prices.example.com#9f86d081", "price": 62000,
                "observedAt": "2026-03-01T12:00:10Z", "readAt": "2026-03-01T12:00:11Z"}]}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Part;
    type Response = Page<ListedPrice>;

    fn read(input: &Input, _: &Operator) -> Result<Part> {
        Part::read(input, PAIRS_MAX)
    }

    async fn call(core: &Core, _: Operator, part: Part) -> Result<Page<ListedPrice>> {
        let rows = sqlx::query!(
            "select pair, source, price, observed_at, read_at from price_reading \
             order by pair, source"
        )
        .fetch_all(&core.db)
        .await?;
        let now = core.clock.now();
        let mut names = core.price_feed.as_ref().map(|feed| feed.names()).unwrap_or_default();
        let catalogue = Arc::clone(&core.snapshots.current().catalogue);
        let listed = catalogue.pairs.values().map(|pair| {
            let code = pair.code.to_string();
            let source = |source: String| {
                let said = rows.iter().find(|row| row.pair == code && row.source == source);
                SourcePrice {
                    price: said.map(|row| JsonDecimal(row.price)),
                    observed_at: said.map(|row| row.observed_at),
                    read_at: said.map(|row| row.read_at),
                    source,
                }
            };
            let sources = names.remove(&pair.code).unwrap_or_default();
            ListedPrice::new(pair, sources.into_iter().map(source).collect(), now)
        });
        part.of(listed.collect(), |listed| listed.pair.to_string())
    }
}

/// The price of a pair in the list.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedPrice {
    /// Both codes, such as `BTC-EUR`.
    pair: PairCode,
    status: PriceStatus,
    /// The mid price; null if there is none.
    price: Option<JsonDecimal>,
    /// True if an operator set it.
    fixed: bool,
    /// The time that its age counts from; null without a price.
    observed_at: Option<DateTime<Utc>>,
    /// Age at which it is too old to quote; null: it has no end.
    max_age_seconds: Option<u32>,
    /// The time from which it is too old to quote; null: it has no end, or there is no price.
    valid_until: Option<DateTime<Utc>>,
    /// Price that the sources say instead and that nobody has confirmed.
    deviating: Option<JsonDecimal>,
    /// Quotes sealed before are void; null: none are.
    quotes_valid_from: Option<DateTime<Utc>>,
    /// The configured sources.
    sources: Vec<SourcePrice>,
}

/// Reason that a price is quoted or not.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum PriceStatus {
    Open,
    Stale,
    Deviating,
    Missing,
}

/// The newest reading of a source; null where it never gave a price.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct SourcePrice {
    /// Its host, and a digest of URL and pointers.
    source: String,
    /// The price that it gave.
    price: Option<JsonDecimal>,
    /// By the source's clock.
    observed_at: Option<DateTime<Utc>>,
    /// When it was read, by the edge's clock.
    read_at: Option<DateTime<Utc>>,
}

impl ListedPrice {
    fn new(pair: &catalogue::Pair, sources: Vec<SourcePrice>, now: DateTime<Utc>) -> Self {
        let price = pair.price.as_ref();
        let status = match price {
            None => PriceStatus::Missing,
            Some(price) if price.deviating.is_some() => PriceStatus::Deviating,
            Some(price) if !price.is_fresh(now) => PriceStatus::Stale,
            Some(_) => PriceStatus::Open,
        };
        Self {
            pair: pair.code,
            status,
            price: price.map(|price| JsonDecimal(price.amount)),
            fixed: price.is_some_and(|price| price.fixed),
            observed_at: price.map(|price| price.observed_at),
            max_age_seconds: price.and_then(|price| price.max_age_seconds),
            valid_until: price.and_then(catalogue::Price::stale_at),
            deviating: price.and_then(|price| price.deviating).map(JsonDecimal),
            quotes_valid_from: pair.quotes_valid_from,
            sources,
        }
    }
}
