//! Limits of a user's trades, by day and by account (API document, user limits).
//!
//! The day is the last 24 hours. Cancelled and refunded orders do not count. Limits are in one
//! currency (`limits.currency`), in which an order counts at the rate of its confirm. Limits that were read
//! may have changed a moment later: a confirm checks again, inside its own statement, while it
//! holds the user ([`hold_traders`]).

pub mod limit_rules;
pub mod read;
pub mod upstream;

use std::collections::HashMap;

use chrono::TimeDelta;
use rust_decimal::{Decimal, RoundingStrategy};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use self::limit_rules::{Rules, Spent, Trade};
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::trading::catalogue::Catalogue;
use crate::trading::quotes::{Quote, Side};
use crate::users::account::Statuses;
use rampart_types::{CurrencyCode, JsonDecimal, OrderKey, UserKey, fiat_exponent};

/// The interval of day limits.
pub(crate) const INTERVAL: TimeDelta = TimeDelta::days(1);
/// The interval as an ISO 8601 duration.
pub(crate) const INTERVAL_TEXT: &str = "P1D";

/// A user as one who trades.
#[derive(Clone, Debug)]
pub struct Trader {
    /// Those of its level, with what an operator has set for it.
    pub rules: Rules,
    pub(crate) statuses: Statuses,
    pub(crate) disabled: bool,
    pub(crate) deleted: bool,
}

/// The columns that make a [`Trader`], and whose they are.
struct Row {
    client_id: Uuid,
    user_id: Uuid,
    overrides: Value,
    buy_limit: Decimal,
    sell_limit: Decimal,
    email: String,
    identity: String,
    amld5: String,
    privacy_agreement: String,
    residential_address: String,
    dac8: String,
    disabled: bool,
    deleted: bool,
}

/// A statement that reads traders; what follows its `where` and its arguments are the caller's.
macro_rules! select_traders {
    ($rest:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query_as!(
            Row,
            r#"
            select u.client_id as "client_id!", u.user_id as "user_id!",
                u.limit_overrides as "overrides!", l.buy_limit as "buy_limit!",
                l.sell_limit as "sell_limit!",
                u.email_status as "email!", u.identity_status as "identity!",
                u.amld5_status as "amld5!", u.privacy_agreement_status as "privacy_agreement!",
                u.residential_address_status as "residential_address!",
                u.dac8_status as "dac8!", u.disabled_at is not null as "disabled!",
                u.deleted_at is not null as "deleted!"
            from end_user u join verification_level l on l.identifier = u.level
            where "#
                + $rest,
            $($argument),+
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
            rules: Rules::new(self.buy_limit, self.sell_limit, set),
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
pub async fn trader(conn: &mut Connection, key: UserKey) -> Result<Option<Trader>> {
    let row =
        select_traders!("u.client_id = $1 and u.user_id = $2", key.client.uuid(), key.user.uuid(),)
            .fetch_optional(conn)
            .await?;
    Ok(row.map(Row::trader).transpose()?)
}

/// Bounds of one more trade, for the statement that makes it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Bounds {
    /// Most of its side in the last day, itself included.
    pub(crate) side_max: Decimal,
    /// Most of both sides in that time.
    pub(crate) day_max: Decimal,
}

impl Bounds {
    /// The bounds by these rules of a trade that is made now.
    pub(crate) fn new(rules: &Rules, side: Side) -> Self {
        Self { side_max: rules.for_side(side), day_max: rules.day }
    }
}

/// Locks users until the transaction ends, and reads the rules of those who may trade. Of confirms
/// that race, each sees the orders of those before it, if the statement that makes it comes after
/// this one.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn hold_traders(
    conn: &mut Connection,
    clients: &[Uuid],
    users: &[Uuid],
) -> Result<HashMap<(Uuid, Uuid), Rules>, sqlx::Error> {
    // In one order, so that two transactions never wait for each other.
    let rows = select_traders!(
        "(u.client_id, u.user_id) in (select * from unnest($1::uuid[], $2::uuid[])) \
             and u.deleted_at is null and u.disabled_at is null \
         order by u.client_id, u.user_id for no key update of u",
        clients,
        users,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(|row| Ok(((row.client_id, row.user_id), row.trader()?.rules))).collect()
}

/// True if the order's user, and the account that it names, may trade with this amount of fiat in place
/// of the order's own. Locks the user; of an order of nobody, if the partner lets guests order as much.
///
/// The order's row is locked already, and was not in progress. Of those who lock a user first, an erasure
/// alone locks such an order then: it is tried again when it loses to a deadlock, as whoever books is.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn have_room(
    conn: &mut Connection,
    key: OrderKey,
    side: Side,
    fiat: Decimal,
) -> Result<bool, sqlx::Error> {
    let order = sqlx::query!(
        r#"
        select user_id, account_id, fiat_amount as "fiat!", limit_amount as "limit!",
            created_at > trades_counted_since() as "is_counted!",
            (select guest_orders_max from client where client_id = $1) as "guest_max?"
        from (
            select user_id, account_id, fiat_amount,
                coalesce(limit_amount, fiat_amount) as limit_amount, created_at
            from buy_order where $3 = 'buy' and client_id = $1 and order_id = $2
            union all
            select user_id, account_id, fiat_amount, coalesce(limit_amount, fiat_amount), created_at
            from sell_order where $3 = 'sell' and client_id = $1 and order_id = $2
        ) as orders
        "#,
        key.client.uuid(),
        key.order.number(),
        side.as_str(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(order) = order else { return Ok(true) };
    let amount = order.limit.checked_mul(fiat).and_then(|all| all.checked_div(order.fiat));
    let Some(amount) = amount else { return Ok(false) };
    let Some(user) = order.user_id else {
        return Ok(order.guest_max.is_none_or(|max| amount <= max));
    };
    let client = key.client.uuid();
    let rules = hold_traders(conn, &[client], &[user]).await?;
    let Some(rules) = rules.get(&(client, user)) else { return Ok(false) };
    let more = if order.is_counted { amount - order.limit } else { amount };
    let Bounds { side_max, day_max } = Bounds::new(rules, side);
    sqlx::query_scalar!(
        r#"
        select day.fits and account.fits is not false as "fits!"
        from day_limits($1, $2, $3, $4, $5, $6, trades_counted_since()) day
            left join lateral account_limits($1, $2, $7, $4, trades_counted_since()) account on true
        "#,
        client,
        user,
        side.as_str(),
        more,
        side_max,
        day_max,
        order.account_id,
    )
    .fetch_one(conn)
    .await
}

/// The quote's amount of fiat in the currency of limits, as [`worth`]; `None` without a rate.
pub(crate) fn limit_amount(core: &Core, catalogue: &Catalogue, quote: &Quote) -> Option<Decimal> {
    worth(core, catalogue, quote.fiat, quote.fiat_currency())
}

/// An amount of a fiat currency in the currency of limits, at the rate of now, rounded up to its
/// smallest unit; `None` without a rate.
pub(crate) fn worth(
    core: &Core,
    catalogue: &Catalogue,
    fiat: Decimal,
    from: CurrencyCode,
) -> Option<Decimal> {
    let to = core.settings.limits.currency;
    let amount = catalogue.convert(fiat, from, to, core.clock.now())?;
    let exponent = fiat_exponent(to).unwrap_or(fiat.scale());
    Some(amount.round_dp_with_strategy(exponent, RoundingStrategy::AwayFromZero))
}

/// The user's trades of the last day by the database's time, in the currency of limits.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn spent(conn: &mut Connection, key: UserKey) -> Result<Spent> {
    let rows = sqlx::query!(
        r#"
        select side as "side!", payment_method as "method!", account_id,
            sum(limit_amount) as "amount!"
        from user_trade
        where client_id = $1 and user_id = $2 and created_at > trades_counted_since()
        group by side, payment_method, account_id
        "#,
        key.client.uuid(),
        key.user.uuid(),
    )
    .fetch_all(conn)
    .await?;
    let trades = rows.into_iter().map(|row| {
        Ok(Trade {
            side: Side::from_name(&row.side)
                .ok_or_else(|| Error::invariant("read a trade's side"))?,
            method: row.method,
            account: row.account_id,
            amount: row.amount,
        })
    });
    Ok(Spent::new(trades.collect::<Result<Vec<_>>>()?))
}

/// A user who trades, and what it has traded today.
pub(crate) struct Usage {
    pub(crate) trader: Trader,
    pub(crate) spent: Spent,
}

/// A user and how much of the limits is used: `None` when there is no such user any more.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn usage(core: &Core, key: UserKey) -> Result<Option<Usage>> {
    let mut conn = core.db.acquire().await?;
    let trader = trader(&mut conn, key).await?.filter(|trader| !trader.deleted);
    let Some(trader) = trader else { return Ok(None) };
    let spent = spent(&mut conn, key).await?;
    Ok(Some(Usage { trader, spent }))
}
