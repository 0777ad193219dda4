//! The market: `PUT /admin/v1/prices/{pair}`, `PATCH /admin/v1/pairs/{pair}` and
//! `PATCH /admin/v1/payment-methods/{code}`. Every edge follows within a second.

use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::{Value, json};
use sqlx::{PgConnection, Postgres, Transaction};

use super::{Answer, Input, Refused, ok};
use crate::Core;
use crate::platform::audit::{self, Entry};
use crate::platform::revision;
use rampart_types::{JsonDecimal, PairCode};

/// Longest label of a payment method, in characters.
const LABEL_CHARS_MAX: usize = 255;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetPrice {
    price: JsonDecimal,
}

/// Sets a pair's mid price. A price set here does not age, unless the pair says so.
pub(super) async fn set_price(core: &Arc<Core>, input: Input) -> Answer {
    let SetPrice { price: JsonDecimal(price) } = input.json()?;
    if price <= Decimal::ZERO {
        return Err(Refused::unprocessable("price: above zero"));
    }
    let pair = pair(&input)?;
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    sqlx::query!(
        "insert into price (pair, price, fixed, observed_at) values ($1, $2, true, $3) \
         on conflict (pair) do update set price = $2, fixed = true, observed_at = $3",
        pair.to_string(),
        price,
        now,
    )
    .execute(&mut *tx)
    .await
    .map_err(|error| {
        match error.as_database_error().is_some_and(|e| e.is_foreign_key_violation()) {
            true => Refused::not_found("pair"),
            false => error.into(),
        }
    })?;
    let entry = Entry {
        actor: input.actor(),
        action: "price.set",
        target: &pair.to_string(),
        detail: json!({"price": JsonDecimal(price)}),
    };
    publish(core, tx, entry).await?;
    ok(&json!({"pair": pair, "price": JsonDecimal(price), "observedAt": now}))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct ChangePair {
    buy: ChangeSide,
    sell: ChangeSide,
    spread_percentage: Option<JsonDecimal>,
    network_fee: Option<JsonDecimal>,
    quote_lifetime_seconds: Option<i32>,
    price_max_age_seconds: Option<i32>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ChangeSide {
    status: Option<String>,
    min: Option<JsonDecimal>,
    max: Option<JsonDecimal>,
}

/// Changes what is named of a pair; the rest stays. Bounds are checked by the table.
pub(super) async fn change_pair(core: &Arc<Core>, input: Input) -> Answer {
    let change: ChangePair = input.json()?;
    let pair = pair(&input)?;
    let decimal = |value: Option<JsonDecimal>| value.map(|JsonDecimal(value)| value);
    let mut tx = core.db.begin().await?;
    let row = sqlx::query!(
        r#"
        update currency_pair set
            buy_status = coalesce($2, buy_status), buy_min = coalesce($3, buy_min),
            buy_max = coalesce($4, buy_max),
            sell_status = coalesce($5, sell_status), sell_min = coalesce($6, sell_min),
            sell_max = coalesce($7, sell_max),
            spread_percentage = coalesce($8, spread_percentage),
            network_fee = coalesce($9, network_fee),
            quote_lifetime_seconds = coalesce($10, quote_lifetime_seconds),
            price_max_age_seconds = coalesce($11, price_max_age_seconds)
        where pair = $1
        returning *
        "#,
        pair.to_string(),
        change.buy.status,
        decimal(change.buy.min),
        decimal(change.buy.max),
        change.sell.status,
        decimal(change.sell.min),
        decimal(change.sell.max),
        decimal(change.spread_percentage),
        decimal(change.network_fee),
        change.quote_lifetime_seconds,
        change.price_max_age_seconds,
    )
    .fetch_optional(&mut *tx)
    .await
    .map_err(outside_bounds)?
    .ok_or_else(|| Refused::not_found("pair"))?;
    let entry = Entry {
        actor: input.actor(),
        action: "pair.change",
        target: &row.pair,
        detail: input.json()?,
    };
    publish(core, tx, entry).await?;
    let side = |status: String, min, max| json!({"status": status, "min": JsonDecimal(min), "max": JsonDecimal(max)});
    ok(&json!({
        "pair": row.pair,
        "buy": side(row.buy_status, row.buy_min, row.buy_max),
        "sell": side(row.sell_status, row.sell_min, row.sell_max),
        "spreadPercentage": JsonDecimal(row.spread_percentage),
        "networkFee": JsonDecimal(row.network_fee),
        "quoteLifetimeSeconds": row.quote_lifetime_seconds,
        "priceMaxAgeSeconds": row.price_max_age_seconds,
    }))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct ChangeMethod {
    enabled: Option<bool>,
    label: Option<String>,
    limit: Option<JsonDecimal>,
    fees: ChangeFees,
    expiration_period: Option<i32>,
    uses_estimated_quote: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ChangeFees {
    fixed: Option<JsonDecimal>,
    percentage: Option<JsonDecimal>,
}

/// Changes what is named of a payment method; the rest stays.
pub(super) async fn change_method(core: &Arc<Core>, input: Input) -> Answer {
    let change: ChangeMethod = input.json()?;
    let label_chars = change.label.as_ref().map_or(1, |label| label.trim().chars().count());
    if !(1..=LABEL_CHARS_MAX).contains(&label_chars) {
        return Err(Refused::unprocessable("label: 1 to 255 characters"));
    }
    let decimal = |value: Option<JsonDecimal>| value.map(|JsonDecimal(value)| value);
    let mut tx = core.db.begin().await?;
    let row = sqlx::query!(
        r#"
        update payment_method set
            enabled = coalesce($2, enabled), label = coalesce($3, label),
            amount_limit = coalesce($4, amount_limit), fee_fixed = coalesce($5, fee_fixed),
            fee_percentage = coalesce($6, fee_percentage),
            expiration_period_seconds = coalesce($7, expiration_period_seconds),
            uses_estimated_quote = coalesce($8, uses_estimated_quote)
        where code = $1
        returning *
        "#,
        input.param("code"),
        change.enabled,
        change.label,
        decimal(change.limit),
        decimal(change.fees.fixed),
        decimal(change.fees.percentage),
        change.expiration_period,
        change.uses_estimated_quote,
    )
    .fetch_optional(&mut *tx)
    .await
    .map_err(outside_bounds)?
    .ok_or_else(|| Refused::not_found("payment method"))?;
    let entry = Entry {
        actor: input.actor(),
        action: "payment-method.change",
        target: &row.code,
        detail: input.json()?,
    };
    publish(core, tx, entry).await?;
    ok(&json!({
        "code": row.code,
        "enabled": row.enabled,
        "label": row.label,
        "limit": JsonDecimal(row.amount_limit),
        "fees": {
            "fixed": JsonDecimal(row.fee_fixed),
            "percentage": JsonDecimal(row.fee_percentage),
        },
        "expirationPeriod": row.expiration_period_seconds,
        "usesEstimatedQuote": row.uses_estimated_quote,
    }))
}

/// The pair of the path; one that cannot be a pair is one that does not exist.
fn pair(input: &Input) -> Result<PairCode, Refused> {
    input.param("pair").parse().map_err(|_| Refused::not_found("pair"))
}

/// A value that the table's checks refuse, named by what its constraint is about.
fn outside_bounds(error: sqlx::Error) -> Refused {
    match error.as_database_error() {
        Some(db) if db.is_check_violation() => {
            let constraint = db.constraint().unwrap_or_default();
            let about = constraint
                .trim_start_matches("currency_pair_")
                .trim_start_matches("payment_method_")
                .trim_end_matches("check");
            match about.trim_end_matches('_').replace('_', " ").as_str() {
                "" => Refused::unprocessable("out of bounds: min is above max"),
                member => Refused::unprocessable(format!("out of bounds: {member}")),
            }
        }
        _ => error.into(),
    }
}

/// Commits a change of the catalogue with its audit row, and serves it.
async fn publish(
    core: &Core,
    mut tx: Transaction<'_, Postgres>,
    entry: Entry<'_>,
) -> Result<(), Refused> {
    let conn: &mut PgConnection = &mut tx;
    revision::catalogue_changed(conn).await?;
    audit::record(conn, &core.clock, entry).await?;
    tx.commit().await?;
    core.refresh().await?;
    Ok(())
}

/// What operators see of the whole market, for the commands that list it.
pub(super) async fn list(core: &Arc<Core>, _: Input) -> Answer {
    let catalogue = Arc::clone(&core.snapshots.current().catalogue);
    let pairs: Vec<Value> = catalogue
        .pairs
        .values()
        .map(|pair| {
            let price = pair.price.as_ref().map(|price| JsonDecimal(price.amount));
            json!({"pair": pair.code, "price": price, "buy": pair.buy.status,
                "sell": pair.sell.status})
        })
        .collect();
    ok(&pairs)
}
