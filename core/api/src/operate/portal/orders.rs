//! Orders of both sides, for whoever helps a shopper: `GET /portal/orders` and `/portal/orders/{id}`.
//! Wallet addresses are masked, and no person is named.

mod show_one;

use chrono::{DateTime, Utc};
use http::Method;
use maud::{Markup, html};
use rust_decimal::Decimal;
use url::form_urlencoded;
use uuid::Uuid;

pub use self::show_one::ShowOne;
use super::page::{StaffPage, Visit};
use crate::http::html::choice::select;
use crate::http::html::components::{Column, Field, Tone, badge, empty_state, field, table, time};
use crate::http::language::Language;
use crate::http::reply::Reply;
use crate::platform::error::Result;
use crate::trading::orders::status::OrderStatus;
use rampart_types::OrderId;

const PATH: &str = "/portal/orders";
const PAGE_ORDERS: usize = 50;
/// Most orders of one name that are found, of either side.
const NAMED_MAX: i64 = 1_000;
/// Characters that are shown at either end of a masked text.
const SHOWN_CHARS: usize = 4;

/// Lists orders, newest first.
pub struct Show;

impl StaffPage for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let filter = Filter::read(visit);
        let mut orders = Listed::load(visit, &filter).await?;
        let more = orders.len() > PAGE_ORDERS;
        orders.truncate(PAGE_ORDERS);
        let body = html! {
            (filter.form())
            (orders_table(visit, &orders, filter.meaning_of_none()))
            @if let Some(last) = orders.last().filter(|_| more) {
                p { a href=(filter.link(last.order_id)) { "Earlier orders" } }
            }
        };
        Ok(visit.page(PATH, "Orders", &body))
    }
}

/// Criteria of the list.
#[derive(Default)]
struct Filter {
    status: Option<OrderStatus>,
    /// A number, or the partner's own identifier.
    name: String,
    before: Option<OrderId>,
}

impl Filter {
    fn read(visit: &Visit<'_>) -> Self {
        Self {
            status: OrderStatus::from_name(&visit.query("status")),
            name: visit.query("name").trim().replace('\0', ""),
            before: visit.query("before").parse().ok(),
        }
    }

    /// The sentence for a list without orders.
    fn meaning_of_none(&self) -> &'static str {
        let is_search = !self.name.is_empty() || self.status.is_some() || self.before.is_some();
        match is_search {
            true => "No order meets what you search for.",
            false => "Orders of your users stand here as soon as there are any.",
        }
    }

    fn form(&self) -> Markup {
        let statuses = OrderStatus::NAMES.into_iter().map(|name| (name, name));
        let options: Vec<_> = [("", "any")].into_iter().chain(statuses).collect();
        let name = Field {
            value: &self.name,
            required: false,
            ..Field::text("name", "Number or your identifier")
        };
        html! {
            form.filter method="get" {
                (field(&name))
                (select("status", "Status", self.status.map_or("", OrderStatus::as_str), &options))
                button type="submit" { "Search" }
            }
        }
    }

    fn link(&self, last: i64) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("name", &self.name);
        query.append_pair("status", self.status.map_or("", OrderStatus::as_str));
        query.append_pair("before", &last.to_string());
        format!("{PATH}?{}", query.finish())
    }
}

/// An order in a list.
pub(super) struct Listed {
    order_id: i64,
    side: String,
    status: String,
    pair: String,
    fiat_amount: Decimal,
    fiat_currency: String,
    partner_reference: Option<String>,
    created_at: DateTime<Utc>,
}

/// The newest orders of both sides that the filter leaves, of those that `$led_by` says: a condition
/// with `and` that leads to an index and so stands first. Its own argument is `$5`. One more than a
/// page takes, to detect a next page.
macro_rules! newest {
    ($visit:expr, $filter:expr, $led_by:literal $(, $argument:expr)?) => {
        sqlx::query_as!(
            Listed,
            "with last as ( \
                 select created_at from buy_order where client_id = $1 and order_id = $4 \
                 union all \
                 select created_at from sell_order where client_id = $1 and order_id = $4 \
                 limit 1) \
             select order_id as \"order_id!\", side as \"side!\", status as \"status!\", \
             pair as \"pair!\", fiat_amount as \"fiat_amount!\", \
             fiat_currency as \"fiat_currency!\", partner_reference, \
             created_at as \"created_at!\" from ( \
                 (select order_id, 'buy' as side, status, pair, fiat_amount, fiat_currency, \
                     partner_reference, created_at \
                 from buy_order where client_id = $1 and "
                + $led_by
                + "($3::text is null or status = $3) and ($4::bigint is null \
                         or (created_at, order_id) < ((select created_at from last), $4)) \
                 order by created_at desc, order_id desc limit $2) \
                 union all \
                 (select order_id, 'sell' as side, status, pair, fiat_amount, fiat_currency, \
                     partner_reference, created_at \
                 from sell_order where client_id = $1 and "
                + $led_by
                + "($3::text is null or status = $3) and ($4::bigint is null \
                         or (created_at, order_id) < ((select created_at from last), $4)) \
                 order by created_at desc, order_id desc limit $2) \
             ) as orders order by created_at desc, order_id desc limit $2",
            $visit.session.client.id().uuid(),
            i64::try_from(PAGE_ORDERS + 1).unwrap_or(i64::MAX),
            $filter.status.map(OrderStatus::as_str),
            $filter.before.map(OrderId::number)
            $(, $argument)?
        )
        .fetch_all(&$visit.core.db)
        .await?
    };
}

impl Listed {
    /// The partner's orders, newest first: one more than a page takes.
    async fn load(visit: &Visit<'_>, filter: &Filter) -> Result<Vec<Self>> {
        if !filter.name.is_empty() {
            return Self::named(visit, filter).await;
        }
        Ok(match filter.status {
            None => newest!(visit, filter, ""),
            Some(OrderStatus::Pending) => newest!(visit, filter, "status = 'pending' and "),
            Some(_) => newest!(visit, filter, "status = $3 and status <> 'pending' and "),
        })
    }

    /// The orders of the filter's name, of the newest [`NAMED_MAX`] on either side.
    async fn named(visit: &Visit<'_>, filter: &Filter) -> Result<Vec<Self>> {
        let orders = sqlx::query_as!(
            Self,
            r#"
            with named as (
                (select order_id from buy_order where client_id = $1 and partner_reference = $2
                    and ($4::text is null or status = $4)
                order by created_at desc limit $6)
                union
                (select order_id from sell_order where client_id = $1 and partner_reference = $2
                    and ($4::text is null or status = $4)
                order by created_at desc limit $6)
                union
                select $3
            ), found as (
                select order_id, 'buy' as side, status, pair, fiat_amount, fiat_currency,
                    partner_reference, created_at
                from named join buy_order using (order_id) where client_id = $1
                union all
                select order_id, 'sell', status, pair, fiat_amount, fiat_currency,
                    partner_reference, created_at
                from named join sell_order using (order_id) where client_id = $1
            )
            select order_id as "order_id!", side as "side!", status as "status!", pair as "pair!",
                fiat_amount as "fiat_amount!", fiat_currency as "fiat_currency!", partner_reference,
                created_at as "created_at!"
            from found
            where ($4::text is null or status = $4)
                and ($5::bigint is null or (created_at, order_id)
                    < ((select created_at from found where order_id = $5 limit 1), $5))
            order by created_at desc, order_id desc limit $7
            "#,
            visit.session.client.id().uuid(),
            filter.name,
            filter.name.parse::<i64>().ok(),
            filter.status.map(OrderStatus::as_str),
            filter.before.map(OrderId::number),
            NAMED_MAX,
            i64::try_from(PAGE_ORDERS + 1).unwrap_or(i64::MAX),
        )
        .fetch_all(&visit.core.db)
        .await?;
        Ok(orders)
    }

    /// The latest orders of a user.
    pub(super) async fn of_user(visit: &Visit<'_>, user: Uuid) -> Result<Vec<Self>> {
        let mut orders = newest!(visit, Filter::default(), "user_id = $5 and ", user);
        orders.truncate(PAGE_ORDERS);
        Ok(orders)
    }
}

/// A status in its colour.
pub(super) fn order_status(status: &str) -> Markup {
    let tone = match status {
        "completed" => Tone::Good,
        "blocked" => Tone::Warning,
        "cancelled" | "refunded" => Tone::Bad,
        _ => Tone::Info,
    };
    badge(tone, status)
}

/// Orders as a table, each with a link to its page; without orders the sentence that says so.
pub(super) fn orders_table(visit: &Visit<'_>, orders: &[Listed], none: &str) -> Markup {
    let catalogue = &visit.session.client.catalogue;
    let columns = [
        Column::Text("Order"),
        Column::Text("Side"),
        Column::Text("Status"),
        Column::Text("Pair"),
        Column::Amount("Amount"),
        Column::Text("Your identifier"),
        Column::Text("Created"),
    ];
    let english = Language::English.texts();
    let row = |order: &Listed| {
        let amount = catalogue.format_amount(order.fiat_amount, &order.fiat_currency);
        vec![
            html! { a href={ (PATH) "/" (order.order_id) } { (order.order_id) } },
            html! { (order.side) },
            order_status(&order.status),
            html! { (order.pair) },
            html! { (english.amount(&amount)) },
            html! { (order.partner_reference.as_deref().unwrap_or_default()) },
            time(order.created_at),
        ]
    };
    let rows: Vec<_> = orders.iter().map(row).collect();
    match rows.is_empty() {
        true => empty_state("No order.", none),
        false => table("Orders, newest first", &columns, &rows),
    }
}

/// The ends of a text, such as a wallet's address.
pub(super) fn masked(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= 2 * SHOWN_CHARS {
        return "•".repeat(chars.len());
    }
    let (head, tail) = (&chars[..SHOWN_CHARS], &chars[chars.len() - SHOWN_CHARS..]);
    head.iter().chain(&['…']).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_text_shows_its_ends_alone() {
        assert_eq!(masked("bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"), "bc1q…5mdq");
        assert_eq!(masked("12345678"), "••••••••");
        assert_eq!(masked(""), "");
    }
}
