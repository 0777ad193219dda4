//! The limit book: how much a user may still trade, by day and by account (API document, user
//! limits).
//!
//! The day is the last 24 hours. Orders that came to nothing do not count. What is read here may
//! have changed a moment later: a confirm decides once more, inside its own statement, while it
//! holds the user ([`hold`]).

pub mod book;
pub mod read;
pub mod upstream;

use chrono::{DateTime, TimeDelta, Utc};
use rust_decimal::Decimal;
use serde_json::Value;
use sqlx::PgConnection;

use self::book::{Rules, Spent, Trade};
use crate::Core;
use crate::platform::error::Result;
use crate::trading::quotes::Side;
use crate::users::account::Statuses;
use rampart_types::{ClientId, CurrencyCode, JsonDecimal, UserId};

/// The span that limits are for.
pub(crate) const INTERVAL: TimeDelta = TimeDelta::days(1);
/// The same, as ISO 8601 writes it.
pub(crate) const INTERVAL_TEXT: &str = "P1D";

/// A user as one who trades.
#[derive(Clone, Debug)]
pub(crate) struct Trader {
    /// Those of its level, with what an operator has set for it.
    pub(crate) rules: Rules,
    pub(crate) statuses: Statuses,
    pub(crate) disabled: bool,
    pub(crate) deleted: bool,
}

/// The columns that make a [`Trader`].
struct Row {
    overrides: Value,
    buy_limit: Decimal,
    sell_limit: Decimal,
    currency: CurrencyCode,
    email: String,
    identity: String,
    amld5: String,
    privacy_agreement: String,
    residential_address: String,
    dac8: String,
    disabled: bool,
    deleted: bool,
}

/// A statement that reads a trader; what follows its `where` is the caller's.
macro_rules! select_trader {
    ($rest:literal, $client:expr, $user:expr) => {
        sqlx::query_as!(
            Row,
            r#"
            select u.limit_overrides as "overrides!", l.buy_limit as "buy_limit!",
                l.sell_limit as "sell_limit!", l.currency as "currency!: CurrencyCode",
                u.email_status as "email!", u.identity_status as "identity!",
                u.amld5_status as "amld5!", u.privacy_agreement_status as "privacy_agreement!",
                u.residential_address_status as "residential_address!",
                u.dac8_status as "dac8!", u.disabled_at is not null as "disabled!",
                u.deleted_at is not null as "deleted!"
            from end_user u join verification_level l on l.identifier = u.level
            where u.client_id = $1 and u.user_id = $2 "#
                + $rest,
            $client.uuid(),
            $user.uuid(),
        )
    };
}

impl Row {
    fn trader(self) -> Result<Trader, sqlx::Error> {
        let set: std::collections::BTreeMap<String, JsonDecimal> =
            serde_json::from_value(self.overrides)
                .map_err(|error| sqlx::Error::Decode(error.into()))?;
        let set = |name: &str| set.get(name).map(|amount| amount.0);
        Ok(Trader {
            rules: Rules::new(self.currency, (self.buy_limit, self.sell_limit), set),
            statuses: Statuses {
                email: self.email,
                identity: self.identity,
                amld5: self.amld5,
                privacy_agreement: self.privacy_agreement,
                residential_address: self.residential_address,
                dac8: self.dac8,
            },
            disabled: self.disabled,
            deleted: self.deleted,
        })
    }
}

/// The user, the deleted one too.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn trader(
    conn: &mut PgConnection,
    client: ClientId,
    user: UserId,
) -> Result<Option<Trader>> {
    let row = select_trader!("", client, user).fetch_optional(conn).await?;
    Ok(row.map(Row::trader).transpose()?)
}

/// What one more trade must keep to, for the statement that makes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Most of its side since `since`, itself included.
    pub(crate) side: Decimal,
    /// Most of both sides since then.
    pub(crate) day: Decimal,
    pub(crate) since: DateTime<Utc>,
}

/// Holds the user until the transaction ends: of confirms that race, each sees the orders of those
/// before it. `None` when there is no such user who may trade.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn hold(
    conn: &mut PgConnection,
    (client, user): (ClientId, UserId),
    side: Side,
    now: DateTime<Utc>,
) -> Result<Option<Bounds>, sqlx::Error> {
    let row = select_trader!(
        "and u.deleted_at is null and u.disabled_at is null for no key update of u",
        client,
        user
    )
    .fetch_optional(conn)
    .await?;
    let Some(trader) = row.map(Row::trader).transpose()? else { return Ok(None) };
    let rules = trader.rules;
    Ok(Some(Bounds { side: rules.of(side), day: rules.day, since: now - INTERVAL }))
}

/// What the user has traded since then.
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
        select side as "side!", payment_method as "method!", account_id,
            sum(fiat_amount) as "amount!"
        from user_trade where client_id = $1 and user_id = $2 and created_at > $3
        group by side, payment_method, account_id
        "#,
        client.uuid(),
        user.uuid(),
        since,
    )
    .fetch_all(conn)
    .await?;
    Ok(Spent::new(rows.into_iter().map(|row| Trade {
        side: if row.side == "buy" { Side::Buy } else { Side::Sell },
        method: row.method,
        account: row.account_id,
        amount: row.amount,
    })))
}

/// A user before a trade: `None` when there is none any more.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn standing(
    core: &Core,
    client: ClientId,
    user: UserId,
) -> Result<Option<(Trader, Spent)>> {
    let mut conn = core.db.acquire().await?;
    let trader = trader(&mut conn, client, user).await?.filter(|trader| !trader.deleted);
    let Some(trader) = trader else { return Ok(None) };
    let spent = spent(&mut conn, client, user, core.clock.now() - INTERVAL).await?;
    Ok(Some((trader, spent)))
}
