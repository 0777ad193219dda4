//! `GET /api/v2/buy/orders`: the caller's orders, newest first, by page.

mod cursor;

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;
use url::form_urlencoded;
use uuid::Uuid;

pub(crate) use self::cursor::Cursor;
use super::Order;
use super::read::{OrderV2, order_example};
use super::row::{OrderRow, select_orders};
use super::status::OrderStatus;
use crate::Core;
use crate::auth::caller::Reader;
use crate::endpoint::openapi::doc::{Doc, Kind, Member, optional};
use crate::endpoint::{Endpoint, Respond, Success};
use crate::http::fields::Fields;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Code, Result};
use crate::tenancy::tenants::Scope;
use rampart_types::{PartnerReference, UserId};

/// Default number of orders of a page.
const PAGE_ORDERS: usize = 20;
/// Most orders of a page.
const PAGE_ORDERS_MAX: usize = 100;

/// Parameters of a list of orders, bought or sold.
pub(crate) const PARAMETERS: &[Member] = &[
    optional("limit", Kind::Integer(1, 100), "Most orders of the page; 20 if omitted."),
    optional("cursor", Kind::Text, "Start of the page: `X-Next-Cursor` of the previous one."),
    optional("status", Kind::OneOf(&OrderStatus::NAMES), "Orders in this state only."),
    optional("from", Kind::Format("date-time"), "Orders created at this time or later."),
    optional("to", Kind::Format("date-time"), "Orders created before this time."),
    optional("partnerOrderIdentifier", Kind::Sized(1, 255), "Orders with this identifier only."),
];

/// Version 2, the only one.
pub struct V2;

impl Endpoint for V2 {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/api/v2/buy/orders";
    const SCOPE: Option<Scope> = Some(Scope::OrdersRead);
    const ERRORS: &'static [Code] = &[Code::OrderIdMalformed, Code::RequestMalformed];
    const DOC: Doc = Doc {
        summary: "List orders, newest first",
        details: "A page at a time: follow `Link`, or send `X-Next-Cursor` as `cursor`.",
        query: PARAMETERS,
        answer: concat!("[", order_example!(), "]"),
        ..Doc::NONE
    };
    type Caller = Reader;
    type Request = Filter;
    type Response = Page<OrderV2>;

    fn read(input: &Input, _: &Reader) -> Result<Filter> {
        Filter::read(input.head.query.as_deref())
    }

    async fn call(core: &Core, caller: Reader, filter: Filter) -> Result<Page<OrderV2>> {
        let orders = find(core, &caller, &filter).await?;
        Ok(filter.page(Self::PATH, orders, |order| Cursor::after(order.created_at, order.id)))
    }
}

/// The filter of a list, and its page size.
#[derive(Debug)]
pub struct Filter {
    limit: usize,
    cursor: Option<Cursor>,
    pub(crate) status: Option<OrderStatus>,
    /// Earliest time of creation.
    from: Option<DateTime<Utc>>,
    /// Time before which orders were created.
    to: Option<DateTime<Utc>>,
    pub(crate) reference: Option<PartnerReference>,
    /// The query without its cursor, for the link to the next page.
    query: String,
}

impl Filter {
    /// # Errors
    /// ER034 for an identifier that no order can have, ER048 with the parameter's name otherwise.
    pub(crate) fn read(query: Option<&str>) -> Result<Self> {
        let mut fields = Fields::of_query(query);
        let limit = fields.optional("limit", Code::RequestMalformed, |value| {
            let limit = value.as_str()?.parse().ok()?;
            (1..=PAGE_ORDERS_MAX).contains(&limit).then_some(limit)
        });
        let cursor = fields
            .optional("cursor", Code::RequestMalformed, |value| Cursor::parse(value.as_str()?));
        let status = fields.optional("status", Code::RequestMalformed, |value| {
            OrderStatus::from_name(value.as_str()?)
        });
        let from = fields.optional("from", Code::RequestMalformed, timestamp);
        let to = fields.optional("to", Code::RequestMalformed, timestamp);
        let reference =
            fields.optional("partnerOrderIdentifier", Code::OrderIdMalformed, |value| {
                value.as_str()?.parse().ok()
            });
        let query = without_cursor(query.unwrap_or_default());
        let limit = limit.unwrap_or(PAGE_ORDERS);
        fields.finish(Some(Self { limit, cursor, status, from, to, reference, query }))
    }

    /// Earliest time of creation, with its default.
    pub(crate) fn start(&self) -> DateTime<Utc> {
        self.from.unwrap_or(DateTime::UNIX_EPOCH)
    }

    /// The cursor that listed orders come after.
    pub(crate) fn end(&self) -> Cursor {
        Cursor::start(self.cursor, self.to)
    }

    /// Number of rows to fetch: one more than the page takes, to detect a next page.
    pub(crate) fn fetch_limit(&self) -> i64 {
        i64::try_from(self.limit + 1).unwrap_or(i64::MAX)
    }

    /// The page of the fetched orders; `cursor` gives the start of a page after an order.
    pub(crate) fn page<O, V: From<O>>(
        &self,
        path: &str,
        mut found: Vec<O>,
        cursor: impl Fn(&O) -> Cursor,
    ) -> Page<V> {
        let more = found.len() > self.limit;
        found.truncate(self.limit);
        let next = found.last().filter(|_| more).map(|last| cursor(last).encode());
        Page {
            next: next.map(|cursor| (self.link(path, &cursor), cursor)),
            orders: found.into_iter().map(V::from).collect(),
        }
    }

    /// `Link` to the page that starts after the cursor (RFC 8288).
    fn link(&self, path: &str, cursor: &str) -> String {
        let separator = if self.query.is_empty() { "" } else { "&" };
        format!("<{path}?{}{separator}cursor={cursor}>; rel=\"next\"", self.query)
    }
}

fn timestamp(value: &Value) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(value.as_str()?).ok().map(Into::into)
}

fn without_cursor(query: &str) -> String {
    let others = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name != "cursor");
    form_urlencoded::Serializer::new(String::new()).extend_pairs(others).finish()
}

/// Reads the orders by one statement for each index: the partner's identifier, the user, the
/// tenant with a status or without one.
async fn find(core: &Core, caller: &Reader, filter: &Filter) -> Result<Vec<Order>> {
    let Reader { client, user } = caller;
    let (from, before, limit) = (filter.start(), filter.end(), filter.fetch_limit());
    let status = filter.status.map(OrderStatus::as_str);
    let client_id = client.id().uuid();
    let rows = match (&filter.reference, user.map(UserId::uuid)) {
        (Some(reference), user) => {
            select_orders!(
                "where client_id = $1 and partner_reference = $2 \
                 and ($3::uuid is null or user_id = $3) and ($4::text is null or status = $4) \
                 and created_at >= $5 and (created_at, order_id) < ($6, $7) \
                 order by created_at desc, order_id desc limit $8",
                client_id,
                reference.as_str(),
                user,
                status,
                from,
                before.created_at,
                before.order_id,
                limit,
            )
            .fetch_all(&core.db)
            .await?
        }
        (None, Some(user)) => {
            select_orders!(
                "where client_id = $1 and user_id = $2 and ($3::text is null or status = $3) \
                 and created_at >= $4 and (created_at, order_id) < ($5, $6) \
                 order by created_at desc, order_id desc limit $7",
                client_id,
                user,
                status,
                from,
                before.created_at,
                before.order_id,
                limit,
            )
            .fetch_all(&core.db)
            .await?
        }
        (None, None) => find_of_client(core, client_id, filter).await?,
    };
    rows.into_iter().map(|row| row.order(&client.catalogue)).collect()
}

/// Reads the orders of a client. The server may keep one plan for every value of a parameter, so an
/// index that has some statuses only must be led to by the statement's text.
async fn find_of_client(core: &Core, client: Uuid, filter: &Filter) -> Result<Vec<OrderRow>> {
    let (from, before, limit) = (filter.start(), filter.end(), filter.fetch_limit());
    macro_rules! page {
        ($filter:literal $(, $status:expr)?) => {
            select_orders!(
                $filter,
                client,
                $($status,)?
                from,
                before.created_at,
                before.order_id,
                limit,
            )
            .fetch_all(&core.db)
            .await?
        };
    }
    Ok(match filter.status {
        None => page!(
            "where client_id = $1 \
                 and created_at >= $2 and (created_at, order_id) < ($3, $4) \
                 order by created_at desc, order_id desc limit $5"
        ),
        Some(OrderStatus::Pending) => page!(
            "where client_id = $1 and status = 'pending' \
                 and created_at >= $2 and (created_at, order_id) < ($3, $4) \
                 order by created_at desc, order_id desc limit $5"
        ),
        Some(status) => page!(
            "where client_id = $1 and status = $2 and status <> 'pending' \
                 and created_at >= $3 and (created_at, order_id) < ($4, $5) \
                 order by created_at desc, order_id desc limit $6",
            status.as_str()
        ),
    })
}

/// A page of orders, with link and cursor of the next one.
#[derive(Debug)]
pub struct Page<V> {
    orders: Vec<V>,
    next: Option<(String, String)>,
}

impl<V: JsonSchema + Serialize + Send> Respond for Page<V> {
    fn respond(self) -> Result<Reply> {
        let mut reply = Reply::json(StatusCode::OK, &self.orders)?;
        if let Some((link, cursor)) = &self.next {
            reply.set("link", link);
            reply.set("x-next-cursor", cursor);
        }
        Ok(reply)
    }

    fn successes(schemas: &mut SchemaGenerator) -> Vec<Success> {
        let headers = &[
            ("Link", "`rel=\"next\"`: the next page, if there is one."),
            ("X-Next-Cursor", "The `cursor` of the next page, if there is one."),
        ];
        vec![Success { headers, ..Success::json::<Vec<V>>(StatusCode::OK, schemas) }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_invalid_parameter_is_reported() {
        let error = Filter::read(Some("limit=101&partnerOrderIdentifier=%00")).unwrap_err();
        assert!(error.is(Code::RequestMalformed) && error.is(Code::OrderIdMalformed));
        for query in [
            "limit=0",
            "limit=x",
            "limit=",
            "cursor=",
            "cursor=AAAA",
            "status=done",
            "from=yesterday",
            "to=2026-01-01",
        ] {
            assert!(Filter::read(Some(query)).unwrap_err().is(Code::RequestMalformed), "{query}");
        }
    }

    #[test]
    fn the_next_page_keeps_the_filter() {
        let filter = Filter::read(Some("status=in+progress&limit=5&cursor=")).unwrap_err();
        assert!(filter.is(Code::RequestMalformed));
        let filter = Filter::read(Some("status=in+progress&limit=5")).unwrap();
        assert_eq!((filter.limit, filter.status), (5, Some(OrderStatus::InProgress)));
        assert_eq!(
            filter.link(V2::PATH, "abc"),
            "</api/v2/buy/orders?status=in+progress&limit=5&cursor=abc>; rel=\"next\""
        );
        let link = Filter::read(None).unwrap().link(V2::PATH, "abc");
        assert_eq!(link, "</api/v2/buy/orders?cursor=abc>; rel=\"next\"");
    }
}
