//! `GET /admin/v1/orders/{id}`

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{FoundOrder, ID};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::error::Result;
use crate::trading::quotes::Side;
use rampart_types::{JsonDecimal, decimal};

/// An order in full, for the OpenAPI document.
pub(in crate::operate::admin) const EXAMPLE: &str = r#"{
    "pair": "BTC-EUR", "status": "pending", "userId": null, "fiatAmount": 100,
    "fiatCurrency": "EUR", "cryptoAmount": 0.0019, "cryptoCurrency": "BTC",
    "createdAt": "2026-03-01T12:00:00Z", "partner": "acme", "side": "buy",
    "id": 1234567890123456, "policyDecisions": [],
    "timeline": [{"at": "2026-03-01T12:00:00Z", "from": null, "to": "pending",
        "cause": "confirmed", "reason": null, "actor": "edge"}]
}"#;

/// `GET /admin/v1/orders/{id}`
pub struct ReadOrder;

impl Endpoint for ReadOrder {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/orders/{id}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = Role::ALL;
    // The wallet's address is a person's.
    const READ_AUDIT: Option<&'static str> = Some("order.read");
    const DOC: Doc = Doc {
        summary: "Read an order",
        details: "In full, with its timeline and the decisions of its policies.",
        path: &[ID],
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = String;
    type Response = Json<Order>;

    fn read(input: &Input, _: &Operator) -> Result<String> {
        Ok(input.param("id").to_owned())
    }

    async fn call(core: &Core, _: Operator, id: String) -> Result<Json<Order>> {
        let order = FoundOrder::find(core, &id).await?;
        Ok(Json(order.detail(core).await?))
    }
}

/// An order in full: the members of its row besides those named here.
#[derive(Debug, JsonSchema, Serialize)]
pub struct Order {
    #[serde(flatten)]
    row: Map<String, Value>,
    /// The partner's slug.
    partner: Option<String>,
    /// `buy` or `sell`, seen from the user.
    #[schemars(with = "String")]
    side: Side,
    /// The order's number.
    id: i64,
    /// Every change of state, oldest first.
    timeline: Vec<Step>,
}

/// A change of an order's state.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "OrderStep")]
struct Step {
    /// When it changed.
    at: DateTime<Utc>,
    /// The state before; null for the first.
    from: Option<String>,
    /// The state after.
    to: String,
    /// The event, such as `payment-received`.
    cause: String,
    /// The operator's words.
    reason: Option<String>,
    /// The author: `edge`, `sandbox`, `page`, or an operator.
    actor: String,
}

impl FoundOrder {
    /// The whole order.
    pub(in crate::operate::admin) async fn detail(self, core: &Core) -> Result<Order> {
        let mut row = in_camel_case(self.row(core).await?);
        hide_sealed_inputs(&mut row);
        let snapshot = core.snapshots.current();
        let partner = snapshot.tenants.get(&self.key.client).map(|tenant| tenant.slug.to_string());
        let (side, id) = (self.side, self.key.order.number());
        Ok(Order { row, partner, side, id, timeline: self.timeline(core).await? })
    }

    async fn timeline(self, core: &Core) -> Result<Vec<Step>, sqlx::Error> {
        sqlx::query_as!(
            Step,
            r#"
            select at as "at!", from_status as "from", to_status as "to!", cause as "cause!",
                reason, actor as "actor!"
            from (
                select at, transition_id, from_status, to_status, cause, reason, actor
                from order_transition where client_id = $1 and order_id = $2 and not $3
                union all
                select at, transition_id, from_status, to_status, cause, reason, actor
                from sell_order_transition where client_id = $1 and order_id = $2 and $3
            ) steps order by at, transition_id
            "#,
            self.key.client.uuid(),
            self.key.order.number(),
            self.side == Side::Sell,
        )
        .fetch_all(&core.db)
        .await
    }
}

/// Removes from decisions what a replay alone may open: a signature's payload.
fn hide_sealed_inputs(row: &mut Map<String, Value>) {
    let decisions = row.get_mut("policyDecisions").and_then(Value::as_array_mut);
    let decisions = decisions.into_iter().flatten();
    for decision in decisions.filter(|decision| decision["kind"] == "signature") {
        if let Value::Object(members) = decision {
            members.remove("input");
        }
    }
}

/// A row with its columns named as members are.
fn in_camel_case(row: Value) -> Map<String, Value> {
    let Value::Object(columns) = row else { return Map::new() };
    let rename = |(column, value): (String, Value)| {
        let mut words = column.split('_');
        let mut name = words.next().unwrap_or("").to_owned();
        for word in words {
            let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
            name += &first.to_ascii_uppercase();
            name += rest;
        }
        // Postgres writes a column's zeros behind its last digit, and a time with `+00:00`.
        let value = if let Some(number) = decimal::from_number(&value) {
            json!(JsonDecimal(number))
        } else if let Some(at) = time(&column, &value) {
            json!(at)
        } else {
            value
        };
        (name, value)
    };
    columns.into_iter().map(rename).collect()
}

/// The time in a column that is named as one; the others may have texts that look like times.
fn time(column: &str, value: &Value) -> Option<DateTime<Utc>> {
    if column.ends_with("_at") { value.as_str()?.parse().ok() } else { None }
}
