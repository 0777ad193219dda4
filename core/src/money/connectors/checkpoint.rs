//! `PUT /connectors/v1/commands/{id}/checkpoint`

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::caller::Connector;
use super::lease::check_lease_seconds;
use crate::Core;
use crate::endpoint::openapi::doc::{Doc, Kind, Member, Shape, required};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::platform::error::{Denial, Error, Result};

/// Largest checkpoint in bytes of JSON.
const CHECKPOINT_BYTES_MAX: usize = 16 * 1024;
/// The path's `{id}`.
pub(super) const ID: Member = required("id", Kind::Format("uuid"), "The command's id.");

/// `PUT /connectors/v1/commands/{id}/checkpoint`
pub struct PutCheckpoint;

impl Endpoint for PutCheckpoint {
    const METHOD: Method = Method::PUT;
    const PATH: &'static str = "/connectors/v1/commands/{id}/checkpoint";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Store a checkpoint of a leased command",
        details: "Before the connector does what it cannot undo: whoever leases the command next \
                  is given the last checkpoint. Up to 16 KiB of JSON. The lease is extended, by as \
                  long as it was if `leaseSeconds` is left out. A lost lease is 409.",
        path: &[ID],
        body: Shape::of::<NewCheckpoint>(),
        request: r#"{"leaseToken": "0199a000-0000-7000-8000-000000000011",
            "checkpoint": {"nonce": 7}, "leaseSeconds": 120}"#,
        answer: r#"{"leasedUntil": "2026-03-01T12:03:00Z"}"#,
        ..Doc::NONE
    };
    type Caller = Connector;
    type Request = (Uuid, NewCheckpoint);
    type Response = Json<Extended>;

    fn read(input: &Input, _: &Connector) -> Result<(Uuid, NewCheckpoint)> {
        let new: NewCheckpoint = strict::body(input)?;
        if new.checkpoint.to_string().len() > CHECKPOINT_BYTES_MAX {
            return Err(Denial::unprocessable("checkpoint: at most 16 KiB of JSON").into());
        }
        new.lease_seconds.map_or(Ok(()), check_lease_seconds)?;
        Ok((id(input)?, new))
    }

    async fn call(
        core: &Core,
        connector: Connector,
        (id, new): (Uuid, NewCheckpoint),
    ) -> Result<Json<Extended>> {
        let extended = sqlx::query_scalar!(
            r#"
            update command set checkpoint = $4, leased_until = greatest(leased_until,
                now() + make_interval(secs => coalesce($5, lease_seconds)))
            where command_id = $1 and connector = $2 and lease_token = $3 and state = 'open'
                and leased_until > now()
            returning leased_until as "leased_until!"
            "#,
            id,
            &*connector.name,
            lease_token(&new.lease_token),
            new.checkpoint.to_string(),
            new.lease_seconds.map(i32::from),
        )
        .fetch_optional(&core.db)
        .await?;
        match extended {
            Some(leased_until) => Ok(Json(Extended { leased_until })),
            None => Err(lost_lease(core, &connector, id).await?),
        }
    }
}

/// The command's id in the path.
///
/// # Errors
/// 404 when it is no id.
pub(super) fn id(input: &Input) -> Result<Uuid> {
    input.param("id").parse().map_err(|_| Denial::not_found("command").into())
}

/// The refusal of a call without a lease: 409, or 404 for a command that is not the connector's.
///
/// # Errors
/// When the database cannot be read.
pub(super) async fn lost_lease(core: &Core, connector: &Connector, id: Uuid) -> Result<Error> {
    let known = sqlx::query_scalar!(
        r#"select exists (select from command where command_id = $1 and connector = $2) as "known!""#,
        id,
        &*connector.name,
    )
    .fetch_one(&core.db)
    .await?;
    let lost = Denial::conflict("the lease is lost, or the command has its result");
    Ok(if known { lost.into() } else { Denial::not_found("command").into() })
}

/// A checkpoint to be stored.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "NewCheckpoint")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewCheckpoint {
    /// The `leaseToken` of the command's lease.
    lease_token: String,
    /// Whatever the connector needs to go on, at most 16 KiB.
    #[schemars(schema_with = "any_json")]
    checkpoint: Value,
    /// Length of the lease from now on, 10 to 600.
    #[schemars(range(min = 10, max = 600))]
    lease_seconds: Option<u16>,
}

/// The schema of any JSON.
pub(super) fn any_json(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["object", "array", "string", "number", "boolean", "null"] })
}

/// The token of a lease; one that is none belongs to no lease.
pub(super) fn lease_token(text: &str) -> Uuid {
    text.parse().unwrap_or_default()
}

/// The extended lease.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "ExtendedLease")]
#[serde(rename_all = "camelCase")]
pub struct Extended {
    /// The new end of the lease.
    leased_until: DateTime<Utc>,
}
