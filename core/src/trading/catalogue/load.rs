//! Loads the catalogue from Postgres.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{
    Catalogue, Crypto, Currency, Nationality, Pair, PairSide, PairStatus, PaymentMethod,
    PaymentMethodKind, Price,
};
use crate::platform::db::Pool;
use crate::platform::error::{Error, Result};
use rampart_types::{CurrencyCode, CurrencyDetails, PairCode, Preserialized};

impl Catalogue {
    /// Loads the current catalogue. `revision` was read before, so that a change between the two
    /// reads is loaded again rather than missed. Prices of a source are stale after
    /// `source_max_age_seconds`.
    ///
    /// # Errors
    /// When the database cannot be read or holds an invalid value.
    pub(crate) async fn load(
        db: &Pool,
        revision: i64,
        source_max_age_seconds: u32,
    ) -> Result<Self> {
        let currencies = currencies(db).await?;
        let mut by_caip19 = HashMap::new();
        for currency in currencies.values() {
            by_caip19.insert(currency.details.caip19.clone(), currency.code());
        }
        let preferences = sqlx::query!("select country, methods from payment_method_preference")
            .fetch_all(db)
            .await?;
        let regions = sqlx::query_scalar!("select region from supported_region order by position")
            .fetch_all(db)
            .await?;
        Ok(Self {
            revision,
            pairs: pairs(db, &currencies, source_max_age_seconds).await?,
            currencies,
            payment_methods: payment_methods(db).await?,
            preferences: preferences.into_iter().map(|row| (row.country, row.methods)).collect(),
            regions,
            nationalities: nationalities(db).await?,
            by_caip19,
        })
    }
}

fn invalid(what: &'static str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    tracing::error!(what, "the catalogue holds an invalid value");
    Error::internal("load the catalogue", error)
}

async fn currencies(db: &Pool) -> Result<BTreeMap<CurrencyCode, Arc<Currency>>> {
    let rows = sqlx::query!(
        "select code, kind, ticker, name, decimals, caip19, chain, chain_name, address_explorer, \
         transaction_explorer, supports_tag from currency"
    )
    .fetch_all(db)
    .await?;
    let mut currencies = BTreeMap::new();
    for row in rows {
        let code: CurrencyCode = row.code.parse().map_err(|e| invalid("currency code", e))?;
        let crypto = match &row.chain {
            None => None,
            Some(chain) => Some(Crypto {
                chain: chain.parse().map_err(|e| invalid("chain", e))?,
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
            caip19: row.caip19.parse().map_err(|e| invalid("CAIP-19 id", e))?,
        });
        let details = Arc::new(details.map_err(|e| invalid("currency", e))?);
        let decimals = u32::try_from(row.decimals).map_err(|e| invalid("decimals", e))?;
        currencies.insert(code, Arc::new(Currency { details, decimals, crypto }));
    }
    Ok(currencies)
}

async fn pairs(
    db: &Pool,
    currencies: &BTreeMap<CurrencyCode, Arc<Currency>>,
    source_max_age_seconds: u32,
) -> Result<BTreeMap<PairCode, Arc<Pair>>> {
    let rows = sqlx::query!(
        "select pair, base_currency, quote_currency, buy_status, buy_min, buy_max, sell_status, \
         sell_min, sell_max, spread_percentage, network_fee, provider_fee_percentage, \
         quote_lifetime_seconds, price_max_age_seconds from currency_pair"
    )
    .fetch_all(db)
    .await?;
    let prices =
        sqlx::query!("select pair, price, fixed, observed_at from price").fetch_all(db).await?;
    let mut prices: HashMap<_, _> = prices.into_iter().map(|row| (row.pair.clone(), row)).collect();
    let currency = |code: &str| -> Result<Arc<Currency>> {
        let code: CurrencyCode = code.parse().map_err(|e| invalid("currency code", e))?;
        currencies.get(&code).cloned().ok_or_else(|| Error::broken("find a pair's currency"))
    };
    let mut pairs = BTreeMap::new();
    for row in rows {
        let (base, quote) = (currency(&row.base_currency)?, currency(&row.quote_currency)?);
        let code = PairCode::new(base.code(), quote.code());
        let own_age = seconds(row.price_max_age_seconds)?;
        let price = prices.remove(&row.pair).map(|price| Price {
            amount: price.price,
            fixed: price.fixed,
            observed_at: price.observed_at,
            max_age_seconds: own_age.or((!price.fixed).then_some(source_max_age_seconds)),
        });
        let pair = Pair {
            code,
            base,
            quote,
            buy: PairSide {
                status: PairStatus::from_name(&row.buy_status),
                min: row.buy_min,
                max: row.buy_max,
            },
            sell: PairSide {
                status: PairStatus::from_name(&row.sell_status),
                min: row.sell_min,
                max: row.sell_max,
            },
            spread_percentage: row.spread_percentage,
            network_fee: row.network_fee,
            provider_fee_percentage: row.provider_fee_percentage,
            quote_lifetime_seconds: seconds(row.quote_lifetime_seconds)?,
            price,
        };
        pairs.insert(code, Arc::new(pair));
    }
    Ok(pairs)
}

fn seconds(value: Option<i32>) -> Result<Option<u32>> {
    value.map(u32::try_from).transpose().map_err(|e| invalid("seconds", e))
}

async fn payment_methods(db: &Pool) -> Result<Vec<Arc<PaymentMethod>>> {
    let rows = sqlx::query!(
        "select code, label, psp, kind, amount_limit, fee_fixed, fee_percentage, \
         expiration_period_seconds, open_in_new_tab, uses_estimated_quote, enabled, context \
         from payment_method order by position, code"
    )
    .fetch_all(db)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Arc::new(PaymentMethod {
                code: row.code,
                label: row.label,
                psp: row.psp,
                kind: PaymentMethodKind::from_name(&row.kind).unwrap_or(PaymentMethodKind::Other),
                limit: row.amount_limit,
                fee_fixed: row.fee_fixed,
                fee_percentage: row.fee_percentage,
                expiration_period_seconds: u32::try_from(row.expiration_period_seconds)
                    .map_err(|e| invalid("seconds", e))?,
                open_in_new_tab: row.open_in_new_tab,
                uses_estimated_quote: row.uses_estimated_quote,
                enabled: row.enabled,
                context: row.context,
            }))
        })
        .collect()
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
