//! `GET /admin/v1/reconciliations`

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::READERS;
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::money::reconciliation::DIFFERENCES_MAX;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{AFTER, Page, Paging, Search, limit};
use crate::platform::error::Result;

/// Most reconciliations of one answer.
const RECONCILIATIONS_MAX: i64 = 200;

/// `GET /admin/v1/reconciliations`
pub struct ListReconciliations;

impl Endpoint for ListReconciliations {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/reconciliations";
    const ROLES: &'static [Role] = READERS;
    const DOC: Doc = Doc {
        summary: "List reconciliations",
        details: "Newest first, with the number of their differences.",
        query: &[
            optional("connector", Kind::Text, "The program whose accounts they are of."),
            AFTER,
            limit(RECONCILIATIONS_MAX),
        ],
        answer: r#"[{"id": "0199a000-0000-7000-8000-000000000026", "connector": "bank",
            "actor": "ada", "matched": 12, "recorded": 1, "differences": 1,
            "hasMore": false, "createdAt": "2026-03-02T08:00:00Z"}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Search<Criteria>;
    type Response = Page<Listed>;

    fn read(input: &Input, _: &Operator) -> Result<Search<Criteria>> {
        let criteria: Criteria = strict::query(input)?;
        let paging = Paging::of(&input.head, criteria.limit.as_deref(), RECONCILIATIONS_MAX)?;
        Ok(Search { criteria, paging })
    }

    async fn call(core: &Core, _: Operator, search: Search<Criteria>) -> Result<Page<Listed>> {
        let found = sqlx::query_as!(
            Listed,
            r#"
            select reconciliation_id as id, connector, actor, matched, recorded,
                least(jsonb_array_length(differences), $4::int) as "differences!",
                jsonb_array_length(differences) > $4::int as "has_more!", created_at
            from reconciliation
            where ($1::text is null or connector = $1)
                and ($2::uuid is null or reconciliation_id < $2)
            order by reconciliation_id desc limit $3
            "#,
            search.criteria.connector,
            search.criteria.after,
            search.paging.rows_max(),
            i32::try_from(DIFFERENCES_MAX).unwrap_or(i32::MAX),
        )
        .fetch_all(&core.db)
        .await?;
        Ok(search.paging.page(found, |reconciliation| reconciliation.id))
    }
}

/// Criteria of reconciliations; one that is absent is met by all.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Criteria {
    connector: Option<String>,
    after: Option<Uuid>,
    limit: Option<String>,
}

/// A reconciliation in the list.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ListedReconciliation")]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// The reconciliation's id.
    id: Uuid,
    /// The connector whose statement it is.
    connector: String,
    /// The operator who has uploaded the statement.
    actor: String,
    /// Lines that were payments already.
    matched: i32,
    /// Lines that became payments.
    recorded: i32,
    /// Number of differences that are listed: at most 1000.
    differences: i32,
    /// `true` if there are more differences than are listed.
    has_more: bool,
    /// When the statement was uploaded.
    created_at: DateTime<Utc>,
}
