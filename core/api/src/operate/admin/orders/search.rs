//! `GET /admin/v1/orders`

mod find;

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::find::find;
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{Page, Paging, limit};
use crate::platform::error::{Denial, Result};
use crate::trading::orders::status::OrderStatus;
use crate::trading::quotes::Side;
use rampart_types::{JsonDecimal, OrderId};

/// Most orders of one answer.
const ORDERS_MAX: i64 = 200;
/// Every status, for the OpenAPI document.
const STATUSES: [&str; 6] =
    ["pending", "in progress", "blocked", "completed", "cancelled", "refunded"];

/// `GET /admin/v1/orders`
pub struct SearchOrders;

impl Endpoint for SearchOrders {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/orders";
    const ROLES: &'static [Role] = Role::ALL;
    const MAY_BE_STALE: bool = true;
    const DOC: Doc = Doc {
        summary: "Search orders",
        details: "Orders that meet every criterion, newest first.",
        query: &[
            optional("partner", Kind::Text, "The partner's slug."),
            optional("side", Kind::OneOf(&["buy", "sell"]), "The side, seen from the user."),
            optional("status", Kind::OneOf(&STATUSES), "The order's status."),
            optional("partnerOrderIdentifier", Kind::Text, "The partner's own reference."),
            optional("walletAddress", Kind::Text, "The address that coins go to."),
            optional("transactionId", Kind::Text, "The transaction on chain."),
            optional("from", Kind::Format("date-time"), "Earliest time of creation."),
            optional("to", Kind::Format("date-time"), "Time before which they were made."),
            optional("after", Kind::Integer(1, i64::MAX), "The last id of the page before."),
            limit(ORDERS_MAX),
        ],
        answer: r#"[{"id": 1234567890123456, "side": "buy", "partner": "acme",
            "status": "pending", "currencyPair": "BTC-EUR", "partnerOrderIdentifier": "shop-7",
            "fiatAmount": {"amount": 100, "currencyCode": "EUR"},
            "date": "2026-03-01T12:00:00Z"}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Search;
    type Response = Page<Listed>;

    fn read(input: &Input, _: &Operator) -> Result<Search> {
        let members: Criteria = strict::query(input)?;
        if members.status.as_deref().is_some_and(|name| OrderStatus::from_name(name).is_none()) {
            return Err(Denial::unprocessable("status: not an order's status").into());
        }
        let paging = Paging::of(&input.head, members.limit.as_deref(), ORDERS_MAX)?;
        let after = members.after.as_deref().map(str::parse).transpose();
        let after = after.map_err(|_| Denial::unprocessable("after: not an order's number"))?;
        Ok(Search { criteria: members, paging, after })
    }

    async fn call(core: &Core, _: Operator, search: Search) -> Result<Page<Listed>> {
        let rows = find(core, &search).await?;
        let orders = rows.into_iter().map(|row| Listed {
            id: row.order_id,
            side: row.side,
            partner: row.slug,
            status: row.status,
            currency_pair: row.pair,
            partner_order_identifier: row.partner_reference,
            fiat_amount: Fiat {
                amount: JsonDecimal(row.fiat_amount),
                currency_code: row.fiat_currency,
            },
            date: row.created_at,
        });
        Ok(search.paging.page(orders.collect(), |order| order.id))
    }
}

/// A search for orders.
#[derive(Debug)]
pub struct Search {
    criteria: Criteria,
    paging: Paging,
    after: Option<OrderId>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Criteria {
    partner: Option<String>,
    side: Option<Side>,
    status: Option<String>,
    partner_order_identifier: Option<String>,
    wallet_address: Option<String>,
    transaction_id: Option<String>,
    from: Option<DateTime<Utc>>,
    to: Option<DateTime<Utc>>,
    after: Option<String>,
    limit: Option<String>,
}

/// An order in the list.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ListedOrder")]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// The order's number.
    id: i64,
    /// `buy` or `sell`, seen from the user.
    side: String,
    /// The partner's slug.
    partner: String,
    /// Its state, as partners see it.
    status: String,
    /// Both codes, such as `BTC-EUR`.
    currency_pair: String,
    /// The partner's own name for it; null without one.
    partner_order_identifier: Option<String>,
    /// The amount that the user pays or receives.
    fiat_amount: Fiat,
    /// Time of creation.
    date: DateTime<Utc>,
}

/// An amount of a fiat currency.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "FiatAmount")]
#[serde(rename_all = "camelCase")]
struct Fiat {
    /// The amount.
    amount: JsonDecimal,
    /// The currency's code.
    currency_code: String,
}
