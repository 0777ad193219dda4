//! Orders of both sides, for whoever helps a shopper: `GET /portal/orders` and `/portal/orders/{id}`.
//! Wallet addresses are masked, and no person is named.

use chrono::{DateTime, Utc};
use http::Method;
use maud::{Markup, html};
use rust_decimal::Decimal;
use url::form_urlencoded;
use uuid::Uuid;

use super::page::{StaffPage, Visit};
use super::sandbox::events_form;
use crate::http::html::components::{
    Column, Fact, Field, Tone, badge, empty_state, field, select, table, time, timeline,
};
use crate::http::reply::Reply;
use crate::platform::error::Result;
use crate::trading::orders::status::OrderStatus;
use rampart_types::OrderId;

const PATH: &str = "/portal/orders";
/// Orders of a page.
const PAGE_ORDERS: usize = 50;
/// Most steps of a timeline that are shown.
const STEPS_MAX: i64 = 200;
/// Characters that are shown at either end of a masked text.
const SHOWN_CHARS: usize = 4;

/// Lists orders, newest first.
#[derive(Debug)]
pub struct Show;

impl StaffPage for Show {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = PATH;

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let filter = Filter::read(visit);
        let orders = Listed::load(visit, &filter).await?;
        let body = html! {
            (filter.form())
            (orders_table(visit, &orders))
            @if orders.len() == PAGE_ORDERS {
                @if let Some(last) = orders.last() {
                    p { a href=(filter.link(last.order_id)) { "Earlier orders" } }
                }
            }
        };
        Ok(visit.page(PATH, "Orders", &body))
    }
}

/// What the list is narrowed to.
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

impl Listed {
    async fn load(visit: &Visit<'_>, filter: &Filter) -> Result<Vec<Self>> {
        let orders = sqlx::query_as!(
            Self,
            r#"
            with last as (
                select created_at from buy_order where client_id = $1 and order_id = $4
                union all
                select created_at from sell_order where client_id = $1 and order_id = $4 limit 1
            )
            select order_id as "order_id!", side as "side!", status as "status!", pair as "pair!",
                fiat_amount as "fiat_amount!", fiat_currency as "fiat_currency!", partner_reference,
                created_at as "created_at!"
            from (
                (select order_id, 'buy' as side, status, pair, fiat_amount, fiat_currency,
                    partner_reference, created_at
                from buy_order where client_id = $1
                    and ($2::text is null or status = $2)
                    and ($3 = '' or partner_reference = $3 or order_id::text = $3)
                    and ($4::bigint is null
                        or (created_at, order_id) < ((select created_at from last), $4))
                order by created_at desc, order_id desc limit $5)
                union all
                (select order_id, 'sell' as side, status, pair, fiat_amount, fiat_currency,
                    partner_reference, created_at
                from sell_order where client_id = $1
                    and ($2::text is null or status = $2)
                    and ($3 = '' or partner_reference = $3 or order_id::text = $3)
                    and ($4::bigint is null
                        or (created_at, order_id) < ((select created_at from last), $4))
                order by created_at desc, order_id desc limit $5)
            ) as orders
            order by created_at desc, order_id desc limit $5
            "#,
            visit.session.client.id().uuid(),
            filter.status.map(OrderStatus::as_str),
            filter.name,
            filter.before.map(OrderId::number),
            i64::try_from(PAGE_ORDERS).unwrap_or(i64::MAX),
        )
        .fetch_all(&visit.core.db)
        .await?;
        Ok(orders)
    }

    /// The latest orders of a user.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub(super) async fn of_user(visit: &Visit<'_>, user: Uuid) -> Result<Vec<Self>> {
        let orders = sqlx::query_as!(
            Self,
            r#"
            select order_id as "order_id!", side as "side!", status as "status!", pair as "pair!",
                fiat_amount as "fiat_amount!", fiat_currency as "fiat_currency!", partner_reference,
                created_at as "created_at!"
            from (
                (select order_id, 'buy' as side, status, pair, fiat_amount, fiat_currency,
                    partner_reference, created_at
                from buy_order where client_id = $1 and user_id = $2
                order by created_at desc, order_id desc limit $3)
                union all
                (select order_id, 'sell' as side, status, pair, fiat_amount, fiat_currency,
                    partner_reference, created_at
                from sell_order where client_id = $1 and user_id = $2
                order by created_at desc, order_id desc limit $3)
            ) as orders
            order by created_at desc, order_id desc limit $3
            "#,
            visit.session.client.id().uuid(),
            user,
            i64::try_from(PAGE_ORDERS).unwrap_or(i64::MAX),
        )
        .fetch_all(&visit.core.db)
        .await?;
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

/// Orders as a table, each with a link to its page.
pub(super) fn orders_table(visit: &Visit<'_>, orders: &[Listed]) -> Markup {
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
    let row = |order: &Listed| {
        vec![
            html! { a href={ (PATH) "/" (order.order_id) } { (order.order_id) } },
            html! { (order.side) },
            order_status(&order.status),
            html! { (order.pair) },
            html! { (catalogue.format_amount(order.fiat_amount, &order.fiat_currency)) },
            html! { (order.partner_reference.as_deref().unwrap_or_default()) },
            time(order.created_at),
        ]
    };
    let rows: Vec<_> = orders.iter().map(row).collect();
    match rows.is_empty() {
        true => empty_state("No order.", "No order meets what you search for."),
        false => table("Orders, newest first", &columns, &rows),
    }
}

/// Shows one order with its timeline.
#[derive(Debug)]
pub struct ShowOne;

impl StaffPage for ShowOne {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/portal/orders/{id}";

    async fn answer(visit: &Visit<'_>) -> Result<Reply> {
        let Ok(id) = visit.param("id").parse::<OrderId>() else { return Ok(visit.not_found()) };
        let found = sqlx::query_as!(
            Shown,
            r#"
            select 'buy' as "side!", status as "status!", pair as "pair!",
                payment_method as "payment_method!", wallet_address as "wallet_address!",
                fiat_amount as "fiat_amount!", fiat_currency as "fiat_currency!",
                crypto_amount as "crypto_amount!", crypto_currency as "crypto_currency!",
                price as "price!", partner_fee + provider_fee + payment_method_fee + network_fee
                    + spread_fee + affiliate_fee as "fees!",
                partner_reference, transaction_id, user_id, expires_at,
                created_at as "created_at!"
            from buy_order where client_id = $1 and order_id = $2
            union all
            select 'sell', status, pair, payment_method, wallet_address, fiat_amount,
                fiat_currency, crypto_amount, crypto_currency, price, partner_fee + provider_fee
                    + payment_method_fee + network_fee + spread_fee + affiliate_fee,
                partner_reference, transaction_id, user_id, expires_at, created_at
            from sell_order where client_id = $1 and order_id = $2
            "#,
            visit.session.client.id().uuid(),
            id.number(),
        )
        .fetch_optional(&visit.core.db)
        .await?;
        let Some(order) = found else { return Ok(visit.not_found()) };
        let steps = steps(visit, id).await?;
        let body = html! {
            (order.markup(visit))
            h2 { "Timeline" }
            (timeline(&steps))
            @if order.side == "buy" { (events_form(visit, id)) }
        };
        Ok(visit.page(PATH, &format!("Order {}", id.number()), &body))
    }
}

/// An order on its page.
struct Shown {
    side: String,
    status: String,
    pair: String,
    payment_method: String,
    wallet_address: String,
    fiat_amount: Decimal,
    fiat_currency: String,
    crypto_amount: Decimal,
    crypto_currency: String,
    price: Decimal,
    fees: Decimal,
    partner_reference: Option<String>,
    transaction_id: Option<String>,
    user_id: Option<Uuid>,
    expires_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

impl Shown {
    fn markup(&self, visit: &Visit<'_>) -> Markup {
        let catalogue = &visit.session.client.catalogue;
        let fiat = |amount| catalogue.format_amount(amount, &self.fiat_currency);
        html! {
            dl {
                dt { "Status" } dd { (order_status(&self.status)) }
                dt { "Side" } dd { (self.side) }
                dt { "Pair" } dd { (self.pair) }
                dt { "Fiat" } dd { (fiat(self.fiat_amount)) }
                dt { "Crypto" }
                dd { (catalogue.format_amount(self.crypto_amount, &self.crypto_currency)) }
                dt { "Price" } dd { (fiat(self.price)) }
                dt { "Fees" } dd { (fiat(self.fees)) }
                dt { "Payment method" } dd { (self.payment_method) }
                dt { "Wallet" } dd { code { (masked(&self.wallet_address)) } }
                @if let Some(transaction) = &self.transaction_id {
                    dt { "Transaction" } dd { code { (transaction) } }
                }
                @if let Some(reference) = &self.partner_reference {
                    dt { "Your identifier" } dd { (reference) }
                }
                @if let Some(user) = self.user_id {
                    dt { "User" } dd { a href={ "/portal/users/" (user) } { (user) } }
                }
                dt { "Created" } dd { (time(self.created_at)) }
                @if let Some(expires) = self.expires_at {
                    dt { "To be paid by" } dd { (time(expires)) }
                }
            }
        }
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

async fn steps(visit: &Visit<'_>, order: OrderId) -> Result<Vec<Fact>> {
    let steps = sqlx::query!(
        r#"
        select at as "at!", to_status as "to_status!", cause as "cause!"
        from (
            select at, transition_id, to_status, cause from order_transition
            where client_id = $1 and order_id = $2
            union all
            select at, transition_id, to_status, cause from sell_order_transition
            where client_id = $1 and order_id = $2
        ) as steps
        order by at, transition_id limit $3
        "#,
        visit.session.client.id().uuid(),
        order.number(),
        STEPS_MAX,
    )
    .fetch_all(&visit.core.db)
    .await?;
    let facts = steps.into_iter().map(|step| Fact {
        at: step.at,
        title: step.to_status,
        detail: Some(step.cause),
    });
    Ok(facts.collect())
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
