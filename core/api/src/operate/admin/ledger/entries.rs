//! `GET /admin/v1/ledger/entries`

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Criteria, Line};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{AFTER, Page, Paging, Search, limit};
use crate::platform::error::{Denial, Result};
use rampart_types::{JsonDecimal, OrderId};

/// Most entries of one answer.
const ENTRIES_MAX: i64 = 500;

/// `GET /admin/v1/ledger/entries`
pub struct ListEntries;

impl Endpoint for ListEntries {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/ledger/entries";
    const ROLES: &'static [Role] = &[Role::Viewer, Role::Treasury, Role::Compliance];
    const MAY_BE_STALE: bool = true;
    const DOC: Doc = Doc {
        summary: "List entries of the books",
        details: "Entries that meet every criterion, oldest first.",
        query: &[
            optional("partner", Kind::Text, "The partner's slug; `house` for nobody's."),
            optional("order", Kind::Text, "The order's number."),
            optional("account", Kind::Format("uuid"), "An account that has a posting."),
            optional("from", Kind::Format("date-time"), "Earliest time of what happened."),
            optional("to", Kind::Format("date-time"), "Time before which it happened."),
            AFTER,
            limit(ENTRIES_MAX),
        ],
        answer: r#"[{"id": "0199a000-0000-7000-8000-000000000024", "partner": "acme",
            "kind": "received", "orderId": 1234567890123456,
            "paymentId": "0199a000-0000-7000-8000-000000000021",
            "occurredAt": "2026-03-01T11:58:00Z", "recordedAt": "2026-03-01T12:00:00Z",
            "postings": [{"accountId": "0199a000-0000-7000-8000-000000000023",
                "kind": "provider", "currency": "EUR", "holder": "manual", "amount": 250},
                {"accountId": "0199a000-0000-7000-8000-000000000025", "kind": "customer",
                "currency": "EUR", "holder": null, "amount": -250}]}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Search<Criteria>;
    type Response = Page<Entry>;

    fn read(input: &Input, _: &Operator) -> Result<Search<Criteria>> {
        let query: Query = strict::query(input)?;
        let order: Option<OrderId> = query
            .order
            .map(|order| order.parse())
            .transpose()
            .map_err(|_| Denial::unprocessable("order: not an order's number"))?;
        let paging = Paging::of(&input.head, query.limit.as_deref(), ENTRIES_MAX)?;
        let criteria = Criteria {
            partner: query.partner,
            order: order.map(OrderId::number),
            account: query.account,
            from: query.from,
            to: query.to,
            after: query.after,
            limit: paging.rows_max(),
        };
        Ok(Search { criteria, paging })
    }

    async fn call(core: &Core, _: Operator, search: Search<Criteria>) -> Result<Page<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        for line in search.criteria.lines(core).await? {
            let posting = Posting::of(&line);
            match entries.last_mut().filter(|entry| entry.id == line.entry_id) {
                Some(entry) => entry.postings.push(posting),
                None => entries.push(Entry::with(line, posting)),
            }
        }
        Ok(search.paging.page(entries, |entry| entry.id))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    partner: Option<String>,
    order: Option<String>,
    account: Option<Uuid>,
    from: Option<DateTime<Utc>>,
    to: Option<DateTime<Utc>>,
    after: Option<Uuid>,
    limit: Option<String>,
}

/// An entry of the books: its postings come to zero in every currency.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "LedgerEntry")]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The entry's id.
    id: Uuid,
    /// Slug of the partner whose book it is in.
    partner: String,
    /// The occasion, such as `received`.
    kind: String,
    /// The order that it is of; null without one.
    order_id: Option<i64>,
    /// The payment that it books; null without one.
    payment_id: Option<Uuid>,
    /// When it happened.
    occurred_at: DateTime<Utc>,
    /// When it was booked.
    recorded_at: DateTime<Utc>,
    /// Its lines.
    postings: Vec<Posting>,
}

impl Entry {
    fn with(line: Line, posting: Posting) -> Self {
        Self {
            id: line.entry_id,
            partner: line.slug,
            kind: line.entry,
            order_id: line.order_id,
            payment_id: line.payment_id,
            occurred_at: line.occurred_at,
            recorded_at: line.recorded_at,
            postings: vec![posting],
        }
    }
}

/// One line of an entry.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "LedgerPosting")]
#[serde(rename_all = "camelCase")]
struct Posting {
    /// The account's id.
    account_id: Uuid,
    /// The account's kind, such as `provider` or `customer`.
    kind: String,
    /// A currency's or an asset's code.
    currency: String,
    /// The connector of a provider's account.
    holder: Option<String>,
    /// A debit is positive.
    amount: JsonDecimal,
}

impl Posting {
    fn of(line: &Line) -> Self {
        Self {
            account_id: line.account_id,
            kind: line.account.clone(),
            currency: line.currency.clone(),
            holder: Some(line.holder.clone()).filter(|holder| !holder.is_empty()),
            amount: JsonDecimal(line.amount.normalize()),
        }
    }
}
