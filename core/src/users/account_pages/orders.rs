//! A user's purchases and sales on the account's page, newest first.

use chrono::{DateTime, Utc};
use maud::{Markup, html};
use rust_decimal::Decimal;
use serde::Serialize;

use super::view::View;
use crate::http::form::Form;
use crate::http::html::choice::select;
use crate::http::html::components::{Column, empty_state, money, table, time_in};
use crate::http::language::Texts;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::trading::orders::list::Cursor;
use crate::trading::orders::payment_link::payment_url;
use crate::trading::orders::status::OrderStatus;
use crate::trading::quotes::Side;
use rampart_types::{JsonDecimal, OrderId, OrderKey, UserKey};

/// Orders of a page.
const PAGE_ORDERS: usize = 10;

/// A purchase or a sale of a user, as the file of the user's data has it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TradedOrder {
    #[serde(rename = "type")]
    side: Side,
    id: OrderId,
    date: DateTime<Utc>,
    status: OrderStatus,
    payment_method: String,
    fiat_amount: JsonDecimal,
    fiat_currency: String,
    crypto_amount: JsonDecimal,
    crypto_currency: String,
    wallet_address: String,
    destination_tag: Option<String>,
    transaction_id: Option<String>,
    partner_order_identifier: Option<String>,
}

/// The orders that a user asks for.
#[derive(Debug, Default)]
pub(super) struct Filter {
    side: Option<Side>,
    status: Option<OrderStatus>,
    /// The order that the page comes after.
    after: Option<Cursor>,
}

impl Filter {
    /// The filter of the page's form. Values that it does not offer count as none.
    pub(super) fn read(form: &Form) -> Self {
        Self {
            side: Side::from_name(form.get("side")),
            status: OrderStatus::from_name(form.get("status")),
            after: Cursor::parse(form.get("after")),
        }
    }
}

/// The user's orders, newest first, at most `limit`.
///
/// # Errors
/// When the database cannot be read.
pub(super) async fn find(
    conn: &mut Connection,
    key: UserKey,
    filter: &Filter,
    limit: usize,
) -> Result<Vec<TradedOrder>> {
    let after = Cursor::start(filter.after, None);
    let rows = sqlx::query!(
        r#"
        select side as "side!", order_id as "order_id!", created_at as "created_at!",
            status as "status!: OrderStatus", payment_method as "payment_method!",
            fiat_amount as "fiat_amount!", fiat_currency as "fiat_currency!",
            crypto_amount as "crypto_amount!", crypto_currency as "crypto_currency!",
            wallet_address as "wallet_address!", destination_tag, transaction_id,
            partner_reference
        from (
            (select 'buy' as side, order_id, created_at, status, payment_method, fiat_amount,
                fiat_currency, crypto_amount, crypto_currency, wallet_address, destination_tag,
                transaction_id, partner_reference
            from buy_order
            where client_id = $1 and user_id = $2 and coalesce($3, 'buy') = 'buy'
                and ($4::text is null or status = $4) and (created_at, order_id) < ($5, $6)
            order by created_at desc, order_id desc limit $7)
            union all
            (select 'sell', order_id, created_at, status, payment_method, fiat_amount,
                fiat_currency, crypto_amount, crypto_currency, wallet_address, destination_tag,
                transaction_id, partner_reference
            from sell_order
            where client_id = $1 and user_id = $2 and coalesce($3, 'sell') = 'sell'
                and ($4::text is null or status = $4) and (created_at, order_id) < ($5, $6)
            order by created_at desc, order_id desc limit $7)
        ) as traded
        order by created_at desc, order_id desc limit $7
        "#,
        key.client.uuid(),
        key.user.uuid(),
        filter.side.map(Side::as_str),
        filter.status.map(OrderStatus::as_str),
        after.created_at,
        after.order_id,
        i64::try_from(limit).unwrap_or(i64::MAX),
    )
    .fetch_all(conn)
    .await?;
    let orders = rows.into_iter().map(|row| {
        let invalid = || Error::invariant("show an order");
        Ok(TradedOrder {
            side: Side::from_name(&row.side).ok_or_else(invalid)?,
            id: OrderId::new(row.order_id).ok_or_else(invalid)?,
            date: row.created_at,
            status: row.status,
            payment_method: row.payment_method,
            fiat_amount: row.fiat_amount.into(),
            fiat_currency: row.fiat_currency,
            crypto_amount: row.crypto_amount.into(),
            crypto_currency: row.crypto_currency,
            wallet_address: row.wallet_address,
            destination_tag: row.destination_tag,
            transaction_id: row.transaction_id,
            partner_order_identifier: row.partner_reference,
        })
    });
    orders.collect()
}

/// A page of the user's orders, the form that filters them, and the button to those before.
///
/// # Errors
/// When the database cannot be read.
pub(super) async fn section(
    conn: &mut Connection,
    view: &View<'_>,
    filter: &Filter,
) -> Result<Markup> {
    let texts = view.texts();
    let key = view.account.key();
    // One more than the page takes, to detect a next page.
    let mut orders = find(conn, key, filter, PAGE_ORDERS + 1).await?;
    let more = orders.len() > PAGE_ORDERS;
    orders.truncate(PAGE_ORDERS);
    let title = texts.get("account-orders");
    let is_all = filter.side.is_none() && filter.status.is_none() && filter.after.is_none();
    if orders.is_empty() && is_all {
        return Ok(empty_state(&title, &texts.get("account-no-orders")));
    }
    let next = orders.last().filter(|_| more).map(|last| Cursor::after(last.date, last.id));
    let rows: Vec<_> = orders.iter().map(|order| row(view, order)).collect::<Result<_>>()?;
    let names = ["term-order", "account-date", "account-status", "term-pays", "term-gets"];
    let names = names.map(|id| texts.get(id));
    let [order, date, status, pays, gets] = names.each_ref();
    let columns = [
        Column::Text(order),
        Column::Text(date),
        Column::Text(status),
        Column::Amount(pays),
        Column::Amount(gets),
    ];
    Ok(html! {
        h2 { (title) }
        (filter_form(view, filter))
        @if rows.is_empty() { p { (texts.get("account-no-such-orders")) } }
        @else { (table(&title, &columns, &rows)) }
        @if let Some(next) = next { (next_button(view, filter, next)) }
    })
}

fn row(view: &View<'_>, order: &TradedOrder) -> Result<Vec<Markup>> {
    let texts = view.texts();
    let amount = |value: JsonDecimal, code: &str| {
        let formatted = view.invited.client.catalogue.format_amount(Decimal::from(value), code);
        money(&texts.amount(&formatted))
    };
    let fiat = amount(order.fiat_amount, &order.fiat_currency);
    let crypto = amount(order.crypto_amount, &order.crypto_currency);
    let (name, pays, gets) = match order.side {
        Side::Buy => {
            let key = OrderKey { client: view.invited.client.id(), order: order.id };
            let page = payment_url(view.invited.core, key)?;
            let name = html! {
                (texts.get("account-purchase")) br;
                a href=(page) { (order.id) }
                @if order.status == OrderStatus::Completed {
                    br; a href={ (page) "/receipt.pdf" } { (texts.get("pay-receipt")) }
                }
            };
            (name, fiat, crypto)
        }
        Side::Sell => (html! { (texts.get("account-sale")) br; (order.id) }, crypto, fiat),
    };
    let status = html! { (texts.get(status_message(order.status))) };
    Ok(vec![name, time_in(texts, order.date), status, pays, gets])
}

fn filter_form(view: &View<'_>, filter: &Filter) -> Markup {
    let texts = view.texts();
    let any = texts.get("account-any");
    let (purchase, sale) = (texts.get("account-purchase"), texts.get("account-sale"));
    let sides = [("", &*any), (Side::Buy.as_str(), &*purchase), (Side::Sell.as_str(), &*sale)];
    let names = OrderStatus::ALL.map(|status| (status.as_str(), status_text(texts, status)));
    let statuses = names.iter().map(|(value, text)| (*value, text.as_str()));
    let statuses: Vec<_> = [("", &*any)].into_iter().chain(statuses).collect();
    let side = filter.side.map_or("", Side::as_str);
    let status = filter.status.map_or("", OrderStatus::as_str);
    html! {
        form.filter method="post" {
            (view.challenge_input())
            (select("side", &texts.get("account-side"), side, &sides))
            (select("status", &texts.get("account-status"), status, &statuses))
            button type="submit" name="action" value="show" { (texts.get("account-filter")) }
        }
    }
}

fn next_button(view: &View<'_>, filter: &Filter, next: Cursor) -> Markup {
    let next = next.encode();
    let members = [
        ("side", filter.side.map_or("", Side::as_str)),
        ("status", filter.status.map_or("", OrderStatus::as_str)),
        ("after", &*next),
    ];
    view.button("show", "small", &members, &view.texts().get("account-older"))
}

fn status_text(texts: Texts, status: OrderStatus) -> String {
    texts.get(status_message(status))
}

const fn status_message(status: OrderStatus) -> &'static str {
    match status {
        OrderStatus::Pending => "status-pending",
        OrderStatus::InProgress => "status-in-progress",
        OrderStatus::Blocked => "status-blocked",
        OrderStatus::Completed => "status-completed",
        OrderStatus::Cancelled => "status-cancelled",
        OrderStatus::Refunded => "status-refunded",
    }
}
