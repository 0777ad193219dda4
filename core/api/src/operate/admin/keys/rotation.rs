//! `POST /admin/v1/keys/rotation` and `GET /admin/v1/keys/rotation`

use chrono::{DateTime, Utc};
use http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::key_rotation::{begin, table};
use crate::platform::error::Result;
use crate::tenancy::tenant_keys::TenantKeyCounts;

/// A rotation that is under way, for the OpenAPI document.
const EXAMPLE: &str = r#"{"keyId": "4f1c2d3e", "earlierKeyIds": ["0a1b2c3d"],
    "partnerKeys": {"total": 12, "current": 7, "missing": 0}, "rotation": {
    "requestedBy": "ada", "requestedAt": "2026-03-01T12:00:00Z", "finishedAt": null,
    "table": "end_user", "resealed": 412}}"#;

/// `POST /admin/v1/keys/rotation`
pub struct StartRotation;

impl Endpoint for StartRotation {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/keys/rotation";
    const ROLES: &'static [Role] = &[Role::Platform];
    const DOC: Doc = Doc {
        summary: "Seal everything again under the master key in use",
        details: "In the background. Configure `keys.master` with the new key first and the \
                  earlier ones behind it, and restart every edge before. Values of partners with keys of their \
                  own (`keys.per_tenant`) are sealed under those, and the keys under the master key. When it is finished the \
                  earlier keys can go, after the day that the youngest values live on.",
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = ();
    type Response = Json<KeyRing>;

    fn read(_: &Input, _: &Operator) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, operator: Operator, (): ()) -> Result<Json<KeyRing>> {
        core.make_tenant_keys().await?;
        let mut tx = core.db.begin().await?;
        begin(&mut tx, core, operator.actor()).await?;
        let target = core.keys.id().to_string();
        let earlier: Vec<_> = core.keys.earlier_ids().map(|id| id.to_string()).collect();
        let detail = json!({ "earlierKeyIds": earlier });
        operator.record(&mut tx, core, "keys.rotate", &target, detail).await?;
        tx.commit().await?;
        Ok(Json(KeyRing::load(core).await?))
    }
}

/// `GET /admin/v1/keys/rotation`
pub struct ReadRotation;

impl Endpoint for ReadRotation {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/keys/rotation";
    const ROLES: &'static [Role] = &[Role::Platform];
    const DOC: Doc = Doc {
        summary: "Read how far the rotation of the master key is",
        details: "With the ids of the keys of the ring.",
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = ();
    type Response = Json<KeyRing>;

    fn read(_: &Input, _: &Operator) -> Result<()> {
        Ok(())
    }

    async fn call(core: &Core, _: Operator, (): ()) -> Result<Json<KeyRing>> {
        Ok(Json(KeyRing::load(core).await?))
    }
}

/// The ring of master keys, by their ids.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyRing {
    /// Id of the key in use, which sealed values carry.
    key_id: String,
    /// Newest first.
    earlier_key_ids: Vec<String>,
    /// Partners' keys, which the master key wraps.
    partner_keys: PartnerKeys,
    /// The rotation to the key in use, if one was begun.
    rotation: Option<Rotation>,
}

/// Partners' keys by their state.
#[derive(Debug, JsonSchema, Serialize)]
struct PartnerKeys {
    /// All of them.
    total: i64,
    /// Those that the master key in use has wrapped.
    current: i64,
    /// Partners without one, whose values the master key seals.
    missing: i64,
}

/// A rotation of the master key.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "KeyRotation")]
#[serde(rename_all = "camelCase")]
struct Rotation {
    /// The operator who asked for it.
    requested_by: String,
    /// When it was asked for.
    requested_at: DateTime<Utc>,
    /// When every value was sealed again; null before.
    finished_at: Option<DateTime<Utc>>,
    /// The table whose values are sealed again now, or were last.
    table: String,
    /// Values sealed again so far.
    resealed: i64,
}

impl KeyRing {
    async fn load(core: &Core) -> Result<Self> {
        let key_id = core.keys.id().to_string();
        let rotation = sqlx::query!(
            "select requested_by, requested_at, finished_at, stage, resealed from key_rotation \
             where key_id = $1",
            key_id,
        )
        .fetch_optional(&core.db)
        .await?;
        let rotation = rotation.map(|row| Rotation {
            requested_by: row.requested_by,
            requested_at: row.requested_at,
            finished_at: row.finished_at,
            table: table(row.stage).to_owned(),
            resealed: row.resealed,
        });
        let earlier_key_ids = core.keys.earlier_ids().map(|id| id.to_string()).collect();
        let TenantKeyCounts { total, current, missing } = core.tenant_key_counts().await?;
        let partner_keys = PartnerKeys { total, current, missing };
        Ok(Self { key_id, earlier_key_ids, partner_keys, rotation })
    }
}
