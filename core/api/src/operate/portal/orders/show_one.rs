//! One order: `GET /portal/orders/{id}`.

use chrono::{DateTime, Utc};
use http::Method;
use maud::{Markup, html};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::super::page::{HELPERS, StaffPage, Visit};
use super::super::sandbox::events_form;
use super::{PATH, masked, order_status};
use crate::http::html::components::{Fact, time, timeline};
use crate::http::language::Language;
use crate::http::reply::Reply;
use crate::platform::error::Result;
use crate::trading::orders::status::OrderStatus;
use crate::trading::price_terms::format_price;
use rampart_types::OrderId;

/// Most steps of a timeline that are shown.
const STEPS_MAX: i64 = 200;

/// Shows one order with its timeline.
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
        let bought = OrderStatus::from_name(&order.status).filter(|_| order.side == "buy");
        let body = html! {
            (order.markup(visit))
            h2 { "Timeline" }
            (timeline(&steps))
            @if let Some(status) = bought { (events_form(visit, id, status)) }
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
        let english = Language::English.texts();
        let amount = |value, code: &str| english.amount(&catalogue.format_amount(value, code));
        let fiat = |value| amount(value, &self.fiat_currency);
        let price = format_price(catalogue, self.price, &self.fiat_currency);
        html! {
            dl {
                dt { "Status" } dd { (order_status(&self.status)) }
                dt { "Side" } dd { (self.side) }
                dt { "Pair" } dd { (self.pair) }
                dt { "Fiat" } dd { (fiat(self.fiat_amount)) }
                dt { "Crypto" }
                dd { (amount(self.crypto_amount, &self.crypto_currency)) }
                dt { "Price" } dd { (english.amount(&price)) }
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
                    dt { "User" }
                    dd {
                        @if HELPERS.contains(&visit.session.role) {
                            a href={ "/portal/users/" (user) } { (user) }
                        } @else { (user) }
                    }
                }
                dt { "Created" } dd { (time(self.created_at)) }
                @if let Some(expires) = self.expires_at {
                    dt { "To be paid by" } dd { (time(expires)) }
                }
            }
        }
    }
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
