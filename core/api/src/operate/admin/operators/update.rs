//! `PATCH /admin/v1/operators/{name}`

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{NAME, check_known, find, stored};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, NoContent};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::approvals::withdraw;
use crate::operate::admin::operator::Operator;
use crate::platform::audit::{self, Entry};
use crate::platform::error::Result;

/// `PATCH /admin/v1/operators/{name}`
pub struct UpdateOperator;

impl Endpoint for UpdateOperator {
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/admin/v1/operators/{name}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Owner];
    const APPROVAL: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Update an operator's roles, disable or enable one",
        details: "Members that are left out stay as they are. It counts from the next call on. To \
                  disable somebody takes one person, everything else two. What the operator has \
                  agreed to waits again.",
        path: &[NAME],
        body: Shape::of::<Change>(),
        request: r#"{"roles": ["treasury", "support"]}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Update;
    type Response = NoContent;

    fn read(input: &Input, _: &Operator) -> Result<Update> {
        let Change { roles, disabled } = strict::body(input)?;
        let roles = roles.as_deref().map(stored).transpose()?;
        let name = input.param("name").to_owned();
        Ok(Update { name, roles, disabled, detail: input.document.clone() })
    }

    async fn needs_approval(core: &Core, _: &Operator, update: &Update) -> Result<bool> {
        check_known(core, &update.name).await?;
        Ok(update.roles.is_some() || update.disabled == Some(false))
    }

    async fn call(core: &Core, operator: Operator, update: Update) -> Result<NoContent> {
        let Update { name, roles, disabled, detail } = update;
        let mut tx = core.db.begin().await?;
        let id = find(&mut tx, &name).await?;
        sqlx::query!(
            "update operator set roles = coalesce($2, roles), \
                 disabled_at = case when $3::boolean is null then disabled_at \
                     when $3 then coalesce(disabled_at, now()) end \
             where operator_id = $1",
            id,
            roles.as_deref(),
            disabled,
        )
        .execute(&mut *tx)
        .await?;
        // Before it is withdrawn, if it is of the operator who is changed.
        let approval = operator.take_approval(&mut tx).await?;
        if disabled == Some(true) {
            withdraw::of_disabled(&mut tx, &name).await?;
        }
        if let Some(roles) = &roles {
            let roles: Vec<_> = roles.iter().filter_map(|role| Role::from_name(role)).collect();
            withdraw::beyond_roles(&mut tx, core, &id.to_string(), &roles).await?;
        }
        let actor = operator.actor();
        if let Some(used) = approval {
            used.record(&mut tx, core, actor).await?;
        }
        let entry = Entry { actor, action: "operator.change", target: &name, detail };
        audit::record(&mut tx, core, entry).await?;
        tx.commit().await?;
        Ok(NoContent)
    }
}

/// A change of one operator.
#[derive(Debug)]
pub struct Update {
    name: String,
    roles: Option<Vec<String>>,
    disabled: Option<bool>,
    /// The body, for the audit.
    detail: Value,
}

/// The settings of an operator; one that is left out stays as it is.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "OperatorUpdate")]
#[serde(deny_unknown_fields)]
struct Change {
    /// In place of the present ones, at least one.
    roles: Option<Vec<Role>>,
    /// `true` refuses all of their tokens.
    disabled: Option<bool>,
}
