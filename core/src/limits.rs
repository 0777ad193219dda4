//! The limit book: how much a user may still trade, by day and by account (API document, user
//! limits).
//!
//! The day is the last 24 hours. Orders that came to nothing do not count.

pub mod book;
pub mod read;

use chrono::{DateTime, TimeDelta, Utc};
use rust_decimal::Decimal;
use sqlx::PgConnection;

use self::book::{Rules, Spent};
use crate::Core;
use crate::error::{Error, Result};
use crate::types::{ClientId, CurrencyCode, JsonDecimal, UserId};

/// The span that limits are for.
pub(crate) const INTERVAL: TimeDelta = TimeDelta::days(1);
/// The same, as ISO 8601 writes it.
pub(crate) const INTERVAL_TEXT: &str = "P1D";

/// The rules for a user: those of its level, with what an operator has set for it.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn rules(
    conn: &mut PgConnection,
    client: ClientId,
    user: UserId,
) -> Result<Option<Rules>> {
    let row = sqlx::query!(
        r#"
        select u.limit_overrides as "overrides!", l.buy_limit as "buy_limit!",
            l.sell_limit as "sell_limit!", l.currency as "currency!: CurrencyCode"
        from end_user u join verification_level l on l.identifier = u.level
        where u.client_id = $1 and u.user_id = $2
        "#,
        client.uuid(),
        user.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let set =
        serde_json::from_value::<std::collections::BTreeMap<String, JsonDecimal>>(row.overrides)
            .map_err(|error| Error::internal("read a user's limits", error))?;
    let set = |name: &str| set.get(name).map(|amount| amount.0);
    Ok(Some(Rules::new(row.currency, (row.buy_limit, row.sell_limit), set)))
}

/// What the user has spent since then, by payment method.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn spent(
    conn: &mut PgConnection,
    client: ClientId,
    user: UserId,
    since: DateTime<Utc>,
) -> Result<Spent> {
    let rows = sqlx::query!(
        r#"
        select payment_method, sum(fiat_amount) as "amount!" from buy_order
        where client_id = $1 and user_id = $2 and created_at > $3
            and status not in ('cancelled', 'refunded')
        group by payment_method
        "#,
        client.uuid(),
        user.uuid(),
        since,
    )
    .fetch_all(conn)
    .await?;
    Ok(Spent::new(rows.into_iter().map(|row| (row.payment_method, row.amount))))
}

/// How much the user may still buy for now; `None` when there is no such user.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn left_to_buy(
    core: &Core,
    client: ClientId,
    user: UserId,
) -> Result<Option<Decimal>> {
    let mut conn = core.db.acquire().await?;
    let Some(rules) = rules(&mut conn, client, user).await? else { return Ok(None) };
    let spent = spent(&mut conn, client, user, core.clock.now() - INTERVAL).await?;
    Ok(Some(rules.left_to_buy(&spent)))
}
