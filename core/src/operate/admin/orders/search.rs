//! `GET /admin/v1/orders`

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::endpoint::{Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::limit;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};
use crate::trading::orders::status::OrderStatus;
use crate::trading::quotes::Side;
use rampart_types::JsonDecimal;

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
    const DOC: Doc = Doc {
        summary: "Search orders",
        details: "Orders that meet every criterion, newest first, at most 200; `to` with the \
                  `date` of the last one continues.",
        query: &[
            optional("partner", Kind::Text, "The partner's slug."),
            optional("side", Kind::OneOf(&["buy", "sell"]), "The side, seen from the user."),
            optional("status", Kind::OneOf(&STATUSES), "The order's status."),
            optional("partnerOrderIdentifier", Kind::Text, "The partner's own reference."),
            optional("walletAddress", Kind::Text, "The address that coins go to."),
            optional("transactionId", Kind::Text, "The transaction on chain."),
            optional("from", Kind::Format("date-time"), "Least time of creation."),
            optional("to", Kind::Format("date-time"), "Time of creation that is too late."),
            optional("limit", Kind::Integer(1, ORDERS_MAX), "Most orders of the answer."),
        ],
        answer: r#"[{"id": 1234567890123456, "side": "buy", "partner": "acme",
            "status": "pending", "currencyPair": "BTC-EUR", "partnerOrderIdentifier": "shop-7",
            "fiatAmount": {"amount": 100, "currencyCode": "EUR"},
            "date": "2026-03-01T12:00:00Z"}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Search;
    type Response = Json<Vec<Listed>>;

    fn read(input: &Input, _: &Operator) -> Result<Search> {
        let members: Criteria = strict::query(input)?;
        if members.status.as_deref().is_some_and(|name| OrderStatus::from_name(name).is_none()) {
            return Err(Denial::unprocessable("status: not an order's status").into());
        }
        let limit = limit(members.limit.as_deref(), ORDERS_MAX)?;
        Ok(Search { criteria: members, limit })
    }

    async fn call(core: &Core, _: Operator, search: Search) -> Result<Json<Vec<Listed>>> {
        let Search { criteria, limit } = search;
        let rows = sqlx::query!(
            r#"
            select c.slug as "slug!", order_id as "order_id!", side as "side!",
                o.status as "status!", pair as "pair!", fiat_amount as "fiat_amount!",
                fiat_currency as "fiat_currency!", partner_reference,
                o.created_at as "created_at!"
            from (
                select client_id, order_id, 'buy' as side, status, pair, fiat_amount,
                    fiat_currency, partner_reference, wallet_address, transaction_id, created_at
                from buy_order
                union all
                select client_id, order_id, 'sell' as side, status, pair, fiat_amount,
                    fiat_currency, partner_reference, wallet_address, transaction_id, created_at
                from sell_order
            ) o join client c on c.client_id = o.client_id
            where ($1::text is null or c.slug = $1)
                and ($2::text is null or o.status = $2)
                and ($3::text is null or partner_reference = $3)
                and ($4::text is null or wallet_address = $4)
                and ($5::text is null or transaction_id = $5)
                and ($6::timestamptz is null or o.created_at >= $6)
                and ($7::timestamptz is null or o.created_at < $7)
                and ($8::text is null or side = $8)
            order by o.created_at desc, order_id desc
            limit $9
            "#,
            criteria.partner,
            criteria.status,
            criteria.partner_order_identifier,
            criteria.wallet_address,
            criteria.transaction_id,
            criteria.from,
            criteria.to,
            criteria.side.map(|side| side.to_string()),
            limit,
        )
        .fetch_all(&core.db)
        .await?;
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
        Ok(Json(orders.collect()))
    }
}

/// A search for orders.
#[derive(Debug)]
pub struct Search {
    criteria: Criteria,
    limit: i64,
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
    limit: Option<String>,
}

/// An order in the list.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ListedOrder")]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    id: i64,
    /// `buy` or `sell`, seen from the user.
    side: String,
    /// The partner's slug.
    partner: String,
    status: String,
    currency_pair: String,
    partner_order_identifier: Option<String>,
    fiat_amount: Fiat,
    /// Time of creation.
    date: DateTime<Utc>,
}

#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "FiatAmount")]
#[serde(rename_all = "camelCase")]
struct Fiat {
    amount: JsonDecimal,
    currency_code: String,
}
