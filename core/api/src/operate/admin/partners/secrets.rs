//! `POST /admin/v1/partners/{slug}/secrets/rotate`

use chrono::{DateTime, TimeDelta, Utc};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{SLUG, find};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::overlap;
use crate::operate::admin::policies::needs_second;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::revision;
use crate::policies::lifecycle::check_persons;
use crate::tenancy::tenants::create::{SecretKind, StoredSecret};
use rampart_types::ClientId;

/// `POST /admin/v1/partners/{slug}/secrets/rotate`
pub struct RotateSecret;

impl Endpoint for RotateSecret {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/partners/{slug}/secrets/rotate";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Platform];
    const APPROVAL: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Rotate a secret",
        details: "Makes a new secret, shown in this answer only. Earlier ones end with the \
                  overlap, if they don't end before; with `overlapSeconds` 0 they end now, and \
                  with the password the tokens of the partner's own logins. Kind `signing` takes \
                  two persons where the partner's policies do.",
        path: &[SLUG],
        body: Shape::of::<Members>(),
        request: r#"{"kind": "signing", "overlapSeconds": 86400}"#,
        answer: r#"{"kind": "signing", "secret": "c2lnbmluZyBzZWNyZXQ",
            "previousValidUntil": "2026-03-02T12:00:00Z"}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Rotation;
    type Response = Json<Rotated>;

    fn read(input: &Input, _: &Operator) -> Result<Rotation> {
        let Members { kind, overlap_seconds } = strict::body(input)?;
        let overlap = overlap::seconds(overlap_seconds)?;
        Ok(Rotation { slug: input.param("slug").to_owned(), kind, overlap })
    }

    async fn needs_approval(core: &Core, _: &Operator, rotation: &Rotation) -> Result<bool> {
        // Its reader signs in the partner's name, as the holder of a verification key does.
        Ok(rotation.kind == SecretKind::Signing && needs_second(core, &rotation.slug).await?)
    }

    async fn call(core: &Core, operator: Operator, rotation: Rotation) -> Result<Json<Rotated>> {
        let Rotation { slug, kind, overlap } = rotation;
        let (client, _) = find(core, &slug).await?;
        let secret = kind.generate(&core.clock)?;
        let stored = StoredSecret::new(core, client, &core.cipher(client), kind, &secret).await?;
        let now = core.clock.now();
        let valid_until = now + TimeDelta::seconds(overlap.into());
        let mut tx = core.db.begin().await?;
        // First the counter: its row lock makes two rotations at once follow each other.
        revision::client_changed(&mut tx, client).await?;
        if kind == SecretKind::Signing {
            check_persons(&mut tx, client, operator.is_approved()).await?;
        }
        // Those of earlier rotations too: after an overlap of 0 the new one is alone.
        sqlx::query!(
            "update client_secret set valid_until = $3 \
             where client_id = $1 and kind = $2 and (valid_until is null or valid_until > $3)",
            client.uuid(),
            kind.as_str(),
            valid_until,
        )
        .execute(&mut *tx)
        .await?;
        if kind == SecretKind::Password && overlap == 0 {
            end_logins(&mut tx, core, client).await?;
        }
        stored.insert(&mut tx, client, now).await?;
        let detail = json!({"kind": kind, "overlapSeconds": overlap});
        operator.record(&mut tx, core, "secret.rotate", &slug, detail).await?;
        tx.commit().await?;
        core.serve_committed().await;
        let secret = secret.expose().to_owned();
        Ok(Json(Rotated { kind, secret, previous_valid_until: valid_until }))
    }
}

/// Ends the logins of the client itself, not those of its users: its tokens are refused, and none is
/// renewed. The rows of its passwords are locked: a login by one of them has come before, and its tokens
/// are of an earlier time than this, or finds that the password has ended.
async fn end_logins(conn: &mut Connection, core: &Core, client: ClientId) -> Result<()> {
    sqlx::query!(
        "update client set tokens_valid_from = greatest(tokens_valid_from, $2) \
         where client_id = $1",
        client.uuid(),
        core.clock.now(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A rotation of one partner's secret.
#[derive(Debug)]
pub struct Rotation {
    slug: String,
    kind: SecretKind,
    /// In seconds.
    overlap: i32,
}

/// A secret of a partner to be replaced.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "SecretRotation")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Members {
    /// The secret.
    kind: SecretKind,
    /// 0 to 2592000, which is 30 days; 86400 if left out.
    overlap_seconds: Option<i32>,
}

/// A new secret, in clear.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "RotatedSecret")]
#[serde(rename_all = "camelCase")]
pub struct Rotated {
    kind: SecretKind,
    /// The new secret.
    secret: String,
    /// The end of the overlap, after which no earlier one is valid.
    previous_valid_until: DateTime<Utc>,
}
