//! `POST /admin/v1/operators`

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{IssuedToken, is_known, lifetime, stored};
use crate::Core;
use crate::auth::roles::{BREAK_GLASS, Role, is_operator_name};
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Created, Endpoint};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Error, Result};

/// `POST /admin/v1/operators`
pub struct CreateOperator;

impl Endpoint for CreateOperator {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/operators";
    const STATUSES: &'static [StatusCode] = &[StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Owner];
    const APPROVAL: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Create an operator",
        details: "With a first token, which is shown in this answer only.",
        body: Shape::of::<NewOperator>(),
        request: r#"{"name": "ada", "roles": ["treasury"], "expiresInSeconds": 7776000}"#,
        answer: super::tokens::EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = NewOperator;
    type Response = Created<IssuedToken>;

    fn read(input: &Input, _: &Operator) -> Result<NewOperator> {
        let new: NewOperator = strict::body(input)?;
        if new.name == BREAK_GLASS {
            return Err(Denial::unprocessable("name: reserved for the break-glass owner").into());
        }
        if !is_operator_name(&new.name) {
            let reason = "name: 1 to 63 of a-z, 0-9, -, _, . and @, and not edge, page, sandbox \
                          or user";
            return Err(Denial::unprocessable(reason).into());
        }
        stored(&new.roles)?;
        lifetime(new.expires_in_seconds)?;
        Ok(new)
    }

    async fn needs_approval(core: &Core, _: &Operator, new: &NewOperator) -> Result<bool> {
        match is_known(core, &new.name).await? {
            true => Err(Denial::conflict("name is taken").into()),
            false => Ok(true),
        }
    }

    async fn call(
        core: &Core,
        operator: Operator,
        new: NewOperator,
    ) -> Result<Created<IssuedToken>> {
        let NewOperator { name, roles, expires_in_seconds } = new;
        let (id, roles, by) = (core.clock.uuid()?, stored(&roles)?, operator.actor());
        let mut tx = core.db.begin().await?;
        sqlx::query!(
            "insert into operator (operator_id, name, roles, created_by, created_at) \
             values ($1, $2, $3, $4, now())",
            id,
            name,
            &roles,
            by,
        )
        .execute(&mut *tx)
        .await
        .map_err(|error| match error.as_database_error().and_then(|e| e.constraint()) {
            Some("operator_name_key") => Denial::conflict("name is taken").into(),
            _ => Error::from(error),
        })?;
        let seconds = lifetime(expires_in_seconds)?;
        let issued = IssuedToken::issue(&mut tx, core, id, name.clone(), seconds, by).await?;
        let detail = json!({"roles": roles, "tokenId": issued.token_id});
        operator.record(&mut tx, core, "operator.create", &name, detail).await?;
        tx.commit().await?;
        Ok(Created(issued))
    }
}

/// An operator to be created.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewOperator {
    /// 1 to 63 of `a-z`, `0-9`, `-`, `_`, `.` and `@`, and not `admin`, `edge`, `page`, `sandbox` or
    /// `user`; unique and for good.
    name: String,
    /// At least one.
    roles: Vec<Role>,
    /// Lifetime of the first token, 1 to 31536000; 90 days if left out.
    expires_in_seconds: Option<i32>,
}
