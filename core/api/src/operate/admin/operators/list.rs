//! `GET /admin/v1/operators`

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::Endpoint;
use crate::endpoint::openapi::doc::{Doc, Kind, optional};
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{Page, Part, limit};
use crate::platform::error::Result;

/// Most operators of one answer.
const OPERATORS_MAX: i64 = 200;

/// `GET /admin/v1/operators`
pub struct ListOperators;

impl Endpoint for ListOperators {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/operators";
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "List operators",
        details: "With their roles and live tokens, in the order of their names.",
        query: &[
            optional("after", Kind::Text, "The last name of the page before."),
            limit(OPERATORS_MAX),
        ],
        answer: r#"[{"name": "ada", "roles": ["treasury"], "disabled": false,
            "createdBy": "admin", "createdAt": "2026-03-01T12:00:00Z",
            "tokens": [{"id": "0199a000-0000-7000-8000-00000000000c", "createdBy": "admin",
                "createdAt": "2026-03-01T12:00:00Z", "expiresAt": "2026-05-30T12:00:00Z"}]}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Part;
    type Response = Page<Listed>;

    fn read(input: &Input, _: &Operator) -> Result<Part> {
        Part::read(input, OPERATORS_MAX)
    }

    async fn call(core: &Core, _: Operator, part: Part) -> Result<Page<Listed>> {
        let operators = sqlx::query!(
            "select operator_id, name, roles, disabled_at, created_by, created_at from operator \
             where name > $1 order by name limit $2",
            part.after.unwrap_or_default(),
            part.paging.rows_max(),
        )
        .fetch_all(&core.db)
        .await?;
        let ids: Vec<Uuid> = operators.iter().map(|operator| operator.operator_id).collect();
        let tokens = sqlx::query!(
            "select operator_id, token_id, created_by, created_at, expires_at from operator_token \
             where operator_id = any ($1) and revoked_at is null and expires_at > now() \
             order by created_at",
            &ids,
        )
        .fetch_all(&core.db)
        .await?;
        let of = |operator| {
            let own = tokens.iter().filter(move |token| token.operator_id == operator);
            let listed = own.map(|token| ListedToken {
                id: token.token_id,
                created_by: token.created_by.clone(),
                created_at: token.created_at,
                expires_at: token.expires_at,
            });
            listed.collect()
        };
        let listed = operators.into_iter().map(|row| Listed {
            tokens: of(row.operator_id),
            name: row.name,
            roles: row.roles.iter().filter_map(|role| Role::from_name(role)).collect(),
            disabled: row.disabled_at.is_some(),
            created_by: row.created_by,
            created_at: row.created_at,
        });
        Ok(part.paging.page(listed.collect(), |operator| operator.name.clone()))
    }
}

/// An operator.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "Operator")]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// The operator's name.
    name: String,
    /// Their roles.
    roles: Vec<Role>,
    /// `true` if none of their tokens is accepted.
    disabled: bool,
    /// The operator who has made this one.
    created_by: String,
    /// When they were made.
    created_at: DateTime<Utc>,
    /// Their live tokens.
    tokens: Vec<ListedToken>,
}

/// A live token, without its text.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "OperatorToken")]
#[serde(rename_all = "camelCase")]
struct ListedToken {
    /// The token's id, which its revocation names.
    id: Uuid,
    /// The operator who has issued it.
    created_by: String,
    /// When it was issued.
    created_at: DateTime<Utc>,
    /// When it ends.
    expires_at: DateTime<Utc>,
}
