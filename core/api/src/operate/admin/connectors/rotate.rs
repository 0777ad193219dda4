//! `POST /admin/v1/connectors/{name}/rotate`

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{NAME, check_known};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::money::connectors::caller::issue_token;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::overlap;
use crate::platform::error::{Denial, Result};

/// `POST /admin/v1/connectors/{name}/rotate`
pub struct RotateConnectorToken;

impl Endpoint for RotateConnectorToken {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/connectors/{name}/rotate";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Platform];
    const APPROVAL: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Issue a new token to a connector",
        details: "It is shown in this answer only. Earlier tokens end with the overlap.",
        path: &[NAME],
        body: Shape::of::<Rotation>(),
        request: r#"{"overlapSeconds": 3600}"#,
        answer: r#"{"token": "rcn_q0pD1iYH1tqvTn2ZbQ2xXw8Tn0lJ8m2v7c3f5e6d7c8"}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, i32);
    type Response = Json<RotatedToken>;

    fn read(input: &Input, _: &Operator) -> Result<(String, i32)> {
        let Rotation { overlap_seconds } = strict::body(input)?;
        Ok((input.param("name").to_owned(), overlap::seconds(overlap_seconds)?))
    }

    async fn needs_approval(core: &Core, _: &Operator, (name, _): &(String, i32)) -> Result<bool> {
        check_known(core, name).await?;
        Ok(true)
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (name, overlap): (String, i32),
    ) -> Result<Json<RotatedToken>> {
        let mut tx = core.db.begin().await?;
        let found = sqlx::query_scalar!(
            "select name from connector where name = $1 and not runs_inside for update",
            name,
        )
        .fetch_optional(&mut *tx)
        .await?;
        if found.is_none() {
            return Err(Denial::not_found("connector").into());
        }
        let by = operator.actor();
        let token = issue_token(&mut tx, &core.clock, &name, by, overlap).await?;
        let detail = json!({ "overlapSeconds": overlap });
        operator.record(&mut tx, core, "connector.rotate", &name, detail).await?;
        tx.commit().await?;
        Ok(Json(RotatedToken { token: token.expose().to_owned() }))
    }
}

/// A rotation of a connector's token.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ConnectorRotation")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Rotation {
    /// Time that earlier tokens live on, 0 to 2592000; a day if left out.
    overlap_seconds: Option<i32>,
}

/// A new token.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "RotatedConnectorToken")]
pub struct RotatedToken {
    /// For `Authorization: Bearer` on the connectors' listener.
    token: String,
}
