//! `GET /admin/v1/dependents`: the number of things that an act would touch.

mod partner;

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use rampart_plugins::contract::PolicyKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::partner::{of_part, of_partner};
use crate::Core;
use crate::auth::roles::{BREAK_GLASS, Role};
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::endpoint::{Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::login::session::select_live_sessions;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::{partners, users};
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use rampart_types::UserKey;

/// Number at which counting stops.
pub(in crate::operate) const COUNTED_MAX: i64 = 1_000;
/// Newest rows among which those are looked for that no index finds.
const LOOKED_AT_MAX: i64 = 10_000;

/// `GET /admin/v1/dependents`
pub struct CountDependents;

impl Endpoint for CountDependents {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/dependents";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "Count what depends on something",
        details: "For a look before it is taken away. It is named by one parameter; an API key, a \
                  webhook endpoint, a policy and one of the staff by that and `partner`. Without a \
                  parameter: what depends on the routes. Counting stops at 1,000; open orders are \
                  looked for among the 10,000 newest ones. Members that do not apply are left out.",
        query: &[
            optional("partner", Kind::Text, "A partner's slug."),
            optional("apiKey", Kind::Format("uuid"), "One of the partner's API keys."),
            optional("webhook", Kind::Format("uuid"), "One of the partner's webhook endpoints."),
            optional("policy", Kind::OneOf(&PolicyKind::NAMES), "A kind of policy of the partner."),
            optional("staff", Kind::Format("uuid"), "One of the partner's staff."),
            optional("user", Kind::Format("uuid"), "A user's uuid."),
            optional("pair", Kind::Text, "A currency pair, such as `BTC-EUR`."),
            optional("paymentMethod", Kind::Text, "A payment method, such as `creditCard`."),
            optional("operator", Kind::Text, "An operator's name."),
        ],
        answer: r#"{"openOrders": 12, "apiKeys": 2, "users": 1000, "webhookEndpoints": 1,
            "staff": 3}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Subject;
    type Response = Json<Dependents>;

    fn read(input: &Input, _: &Operator) -> Result<Subject> {
        Subject::read(strict::query(input)?)
    }

    async fn call(core: &Core, _: Operator, subject: Subject) -> Result<Json<Dependents>> {
        let Subject { partner, named } = subject;
        let client = match &partner {
            Some(slug) => Some(partners::find(core, slug).await?.0),
            None => None,
        };
        let mut conn = core.db.acquire().await?;
        let counted = match (client, named) {
            (None, None) => of_routes(&mut conn).await?,
            (Some(client), None) => of_partner(&mut conn, client).await?,
            (Some(client), Some((kind, id))) => of_part(&mut conn, client, kind, &id).await?,
            (None, Some(("user", uuid))) => of_user(&mut conn, &uuid).await?,
            (None, Some(("operator", name))) => of_operator(&mut conn, &name).await?,
            (None, Some((kind, code))) => of_catalogue(&mut conn, kind, &code).await?,
        };
        Ok(Json(counted))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Members {
    partner: Option<String>,
    api_key: Option<String>,
    webhook: Option<String>,
    policy: Option<String>,
    staff: Option<String>,
    user: Option<String>,
    pair: Option<String>,
    payment_method: Option<String>,
    operator: Option<String>,
}

/// The subject whose dependents are counted: a partner, a part of one, or something else by its
/// kind and name.
#[derive(Debug)]
pub struct Subject {
    partner: Option<String>,
    named: Option<(&'static str, String)>,
}

impl Subject {
    /// Reads the parameters.
    ///
    /// # Errors
    /// 422 for more than one subject, and for a part of no partner.
    fn read(members: Members) -> Result<Self> {
        let parts = [
            ("apiKey", members.api_key),
            ("webhook", members.webhook),
            ("policy", members.policy),
            ("staff", members.staff),
        ];
        let others = [
            ("user", members.user),
            ("pair", members.pair),
            ("paymentMethod", members.payment_method),
            ("operator", members.operator),
        ];
        let is_part = parts.iter().any(|(_, id)| id.is_some());
        let given = parts.into_iter().chain(others);
        let mut given = given.filter_map(|(kind, id)| Some((kind, id?)));
        let (named, second) = (given.next(), given.next());
        if second.is_some() {
            return Err(Denial::unprocessable("one subject at a time").into());
        }
        if named.is_some() && is_part != members.partner.is_some() {
            let reason = "partner: with apiKey, webhook, policy or staff, or alone";
            return Err(Denial::unprocessable(reason).into());
        }
        Ok(Self { partner: members.partner, named })
    }
}

/// Numbers of what depends on a subject, each counted up to 1,000.
#[derive(Debug, Default, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependents {
    /// Orders that have ended or not, of both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    orders: Option<i64>,
    /// Orders that have not ended, of both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    open_orders: Option<i64>,
    /// Partners with such orders, or with routes of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    partners: Option<i64>,
    /// Users who are neither disabled nor erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    users: Option<i64>,
    /// Live API keys; of a key the partner's others.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_keys: Option<i64>,
    /// Webhook endpoints to which events are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook_endpoints: Option<i64>,
    /// People with an account in the portal, or an invitation to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    staff: Option<i64>,
    /// Accounts that a user pays from or is paid out to.
    #[serde(skip_serializing_if = "Option::is_none")]
    accounts: Option<i64>,
    /// Images of documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    documents: Option<i64>,
    /// Deliveries that are not sent yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending_deliveries: Option<i64>,
    /// Stored versions of a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    versions: Option<i64>,
    /// Routes.
    #[serde(skip_serializing_if = "Option::is_none")]
    routes: Option<i64>,
    /// Commands that no connector has leased yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    open_commands: Option<i64>,
    /// Tokens that are accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<i64>,
    /// Sessions in browsers.
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<i64>,
    /// The last time that an API key was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<DateTime<Utc>>,
}

async fn of_routes(conn: &mut Connection) -> Result<Dependents> {
    let row = sqlx::query!(
        r#"
        select (select count(*) from (select from route limit $1) routes) as "routes!",
            (select count(*) from (select distinct partner from route
                where partner is not null limit $1) partners) as "partners!",
            (select count(*) from (select from command where state = 'open' and attempt = 0
                limit $1) commands) as "commands!"
        "#,
        COUNTED_MAX,
    )
    .fetch_one(conn)
    .await?;
    Ok(Dependents {
        routes: Some(row.routes),
        partners: Some(row.partners),
        open_commands: Some(row.commands),
        ..Dependents::default()
    })
}

async fn of_user(conn: &mut Connection, uuid: &str) -> Result<Dependents> {
    let UserKey { client, user } = users::find(conn, uuid).await?;
    let row = sqlx::query!(
        r#"
        with orders as (
            (select status from buy_order where client_id = $1 and user_id = $2 limit $3)
            union all
            (select status from sell_order where client_id = $1 and user_id = $2 limit $3)
        )
        select (select count(*) from orders) as "orders!",
            (select count(*) from orders where status in ('pending', 'in progress', 'blocked'))
                as "open_orders!",
            (select count(*) from (select from payment_account where client_id = $1
                and user_id = $2 and sealed is not null limit $4) accounts) as "accounts!",
            (select count(*) from (select from user_document where client_id = $1
                and user_id = $2 and media_type is not null limit $4) documents) as "documents!"
        "#,
        client.uuid(),
        user.uuid(),
        LOOKED_AT_MAX,
        COUNTED_MAX,
    )
    .fetch_one(conn)
    .await?;
    Ok(Dependents {
        orders: Some(row.orders.min(COUNTED_MAX)),
        open_orders: Some(row.open_orders.min(COUNTED_MAX)),
        accounts: Some(row.accounts),
        documents: Some(row.documents),
        ..Dependents::default()
    })
}

/// Those that end once the operator is disabled.
async fn of_operator(conn: &mut Connection, name: &str) -> Result<Dependents> {
    let tokens = sqlx::query_scalar!(
        r#"
        select (select count(*) from (select from operator_token t
            where t.operator_id = o.operator_id and t.revoked_at is null
                and t.expires_at > now() limit $2) tokens) as "tokens!"
        from operator o where o.name = $1
        "#,
        name,
        COUNTED_MAX,
    )
    .fetch_optional(&mut *conn)
    .await?
    .ok_or_else(|| Denial::not_found("operator"))?;
    let sessions = select_live_sessions!(
        "(s.name = $1 or s.identity in (select identity from operator_identity where name = $1))",
        "limit $3",
        name,
        BREAK_GLASS,
        COUNTED_MAX,
    )
    .fetch_all(conn)
    .await?;
    let sessions = i64::try_from(sessions.len()).ok();
    Ok(Dependents { tokens: Some(tokens), sessions, ..Dependents::default() })
}

/// Those of a pair or a payment method. Nothing of it is stored with partners: its open orders tell
/// who uses it.
async fn of_catalogue(conn: &mut Connection, kind: &str, code: &str) -> Result<Dependents> {
    let (pair, method) = if kind == "pair" { (Some(code), None) } else { (None, Some(code)) };
    let row = sqlx::query!(
        r#"
        with open as (
            (select client_id, pair, payment_method from buy_order
             where status in ('in progress', 'blocked')
                 and status not in ('pending', 'completed', 'cancelled')
             order by status, created_at desc, order_id desc limit $3)
            union all
            (select client_id, pair, payment_method from buy_order
             where status = 'pending' and expires_at is null order by created_at desc limit $3)
            union all
            (select client_id, pair, payment_method from buy_order
             where status = 'pending' and expires_at is not null
             order by expires_at desc limit $3)
            union all
            (select client_id, pair, payment_method from sell_order
             where status in ('pending', 'in progress', 'blocked')
                 and status not in ('completed', 'cancelled')
             order by status, created_at desc, order_id desc limit $3)
        )
        select count(*) as "orders!", count(distinct client_id) as "partners!",
            exists (select from currency_pair where currency_pair.pair = $1)
                or exists (select from payment_method where code = $2) as "exists!"
        from open
        where ($1::text is null or open.pair = $1) and ($2::text is null or payment_method = $2)
        "#,
        pair,
        method,
        LOOKED_AT_MAX,
    )
    .fetch_one(conn)
    .await?;
    if !row.exists {
        let subject = if kind == "pair" { "pair" } else { "payment method" };
        return Err(Denial::not_found(subject).into());
    }
    Ok(Dependents {
        open_orders: Some(row.orders.min(COUNTED_MAX)),
        partners: Some(row.partners.min(COUNTED_MAX)),
        ..Dependents::default()
    })
}
