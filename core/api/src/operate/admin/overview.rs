//! `GET /admin/v1/overview`: the state of the service at a glance.

pub mod dependents;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use http::Method;
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

use super::operator::Operator;
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::platform::error::Result;
use crate::readiness::{Check, Status};
use crate::trading::orders::status::OrderStatus;
use rampart_types::JsonDecimal;

/// Most rows of a kind that are counted.
const COUNTED_MAX: i64 = 10_000;
/// Hours whose orders are counted.
const HOURS: i32 = 24;

/// `GET /admin/v1/overview`
pub struct ReadOverview;

impl Endpoint for ReadOverview {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/overview";
    const ROLES: &'static [Role] = Role::ALL;
    const MAY_BE_STALE: bool = true;
    const DOC: Doc = Doc {
        summary: "Read the state of the service at a glance",
        details: "Open orders, the orders of the last 24 hours with their volume and the quotes \
                  beside them, what waits for a person, and what this edge's checks find, of \
                  Postgres too. What waits is counted up to 10,000. Quotes are counted within some \
                  ten seconds, those of the matrix not.",
        answer: r#"{
            "open": [{"side": "buy", "status": "in progress", "count": 3,
                "oldest": 1234567890123456, "since": "2026-03-01T11:00:00Z"}],
            "hours": [{"hour": "2026-03-01T11:00:00Z", "orders": 12, "pending": 1,
                "inProgress": 0, "blocked": 0, "completed": 9, "cancelled": 2, "refunded": 0,
                "quotes": 40}],
            "volume": [{"currency": "EUR", "ordered": 1250.5, "completed": 900}],
            "waiting": {"payments": 2, "approvals": 1, "deliveries": 0},
            "problems": [{"name": "prices", "failed": false,
                "detail": "degraded: pairs are closed: LTC-EUR: 93 s old"}],
            "checks": [{"name": "database", "status": "ok", "detail": ""},
                {"name": "prices", "status": "degraded",
                "detail": "degraded: pairs are closed: LTC-EUR: 93 s old"}]
        }"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = ();
    type Response = Json<Overview>;

    fn read(_: &Input, _: &Operator) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, _: Operator, (): ()) -> Result<Json<Overview>> {
        let checks = core.readiness().await.checks;
        let problems = checks.iter().filter(|check| check.status != Status::Ok);
        let problems = problems.map(|check| Problem {
            name: check.name,
            failed: check.status == Status::Failed,
            detail: check.detail.clone().into_owned(),
        });
        let (hours, volume) = last_orders(core).await?;
        Ok(Json(Overview {
            open: open(core).await?,
            hours,
            volume,
            waiting: waiting(core).await?,
            problems: problems.collect(),
            checks: checks.into_iter().map(EdgeCheck::from).collect(),
        }))
    }
}

/// The state of the service.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Overview {
    /// Orders that are not final, by side and status.
    open: Vec<Open>,
    /// The last 24 hours, oldest first; those with neither an order nor a quote are left out.
    hours: Vec<Hour>,
    /// Fiat volume of the last 24 hours, by currency.
    volume: Vec<Volume>,
    waiting: Waiting,
    /// Checks that this edge does not pass.
    problems: Vec<Problem>,
    /// All its checks, as `/readyz` makes them.
    checks: Vec<EdgeCheck>,
}

/// Orders of one side that are in one status.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "OpenOrders")]
struct Open {
    /// `buy` or `sell`, seen from the user.
    side: String,
    /// The status.
    status: String,
    /// Their number.
    count: i64,
    /// The number of the one that has been in this status for longest.
    oldest: i64,
    /// Since when.
    since: DateTime<Utc>,
}

/// Orders and quotes by the hour in which they were made.
#[derive(Debug, Default, JsonSchema, Serialize)]
#[schemars(rename = "OrdersOfHour")]
#[serde(rename_all = "camelCase")]
struct Hour {
    /// Its beginning.
    hour: DateTime<Utc>,
    /// Orders that were made in the hour, of both sides.
    orders: i64,
    /// Orders of the hour that are pending now.
    pending: i64,
    /// Orders of the hour that are in progress now.
    in_progress: i64,
    /// Orders of the hour that are blocked now.
    blocked: i64,
    /// Orders of the hour that are completed by now.
    completed: i64,
    /// Orders of the hour that were cancelled.
    cancelled: i64,
    /// Orders of the hour that were refunded.
    refunded: i64,
    /// Quotes that were made in the hour, of both sides; of the oldest hour all of them.
    quotes: i64,
}

impl Hour {
    /// Counts orders of one status.
    fn count(&mut self, status: OrderStatus, orders: i64) {
        let of_status = match status {
            OrderStatus::Pending => &mut self.pending,
            OrderStatus::InProgress => &mut self.in_progress,
            OrderStatus::Blocked => &mut self.blocked,
            OrderStatus::Completed => &mut self.completed,
            OrderStatus::Cancelled => &mut self.cancelled,
            OrderStatus::Refunded => &mut self.refunded,
        };
        *of_status += orders;
        self.orders += orders;
    }
}

/// The volume of orders in one currency.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "OrderVolume")]
struct Volume {
    /// The fiat currency's code.
    currency: String,
    /// Sum of the fiat amounts of the orders that were made, of both sides.
    ordered: JsonDecimal,
    /// Fiat amount of the completed ones.
    completed: JsonDecimal,
}

/// Numbers of things that wait for a person.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "WaitingForOperators")]
struct Waiting {
    /// Payments without an order or in suspense, payouts that came back of orders that are over, and
    /// orders of which money is owed that nobody gives back.
    payments: i64,
    /// Calls that wait for a second person.
    approvals: i64,
    /// Deliveries that were given up.
    deliveries: i64,
}

/// A check of the edge that did not pass.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "EdgeProblem")]
struct Problem {
    /// `database`, `prices`, `books` and so on.
    name: &'static str,
    /// `true` if the edge does not serve as it should.
    failed: bool,
    /// The finding, in words.
    detail: String,
}

/// A check of the edge, passed or not.
#[derive(Debug, JsonSchema, Serialize)]
struct EdgeCheck {
    /// `database`, `pool`, `replicas`, `prices` and so on.
    name: &'static str,
    /// `ok`, `degraded` or `failed`.
    status: &'static str,
    /// Reason of a failure; empty if all is well.
    detail: String,
}

impl From<Check> for EdgeCheck {
    fn from(check: Check) -> Self {
        let status = match check.status {
            Status::Ok => "ok",
            Status::Degraded => "degraded",
            Status::Failed => "failed",
        };
        Self { name: check.name, status, detail: check.detail.into_owned() }
    }
}

async fn open(core: &Core) -> Result<Vec<Open>> {
    let open = sqlx::query_as!(
        Open,
        r#"
        with open as (
            (select 'buy' as side, status, order_id, updated_at from buy_order
             where status in ('in progress', 'blocked')
                 and status not in ('pending', 'completed', 'cancelled')
             order by status, created_at limit $1)
            union all
            (select 'buy', status, order_id, updated_at from (
                 (select status, order_id, updated_at from buy_order
                  where status = 'pending' and expires_at is null order by created_at limit $1)
                 union all
                 (select status, order_id, updated_at from buy_order
                  where status = 'pending' and expires_at is not null order by expires_at limit $1)
             ) pending limit $1)
            union all
            (select 'sell', status, order_id, updated_at from sell_order
             where status in ('pending', 'in progress', 'blocked')
                 and status not in ('completed', 'cancelled')
             order by status, created_at limit $1))
        select side as "side!", status as "status!", count(*) as "count!",
            (array_agg(order_id order by updated_at))[1] as "oldest!",
            min(updated_at) as "since!"
        from open group by side, status order by side, status
        "#,
        COUNTED_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(open)
}

/// The orders of the last hours with the quotes beside them, and the orders' volume: each hour's,
/// and each currency's.
async fn last_orders(core: &Core) -> Result<(Vec<Hour>, Vec<Volume>)> {
    let rows = sqlx::query!(
        r#"
        with made as (
            select created_at, fiat_currency, fiat_amount, status from buy_order
            where created_at > rampart_now() - make_interval(hours => $1::int)
            union all
            select created_at, fiat_currency, fiat_amount, status from sell_order
            where created_at > rampart_now() - make_interval(hours => $1::int))
        select date_trunc('hour', created_at, 'UTC') as "hour!", fiat_currency as "currency!",
            status as "status!: OrderStatus", count(*) as "orders!",
            sum(fiat_amount) as "amount!"
        from made group by 1, 2, 3
        "#,
        HOURS,
    )
    .fetch_all(&core.db)
    .await?;
    let (mut hours, mut volumes) = (last_quotes(core).await?, BTreeMap::new());
    for row in rows {
        let hour = hours.entry(row.hour).or_insert(Hour { hour: row.hour, ..Hour::default() });
        hour.count(row.status, row.orders);
        let sums = volumes.entry(row.currency).or_insert((Decimal::ZERO, Decimal::ZERO));
        sums.0 += row.amount;
        if row.status == OrderStatus::Completed {
            sums.1 += row.amount;
        }
    }
    let amount = |sum: Decimal| JsonDecimal(sum.normalize());
    let volumes = volumes.into_iter().map(|(currency, (ordered, completed))| Volume {
        currency,
        ordered: amount(ordered),
        completed: amount(completed),
    });
    Ok((hours.into_values().collect(), volumes.collect()))
}

/// The quotes of the hours that the last ones began in.
async fn last_quotes(core: &Core) -> Result<BTreeMap<DateTime<Utc>, Hour>> {
    let rows = sqlx::query!(
        r#"
        select hour, sum(quotes)::bigint as "quotes!" from quote_hour
        where hour > rampart_now() - make_interval(hours => $1::int + 1)
        group by hour
        "#,
        HOURS,
    )
    .fetch_all(&core.db)
    .await?;
    let hours = rows.into_iter().map(|row| {
        let (hour, quotes) = (row.hour, row.quotes);
        (hour, Hour { hour, quotes, ..Hour::default() })
    });
    Ok(hours.collect())
}

async fn waiting(core: &Core) -> Result<Waiting> {
    let waiting = sqlx::query_as!(
        Waiting,
        r#"
        select
            (select count(*) from (select from money_waiting() limit $1) money) as "payments!",
            (select count(*) from (select from approval where granted_by is null
                and refused_by is null and used_at is null and expires_at > now()
                limit $1) approvals) as "approvals!",
            (select count(*) from (select from delivery where state = 'failed'
                limit $1) deliveries) as "deliveries!"
        "#,
        COUNTED_MAX,
    )
    .fetch_one(&core.db)
    .await?;
    Ok(waiting)
}
