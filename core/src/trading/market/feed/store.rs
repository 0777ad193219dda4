//! Stores readings, and the prices that follow from them.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

use super::PriceFeed;
use super::median::{Verdict, fresh, judge};
use super::source::Reading;
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::revision::catalogue_changed;

/// Time for which the reading of a source stays that is no longer read, in days.
const READING_DAYS: i32 = 30;

/// Pair and name of the sources that any edge has read since then.
pub(super) async fn read_since(
    core: &Core,
    since: DateTime<Utc>,
) -> Result<HashSet<(String, String)>> {
    let rows = sqlx::query!("select pair, source from price_reading where read_at > $1", since)
        .fetch_all(&core.db)
        .await?;
    Ok(rows.into_iter().map(|row| (row.pair, row.source)).collect())
}

/// Stores readings of one poll, and in the same transaction the prices of their pairs. Readings of a
/// pair that is not traded are left out.
pub(super) async fn store(
    core: &Core,
    feed: &PriceFeed,
    readings: Vec<Reading>,
    asked_at: DateTime<Utc>,
) -> Result<()> {
    if readings.is_empty() {
        return Ok(());
    }
    let pairs: BTreeSet<_> = readings.iter().map(|reading| reading.pair.to_string()).collect();
    let mut tx = core.db.begin().await?;
    let pairs = hold(&mut tx, &pairs.into_iter().collect::<Vec<_>>()).await?;
    insert(&mut tx, &pairs, &readings, asked_at).await?;
    let changed = judge_pairs(&mut tx, feed, &pairs).await?;
    if changed {
        catalogue_changed(&mut tx).await?;
    }
    tx.commit().await?;
    Ok(())
}

/// A pair whose price is decided now.
struct HeldPair {
    pair: String,
    max_age_seconds: Option<i32>,
    now: DateTime<Utc>,
}

/// Locks the pairs, in one order, so that edges and operators change their prices in turn.
async fn hold(conn: &mut Connection, pairs: &[String]) -> Result<Vec<HeldPair>, sqlx::Error> {
    sqlx::query_as!(
        HeldPair,
        r#"
        select pair, price_max_age_seconds as max_age_seconds, rampart_now() as "now!"
        from currency_pair where pair = any($1) order by pair for no key update
        "#,
        pairs,
    )
    .fetch_all(conn)
    .await
}

/// Writes the newest word of each source.
async fn insert(
    conn: &mut Connection,
    pairs: &[HeldPair],
    readings: &[Reading],
    asked_at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let (mut codes, mut sources) = (Vec::new(), Vec::new());
    let (mut prices, mut times) = (Vec::new(), Vec::new());
    for reading in readings {
        let code = reading.pair.to_string();
        if pairs.iter().any(|held| held.pair == code) {
            codes.push(code);
            sources.push(reading.source.clone());
            prices.push(reading.price);
            times.push(reading.observed_at);
        }
    }
    sqlx::query!(
        "with gone as ( \
             delete from price_reading where pair = any($1) \
                 and read_at < $5::timestamptz - make_interval(days => $6) \
                 and (pair, source) not in (select * from unnest($1::text[], $2::text[])) \
         ) \
         insert into price_reading as known (pair, source, price, observed_at, read_at) \
         select pair, source, price, observed_at, $5 \
         from unnest($1::text[], $2::text[], $3::numeric[], $4::timestamptz[]) \
             as said (pair, source, price, observed_at) \
         on conflict (pair, source) do update \
         set price = excluded.price, observed_at = excluded.observed_at, \
             read_at = excluded.read_at \
         where known.read_at < excluded.read_at and known.observed_at <= excluded.observed_at",
        &codes,
        &sources,
        &prices,
        &times,
        asked_at,
        READING_DAYS,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Writes the prices that follow from the readings of the configured sources. True if one changed.
async fn judge_pairs(
    conn: &mut Connection,
    feed: &PriceFeed,
    pairs: &[HeldPair],
) -> Result<bool, sqlx::Error> {
    let codes: Vec<_> = pairs.iter().map(|held| held.pair.clone()).collect();
    let last = sqlx::query!("select pair, price from price where pair = any($1)", &codes)
        .fetch_all(&mut *conn)
        .await?;
    let last: HashMap<_, _> = last.into_iter().map(|row| (row.pair, row.price)).collect();
    let said = sqlx::query!(
        "select pair, source, price, observed_at from price_reading where pair = any($1)",
        &codes,
    )
    .fetch_all(&mut *conn)
    .await?;
    let configured: HashSet<_> = feed.sources.iter().map(|source| source.key()).collect();
    let mut changed = false;
    for held in pairs {
        let max_age = held.max_age_seconds.and_then(|age| u32::try_from(age).ok());
        let max_age = max_age.unwrap_or(feed.rules.max_age_seconds);
        let counts = said.iter().filter(|row| {
            row.pair == held.pair && configured.contains(&(row.pair.clone(), row.source.clone()))
        });
        let readings = counts.map(|row| (row.price, row.observed_at));
        let readings = fresh(readings, max_age, held.now);
        changed |= match judge(last.get(&held.pair).copied(), &readings, &feed.rules) {
            Verdict::TooFew => false,
            Verdict::Price((price, observed_at)) => set(conn, held, price, observed_at).await?,
            Verdict::Deviates(price) => close(conn, held, price).await?,
        };
    }
    Ok(changed)
}

/// Sets the price of a pair, and opens it. False if it is what it was.
async fn set(
    conn: &mut Connection,
    held: &HeldPair,
    price: Decimal,
    observed_at: DateTime<Utc>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        "insert into price as known (pair, price, fixed, observed_at) \
         values ($1, $2, false, $3) \
         on conflict (pair) do update \
         set price = excluded.price, fixed = false, observed_at = excluded.observed_at, \
             max_age_seconds = null, deviating = null, deviating_since = null \
         where known.fixed or known.deviating is not null or known.price <> excluded.price \
             or known.observed_at <> excluded.observed_at",
        held.pair,
        price,
        observed_at,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Closes a pair whose sources say something else than its price. False if they said it before.
async fn close(
    conn: &mut Connection,
    held: &HeldPair,
    deviating: Decimal,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        "update price set deviating = $2, deviating_since = coalesce(deviating_since, $3) \
         where pair = $1 and deviating is distinct from $2",
        held.pair,
        deviating,
        held.now,
    )
    .execute(conn)
    .await?;
    let changed = done.rows_affected() > 0;
    if changed {
        tracing::warn!(pair = held.pair, %deviating, "a price deviates and closes its pair");
    }
    Ok(changed)
}
