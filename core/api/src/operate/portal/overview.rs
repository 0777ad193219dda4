//! `GET /portal`: the partner's use of the last days, its rate limits, and what needs somebody.

use http::Method;
use maud::{Markup, html};

use super::page::{StaffPage, Visit};
use crate::http::html::components::{Column, Tone, badge, note, stat, table};
use crate::http::reply::Reply;
use crate::platform::counted::counted;
use crate::platform::error::Result;
use crate::platform::rate_limit::Quota;
use crate::platform::shared_rates::SharedGcra;

/// Days whose orders are counted.
const DAYS: i32 = 30;
/// Most orders, sales and deliveries that are counted.
const COUNTED_MAX: i64 = 10_000;

/// Shows the overview.
pub struct Show;

impl StaffPage for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/portal";

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let usage = Usage::load(visit).await?;
        let tenant = &visit.session.client.tenant;
        let mode = if tenant.is_test() { "Test" } else { "Live" };
        let body = html! {
            p {
                (badge(if tenant.is_test() { Tone::Info } else { Tone::Good }, mode)) " "
                (tenant.name) span.hint { " (" (tenant.slug) ")" }
            }
            @if usage.switched_off > 0 {
                (note(Tone::Bad, &html! {
                    (counted(usage.switched_off, "webhook endpoint is", "webhook endpoints are"))
                    " switched off: nothing is sent there."
                }))
            }
            @if usage.failing > 0 {
                (note(Tone::Warning, &html! {
                    (counted(usage.failing, "webhook endpoint has", "webhook endpoints have"))
                    " not answered with 2xx lately."
                }))
            }
            h2 { "Orders of the last " (DAYS) " days" }
            div.stats {
                (stat("Confirmed", &bounded(usage.orders), None))
                (stat("Completed", &usage.completed.to_string(), usage.of_newest()))
                (stat("Open", &usage.open.to_string(), Some(usage.meaning_of_open())))
                (stat("Sales", &bounded(usage.sales), None))
            }
            h2 { "Credentials and events" }
            div.stats {
                (stat("Live API keys", &tenant.api_keys.len().to_string(), None))
                (stat("Webhook endpoints", &usage.endpoints.to_string(), None))
                (stat("Waiting deliveries", &bounded(usage.waiting), None))
            }
            h2 { "Rate limits" }
            (rates(visit))
        };
        Ok(visit.page("/portal", "Overview", &body))
    }
}

/// A figure that is counted up to [`COUNTED_MAX`].
fn bounded(count: i64) -> String {
    if count < COUNTED_MAX { count.to_string() } else { "10,000 or more".to_owned() }
}

/// Limits of requests, and what is left of them at this edge.
fn rates(visit: &Visit<'_>) -> Markup {
    let tenant = &visit.session.client.tenant;
    let (rates, buckets) = (&tenant.rates, &tenant.buckets);
    let now = visit.core.clock.monotonic_ns();
    let left = |quota: Quota, bucket: &SharedGcra| {
        html! { (visit.core.shared_rates.peek(bucket, quota, now).remaining) }
    };
    let shared = || html! { span.hint { "by name or person" } };
    let row = |name: &str, quota: Quota, left: Markup| {
        vec![html! { (name) }, html! { (quota.to_string()) }, left]
    };
    let rows = [
        row("All requests", rates.client, left(rates.client, &buckets.client)),
        row("Quotes", rates.quotes, left(rates.quotes, &buckets.quotes)),
        row("Client credentials", rates.credentials, shared()),
        row("Logins of users", rates.login, shared()),
        row("Logins of all users", rates.client_login, html! { span.hint { "by all edges" } }),
        row("Uploads of users", rates.uploads, shared()),
    ];
    let columns =
        [Column::Text("Requests"), Column::Text("Limit"), Column::Amount("Left at this edge")];
    table("Rate limits", &columns, &rows)
}

/// Figures of the partner.
struct Usage {
    orders: i64,
    completed: i64,
    open: i64,
    sales: i64,
    endpoints: i64,
    failing: i64,
    switched_off: i64,
    waiting: i64,
}

impl Usage {
    /// The orders that a figure is of, where not all are counted.
    fn of_newest(&self) -> Option<&'static str> {
        (self.orders >= COUNTED_MAX).then_some("of the newest 10,000")
    }

    fn meaning_of_open(&self) -> &'static str {
        match self.of_newest() {
            Some(_) => "pending, in progress, blocked, of the newest 10,000",
            None => "pending, in progress, blocked",
        }
    }

    async fn load(visit: &Visit<'_>) -> Result<Self> {
        let usage = sqlx::query_as!(
            Self,
            r#"
            with recent as (
                select status from buy_order
                where client_id = $1 and created_at > rampart_now() - make_interval(days => $2)
                order by created_at desc, order_id desc limit $3
            )
            select
                (select count(*) from recent) as "orders!",
                (select count(*) from recent where status = 'completed') as "completed!",
                (select count(*) from recent where status in ('pending', 'in progress', 'blocked'))
                    as "open!",
                (select count(*) from (select from sell_order
                    where client_id = $1
                        and created_at > rampart_now() - make_interval(days => $2)
                    limit $3) sales) as "sales!",
                (select count(*) from webhook_endpoint where client_id = $1) as "endpoints!",
                (select count(*) from webhook_endpoint
                    where client_id = $1 and disabled_at is null and failing_since is not null)
                    as "failing!",
                (select count(*) from webhook_endpoint
                    where client_id = $1 and disabled_at is not null) as "switched_off!",
                (select count(*) from (select from delivery
                    where client_id = $1 and state = 'pending' limit $3) waiting) as "waiting!"
            "#,
            visit.session.client.id().uuid(),
            DAYS,
            COUNTED_MAX,
        )
        .fetch_one(&visit.core.db)
        .await?;
        Ok(usage)
    }
}
