//! `POST /admin/v1/reconciliations` and `GET /admin/v1/reconciliations/{id}`

pub mod list;

use std::collections::BTreeSet;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use rampart_statement::{self as statement, Line, Unreadable};
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::types::Json as JsonColumn;
use uuid::Uuid;

use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, required};
use crate::endpoint::{Body, Created, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::money::payments::store::{MANUAL, currency_of};
use crate::money::reconciliation::{Account, DIFFERENCES_MAX, Difference, Reconciled, reconcile};
use crate::operate::admin::approvals;
use crate::operate::admin::operator::Operator;
use crate::platform::crypto::sha256;
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use rampart_types::{Caip19, CurrencyCode};

/// Roles that read reconciliations.
const READERS: &[Role] = &[Role::Viewer, Role::Treasury, Role::Compliance];
/// Media types of statements.
const STATEMENTS: &[&str] =
    &["application/xml", "text/xml", "text/csv", "application/octet-stream"];
/// Longest name of a connector, in bytes.
const CONNECTOR_BYTES_MAX: usize = 63;
/// Characters of the code of a currency that is no asset.
const MONEY_CODE_CHARS: usize = 3;

/// `POST /admin/v1/reconciliations`
pub struct Reconcile;

impl Endpoint for Reconcile {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/reconciliations";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Treasury];
    const BODY: Body = Body::OneOf(STATEMENTS);
    const DOC: Doc = Doc {
        summary: "Reconcile the statement of an account",
        details: "The body is a camt.053 statement, or CSV with the columns `date`, `amount`, \
                  `currency`, `reference`, `providerReference`, `name`, `iban`, `endToEndId` and \
                  `returnReason`, of at most 10000 lines. A CSV line with a `returnReason` is a \
                  transfer that came back, under its `endToEndId`. Lines are matched to the \
                  connector's payments by reference and amount; new ones that came in are \
                  recorded, for the order whose number their payer has written. Above \
                  `operators.payment_alone_max`, or in coins, they are unmatched, for a second \
                  operator must agree to their order; new coins are deposits. A transfer that \
                  came back finds no order; with an `endToEndId`, it is a difference until its \
                  connector has told of it. 404 for a connector that does not exist.",
        query: &[required(
            "connector",
            Kind::Text,
            "The program whose account it is, or `manual`.",
        )],
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Statement;
    type Response = Created<Reconciliation>;

    fn read(input: &Input, _: &Operator) -> Result<Statement> {
        let Query { connector } = strict::query(input)?;
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if !connector.starts_with(|c: char| c.is_ascii_lowercase())
            || connector.len() > CONNECTOR_BYTES_MAX
            || !connector.bytes().all(plain)
        {
            return Err(Denial::unprocessable("connector: 1 to 63 of a-z, 0-9 and -").into());
        }
        let lines = statement::parse(&input.body)
            .map_err(|Unreadable(why)| Denial::unprocessable(format!("the statement: {why}")))?;
        Ok(Statement { connector, lines, body: input.body.clone() })
    }

    async fn call(
        core: &Core,
        operator: Operator,
        statement: Statement,
    ) -> Result<Created<Reconciliation>> {
        let Statement { connector, lines, body } = statement;
        let (id, actor) = (core.clock.uuid()?, operator.actor());
        check_exists(core, &connector).await?;
        // A line without a name gets the same one however its currency is spelled.
        let lines = statement::named(spelled(core, lines)?);
        let order_max = order_max(core, &operator);
        let result = Box::pin(reconcile(core, &connector, order_max, lines, actor)).await?;
        let mut tx = core.db.begin().await?;
        let created_at = sqlx::query_scalar!(
            "insert into reconciliation (reconciliation_id, connector, matched, recorded, \
             differences, digest, actor, accounts) values ($1, $2, $3, $4, $5, $6, $7, $8) \
             returning created_at",
            id,
            connector,
            result.matched,
            result.recorded,
            JsonColumn(&result.differences) as JsonColumn<&Vec<Difference>>,
            &sha256(&body)[..],
            actor,
            JsonColumn(&result.accounts) as JsonColumn<&BTreeSet<Account>>,
        )
        .fetch_one(&mut *tx)
        .await?;
        keep_taken(&mut tx, id, &connector, &result).await?;
        let target = id.to_string();
        let detail = json!({
            "connector": connector,
            "matched": result.matched,
            "recorded": result.recorded,
            "differences": result.differences.len(),
        });
        operator.record(&mut tx, core, "reconciliation.create", &target, detail).await?;
        tx.commit().await?;
        Ok(Created(Reconciliation::new(id, connector, result, created_at)))
    }
}

/// Stores the payments that the statement has, for those of other accounts and its other pages. They are
/// in one order, so that two transactions never wait for each other.
///
/// # Errors
/// The database's.
async fn keep_taken(
    conn: &mut Connection,
    id: Uuid,
    connector: &str,
    result: &Reconciled,
) -> Result<(), sqlx::Error> {
    let (references, kinds): (Vec<String>, Vec<String>) = result.taken.iter().cloned().unzip();
    sqlx::query!(
        "insert into reconciled_payment (connector, provider_reference, kind, reconciliation_id) \
         select $1, taken.reference, taken.kind, $2 \
         from unnest($3::text[], $4::text[]) taken (reference, kind) \
         on conflict do nothing",
        connector,
        id,
        &references,
        &kinds,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The largest payment that finds its order by a statement of this operator; `None` is any.
fn order_max(core: &Core, operator: &Operator) -> Option<Decimal> {
    (!operator.is_break_glass()).then(|| approvals::alone_max(core))
}

/// Refuses the name of a connector that does not exist: it is a slip, and a book of its own.
///
/// # Errors
/// 404 for such a name; when the database cannot be read.
async fn check_exists(core: &Core, connector: &str) -> Result<()> {
    let exists = sqlx::query_scalar!(
        r#"select exists (select from connector where name = $1) as "exists!""#,
        connector,
    );
    if connector == MANUAL || exists.fetch_one(&core.db).await? {
        return Ok(());
    }
    Err(Denial::not_found("connector").into())
}

/// Spells currencies and assets as the books do.
///
/// # Errors
/// 422 for a line whose amount is of neither.
fn spelled(core: &Core, lines: Vec<Line>) -> Result<Vec<Line>, Denial> {
    let spell = |line: Line| {
        let (currency, is_coins) = currency_of(core, &line.currency);
        let is_code = currency.parse::<CurrencyCode>().is_ok();
        let is_named = match is_coins {
            true => is_code || currency.parse::<Caip19>().is_ok(),
            false => is_code && currency.len() == MONEY_CODE_CHARS,
        };
        if is_named {
            return Ok(Line { currency, ..line });
        }
        let reason = format!("the statement: '{currency}' is no currency and no asset");
        Err(Denial::unprocessable(reason))
    };
    lines.into_iter().map(spell).collect()
}

/// A statement to be reconciled.
#[derive(Debug)]
pub struct Statement {
    connector: String,
    lines: Vec<Line>,
    body: Bytes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    connector: String,
}

/// A reconciliation, for the OpenAPI document.
const EXAMPLE: &str = r#"{"id": "0199a000-0000-7000-8000-000000000026", "connector": "bank",
    "matched": 12, "recorded": 1, "differences": [{"side": "amount",
    "providerReference": "2026-03-01-17", "amount": 250, "currency": "EUR",
    "bookedAmount": 205}], "hasMore": false, "createdAt": "2026-03-02T08:00:00Z"}"#;

/// A statement that was laid beside the books.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reconciliation {
    /// The reconciliation's id.
    id: Uuid,
    /// The connector whose statement it is.
    connector: String,
    /// Lines that were payments already.
    matched: i32,
    /// Lines that became payments.
    recorded: i32,
    /// Lines and entries that only one side has, or that differ; at most 1000.
    differences: Vec<Difference>,
    /// `true` if there are more differences than are listed.
    has_more: bool,
    /// When the statement was uploaded.
    created_at: DateTime<Utc>,
}

impl Reconciliation {
    fn new(id: Uuid, connector: String, result: Reconciled, created_at: DateTime<Utc>) -> Self {
        let Reconciled { matched, recorded, differences, .. } = result;
        let has_more = differences.len() > DIFFERENCES_MAX;
        let differences = differences.into_iter().take(DIFFERENCES_MAX).map(Difference::told);
        let differences = differences.collect();
        Self { id, connector, matched, recorded, differences, has_more, created_at }
    }
}

/// `GET /admin/v1/reconciliations/{id}`
pub struct ReadReconciliation;

impl Endpoint for ReadReconciliation {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/reconciliations/{id}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = READERS;
    const DOC: Doc = Doc {
        summary: "Read a reconciliation",
        details: "The lines that were matched and recorded, and the differences on both sides.",
        path: &[required("id", Kind::Format("uuid"), "The reconciliation's id.")],
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = String;
    type Response = Json<Reconciliation>;

    fn read(input: &Input, _: &Operator) -> Result<String> {
        Ok(input.param("id").to_owned())
    }

    async fn call(core: &Core, _: Operator, text: String) -> Result<Json<Reconciliation>> {
        let unknown = || Denial::not_found("reconciliation");
        let id: Uuid = text.parse().map_err(|_| unknown())?;
        let row = sqlx::query!(
            r#"
            select connector, matched, recorded, created_at,
                differences as "differences: JsonColumn<Vec<Difference>>"
            from reconciliation where reconciliation_id = $1
            "#,
            id,
        )
        .fetch_optional(&core.db)
        .await?;
        let row = row.ok_or_else(unknown)?;
        let result = Reconciled {
            matched: row.matched,
            recorded: row.recorded,
            differences: row.differences.0,
            ..Reconciled::default()
        };
        Ok(Json(Reconciliation::new(id, row.connector, result, row.created_at)))
    }
}
