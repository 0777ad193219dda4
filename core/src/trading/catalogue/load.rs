//! Loads the catalogue from Postgres.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sqlx::PgExecutor;

use super::maintenance::InMaintenance;
use super::{
    Catalogue, Crypto, Currency, Direction, Nationality, Pair, PairSide, PairStatus, PaymentMethod,
    PaymentMethodKind, Price, Route, Routes,
};
use crate::http::language::Language;
use crate::platform::db::{BrokenRow, Pool, Readable, readable};
use crate::platform::error::{Error, Result};
use crate::platform::settings;
use rampart_types::{CurrencyCode, CurrencyDetails, PairCode, Preserialized};

impl Catalogue {
    /// Loads the current catalogue. `revision` was read before, so that a change between the two
    /// reads is loaded again rather than missed. `sourced` tells after how long prices of sources are
    /// stale.
    /// Rows that cannot be read are left out, and pairs of a currency that is.
    pub(crate) async fn load(db: &Pool, revision: i64, sourced: &settings::Prices) -> Result<Self> {
        let mut broken = Vec::new();
        let currencies = currencies(db, &mut broken).await?;
        let mut by_caip19 = HashMap::new();
        for currency in currencies.values() {
            by_caip19.insert(currency.details.caip19.clone(), currency.code());
        }
        let regions = sqlx::query_scalar!("select region from supported_region order by position")
            .fetch_all(db)
            .await?;
        let mut prices = prices(db, sourced, &mut broken).await?;
        let closed = InMaintenance::load(db).await?;
        Ok(Self {
            revision,
            pairs: pairs(db, &currencies, &mut prices, &closed, &mut broken).await?,
            currencies,
            payment_methods: payment_methods(db, &closed, &mut broken).await?,
            preferences: preferences(db, &mut broken).await?,
            routes: routes(db).await?,
            page_regions: Language::page_regions(&regions),
            regions,
            nationalities: nationalities(db).await?,
            by_caip19,
            broken,
        })
    }
}

/// The rows that could be read; the others are noted.
fn of_market<R>(
    table: &'static str,
    read: Readable<String, R>,
    broken: &mut Vec<BrokenRow>,
) -> Vec<R> {
    let noted = read.broken.iter();
    broken.extend(noted.map(|(key, reason)| BrokenRow::of_market(table, key, reason)));
    read.rows
}

async fn currencies(
    db: &Pool,
    broken: &mut Vec<BrokenRow>,
) -> Result<BTreeMap<CurrencyCode, Arc<Currency>>> {
    let rows = sqlx::query!(
        "select code, kind, ticker, name, decimals, caip19, chain, chain_name, address_explorer, \
         transaction_explorer, supports_tag from currency"
    )
    .fetch_all(db)
    .await?;
    let mut currencies = BTreeMap::new();
    for row in rows {
        let key = row.code.clone();
        let read = move || -> Result<Currency> {
            let code = row.code.parse().map_err(|e| Error::internal("read a currency code", e))?;
            let crypto = match &row.chain {
                None => None,
                Some(chain) => Some(Crypto {
                    chain: chain.parse().map_err(|e| Error::internal("read a chain", e))?,
                    chain_name: row.chain_name,
                    supports_tag: row.supports_tag,
                    address_explorer: row.address_explorer,
                    transaction_explorer: row.transaction_explorer,
                }),
            };
            let details = Preserialized::new(CurrencyDetails {
                code,
                ticker: row.ticker.into(),
                name: row.name.into(),
                caip19: row.caip19.parse().map_err(|e| Error::internal("read a CAIP-19 id", e))?,
            });
            let details = Arc::new(details.map_err(|e| Error::internal("write a currency", e))?);
            let decimals =
                u32::try_from(row.decimals).map_err(|e| Error::internal("read decimals", e))?;
            Ok(Currency { details, decimals, crypto })
        };
        match read() {
            Ok(currency) => drop(currencies.insert(currency.code(), Arc::new(currency))),
            Err(error) => broken.push(BrokenRow::of_market("currency", &key, &error)),
        }
    }
    Ok(currencies)
}

/// A price, and whether its own time or the edge's ends it.
struct Loaded {
    price: Price,
    has_own_age: bool,
}

/// The price of each pair that has one. One set by hand with a time of its own is stale after that,
/// else it is after the pair's time, or else after that of the edge where the pair has sources.
async fn prices(
    db: &Pool,
    sourced: &settings::Prices,
    broken: &mut Vec<BrokenRow>,
) -> Result<HashMap<String, Loaded>> {
    let keys = sqlx::query_scalar!("select pair from price").fetch_all(db);
    let read = |part: Option<Vec<String>>| async move {
        sqlx::query!(
            "select pair, price, fixed, observed_at, max_age_seconds, deviating from price \
             where $1::text[] is null or pair = any($1)",
            part.as_deref(),
        )
        .fetch_all(db)
        .await
    };
    let rows = of_market("price", readable(read, keys).await?, broken);
    let loaded = rows.into_iter().map(|row| {
        let ends = !row.fixed || sourced.has_sources(&row.pair);
        let own_age = seconds(row.max_age_seconds);
        let price = Price {
            amount: row.price,
            fixed: row.fixed,
            observed_at: row.observed_at,
            max_age_seconds: own_age.or(ends.then_some(sourced.max_age_seconds)),
            deviating: row.deviating,
        };
        (row.pair, Loaded { price, has_own_age: own_age.is_some() })
    });
    Ok(loaded.collect())
}

async fn pairs(
    db: &Pool,
    currencies: &BTreeMap<CurrencyCode, Arc<Currency>>,
    prices: &mut HashMap<String, Loaded>,
    closed: &InMaintenance,
    broken: &mut Vec<BrokenRow>,
) -> Result<BTreeMap<PairCode, Arc<Pair>>> {
    let keys = sqlx::query_scalar!("select pair from currency_pair").fetch_all(db);
    let read = |part: Option<Vec<String>>| async move {
        sqlx::query!(
            "select pair, base_currency, quote_currency, buy_status, buy_min, buy_max, \
             sell_status, sell_min, sell_max, spread_percentage, network_fee, \
             provider_fee_percentage, quote_lifetime_seconds, price_max_age_seconds, \
             quotes_valid_from from currency_pair where $1::text[] is null or pair = any($1)",
            part.as_deref(),
        )
        .fetch_all(db)
        .await
    };
    let mut pairs = BTreeMap::new();
    for row in of_market("currency_pair", readable(read, keys).await?, broken) {
        // One that is missing was left out itself.
        let currency = |code: &str| currencies.get(&code.parse().ok()?).cloned();
        let sides = currency(&row.base_currency).zip(currency(&row.quote_currency));
        let Some((base, quote)) = sides else { continue };
        let code = PairCode::new(base.code(), quote.code());
        let pair_age = seconds(row.price_max_age_seconds);
        let price = prices.remove(&row.pair).map(|Loaded { price, has_own_age }| {
            let max_age_seconds = pair_age.filter(|_| !has_own_age).or(price.max_age_seconds);
            Price { max_age_seconds, ..price }
        });
        let status = |own: &str| closed.status(&row.pair, PairStatus::from_name(own));
        let pair = Pair {
            code,
            base,
            quote,
            buy: PairSide { status: status(&row.buy_status), min: row.buy_min, max: row.buy_max },
            sell: PairSide {
                status: status(&row.sell_status),
                min: row.sell_min,
                max: row.sell_max,
            },
            spread_percentage: row.spread_percentage,
            network_fee: row.network_fee,
            provider_fee_percentage: row.provider_fee_percentage,
            quote_lifetime_seconds: seconds(row.quote_lifetime_seconds),
            price,
            quotes_valid_from: row.quotes_valid_from,
        };
        pairs.insert(code, Arc::new(pair));
    }
    Ok(pairs)
}

/// Seconds that are more than none, which the table checks.
pub(super) fn seconds(value: Option<i32>) -> Option<u32> {
    value.and_then(|value| u32::try_from(value).ok())
}

async fn payment_methods(
    db: &Pool,
    closed: &InMaintenance,
    broken: &mut Vec<BrokenRow>,
) -> Result<Vec<Arc<PaymentMethod>>> {
    let keys = sqlx::query_scalar!("select code from payment_method order by position, code");
    let read = |part: Option<Vec<String>>| async move {
        sqlx::query!(
            "select code, label, psp, kind, amount_limit, fee_fixed, fee_percentage, \
             expiration_period_seconds, open_in_new_tab, uses_estimated_quote, enabled, context \
             from payment_method where $1::text[] is null or code = any($1) \
             order by position, code",
            part.as_deref(),
        )
        .fetch_all(db)
        .await
    };
    let read = readable(read, keys.fetch_all(db)).await?;
    let rows = of_market("payment_method", read, broken).into_iter();
    let methods = rows.map(|row| {
        Arc::new(PaymentMethod {
            enabled: row.enabled && !closed.has_method(&row.code),
            code: row.code,
            label: row.label,
            psp: row.psp,
            kind: PaymentMethodKind::from_name(&row.kind).unwrap_or(PaymentMethodKind::Other),
            limit: row.amount_limit,
            fee_fixed: row.fee_fixed,
            fee_percentage: row.fee_percentage,
            // Which the table checks.
            expiration_period_seconds: row.expiration_period_seconds.unsigned_abs(),
            open_in_new_tab: row.open_in_new_tab,
            uses_estimated_quote: row.uses_estimated_quote,
            context: row.context,
        })
    });
    Ok(methods.collect())
}

async fn preferences(
    db: &Pool,
    broken: &mut Vec<BrokenRow>,
) -> Result<HashMap<String, Vec<String>>> {
    let keys = sqlx::query_scalar!("select country from payment_method_preference").fetch_all(db);
    let read = |part: Option<Vec<String>>| async move {
        sqlx::query!(
            "select country, methods from payment_method_preference \
             where $1::text[] is null or country = any($1)",
            part.as_deref(),
        )
        .fetch_all(db)
        .await
    };
    let rows = of_market("payment_method_preference", readable(read, keys).await?, broken);
    Ok(rows.into_iter().map(|row| (row.country, row.methods)).collect())
}

pub(super) async fn routes(executor: impl PgExecutor<'_>) -> Result<Routes> {
    let rows = sqlx::query!(
        "select partner, payment_method, asset, direction, connector from route order by position"
    )
    .fetch_all(executor)
    .await?;
    let routes = rows.into_iter().map(|row| {
        let direction = Direction::from_name(&row.direction)
            .ok_or_else(|| Error::invariant("read the direction of a route"))?;
        let (partner, method) = (row.partner, row.payment_method);
        Ok(Route { partner, method, asset: row.asset, direction, connector: row.connector })
    });
    routes.collect()
}

async fn nationalities(db: &Pool) -> Result<Vec<Nationality>> {
    let rows = sqlx::query_as!(
        Nationality,
        "select name, code, id_selfie_required from nationality order by code"
    )
    .fetch_all(db)
    .await?;
    Ok(rows)
}
