//! `POST /admin/v1/operators/{name}/tokens` and `DELETE …/{id}`

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::{IssuedToken, NAME, check_known, find, lifetime};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, required};
use crate::endpoint::{Body, Created, Endpoint, NoContent};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::overlap;
use crate::platform::error::{Denial, Result};

/// Most live tokens of one operator.
const TOKENS_MAX: i64 = 100;
/// An issued token, for the OpenAPI document.
pub(super) const EXAMPLE: &str = r#"{"name": "ada",
    "tokenId": "0199a000-0000-7000-8000-00000000000c",
    "token": "rop_q0pD1iYH1tqvTn2ZbQ2xXw8Tn0lJ8m2v7c3f5e6d7c8",
    "expiresAt": "2026-05-30T12:00:00Z"}"#;

/// `POST /admin/v1/operators/{name}/tokens`
pub struct IssueOperatorToken;

impl Endpoint for IssueOperatorToken {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/operators/{name}/tokens";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = Role::ALL;
    // Every operator has a token of their own issued; one for somebody else is the owners' matter.
    const APPROVERS: &'static [Role] = &[Role::Owner];
    const APPROVAL: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Issue a token to an operator",
        details: "It is shown in this answer only. Earlier tokens end with the overlap. Operators \
                  issue tokens to themselves, owners to everybody with a second person. 409 while \
                  100 live on.",
        path: &[NAME],
        body: Shape::of::<NewToken>(),
        request: r#"{"expiresInSeconds": 7776000, "overlapSeconds": 86400}"#,
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, NewToken);
    type Response = Created<IssuedToken>;

    fn read(input: &Input, operator: &Operator) -> Result<(String, NewToken)> {
        let new: NewToken = strict::body(input)?;
        lifetime(new.expires_in_seconds)?;
        overlap::seconds(new.overlap_seconds)?;
        let name = input.param("name").to_owned();
        operator.check_tokens_of(&name)?;
        Ok((name, new))
    }

    async fn needs_approval(
        core: &Core,
        operator: &Operator,
        (name, _): &(String, NewToken),
    ) -> Result<bool> {
        check_known(core, name).await?;
        Ok(!operator.has_row(name))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (name, new): (String, NewToken),
    ) -> Result<Created<IssuedToken>> {
        let overlap = overlap::seconds(new.overlap_seconds)?;
        let (seconds, by) = (lifetime(new.expires_in_seconds)?, operator.actor());
        let mut tx = core.db.begin().await?;
        let id = find(&mut tx, &name).await?;
        sqlx::query!(
            "update operator_token \
             set expires_at = least(expires_at, now() + make_interval(secs => $2::int)) \
             where operator_id = $1 and revoked_at is null",
            id,
            overlap,
        )
        .execute(&mut *tx)
        .await?;
        let live = sqlx::query_scalar!(
            "select count(*) as \"live!\" from operator_token \
             where operator_id = $1 and revoked_at is null and expires_at > now()",
            id,
        );
        if live.fetch_one(&mut *tx).await? >= TOKENS_MAX {
            let reason = format!("{TOKENS_MAX} tokens live on: revoke one, or end their overlap");
            return Err(Denial::conflict(reason).into());
        }
        let issued = IssuedToken::issue(&mut tx, core, id, name.clone(), seconds, by).await?;
        let detail = json!({"tokenId": issued.token_id, "expiresAt": issued.expires_at,
            "overlapSeconds": overlap});
        operator.record(&mut tx, core, "operator.issue-token", &name, detail).await?;
        tx.commit().await?;
        Ok(Created(issued))
    }
}

/// A token to be issued.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "NewOperatorToken")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewToken {
    /// Lifetime, 1 to 31536000; 90 days if left out.
    expires_in_seconds: Option<i32>,
    /// Time that earlier tokens live on, 0 to 2592000; a day if left out.
    overlap_seconds: Option<i32>,
}

/// `DELETE /admin/v1/operators/{name}/tokens/{id}`
pub struct RevokeOperatorToken;

impl Endpoint for RevokeOperatorToken {
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/admin/v1/operators/{name}/tokens/{id}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "Revoke a token of an operator",
        details: "One's own, or as an owner anybody's. It is refused from the next call on.",
        path: &[NAME, required("id", Kind::Format("uuid"), "The token's id.")],
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, Uuid);
    type Response = NoContent;

    fn read(input: &Input, operator: &Operator) -> Result<(String, Uuid)> {
        let name = input.param("name").to_owned();
        operator.check_tokens_of(&name)?;
        let id = input.param("id").parse().map_err(|_| Denial::not_found("token"))?;
        Ok((name, id))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (name, token): (String, Uuid),
    ) -> Result<NoContent> {
        let mut tx = core.db.begin().await?;
        let id = find(&mut tx, &name).await?;
        let revoked = sqlx::query!(
            "update operator_token set revoked_at = now() \
             where operator_id = $1 and token_id = $2 and revoked_at is null",
            id,
            token,
        )
        .execute(&mut *tx)
        .await?;
        if revoked.rows_affected() == 0 {
            return Err(Denial::not_found("token").into());
        }
        let detail = json!({ "tokenId": token });
        operator.record(&mut tx, core, "operator.revoke-token", &name, detail).await?;
        tx.commit().await?;
        Ok(NoContent)
    }
}
