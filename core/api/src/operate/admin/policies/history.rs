//! `GET /admin/v1/partners/{slug}/policies/{kind}`

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::trial::Trial;
use super::{PATH, Policy};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::Doc;
use crate::endpoint::{Endpoint, Json};
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::error::Result;
use crate::policies::lifecycle::{Target, rollback_target};

/// Most versions of one answer.
const VERSIONS_MAX: i64 = 200;
/// Most changes of one answer.
const CHANGES_MAX: i64 = 200;
/// Most logged calls of one answer.
const LOG_MAX: i64 = 100;

/// `GET /admin/v1/partners/{slug}/policies/{kind}`
pub struct ReadPolicy;

impl Endpoint for ReadPolicy {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/partners/{slug}/policies/{kind}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "Read a policy's versions and history",
        details: "Versions and changes newest first, at most 200 of each; the active version is \
                  always among them.",
        path: PATH,
        answer: r#"{"kind": "fee", "active": 1, "rollbackTo": null, "trial": null,
            "versions": [{"version": 1, "digest": "b5bb9d8014a0f9b1", "size": 48123,
                "active": true, "rolledBack": false, "failClosed": false,
                "config": {"tiers": ["0=20000"]},
                "info": {"name": "tiered-fee", "version": "1.0.0", "summary": "Fee by amount.",
                    "config": [{"key": "tiers", "type": "texts", "required": false,
                        "help": "amount=ppm"}], "keys": []},
                "reason": "new tariff", "signedBy": null, "sampleFuel": 5120, "createdBy": "admin",
                "createdAt": "2026-03-01T12:00:00Z"}],
            "changes": [{"at": "2026-03-01T12:00:00Z", "actor": "admin", "action": "policy.push",
                "detail": {"kind": "fee", "version": 1, "reason": "new tariff"}}],
            "log": [{"at": "2026-03-01T12:00:05Z", "version": 1, "requestId": "a1",
                "lines": [{"level": "warn", "text": "no tier for XOF"}], "linesDropped": 0,
                "callsDropped": 0}]}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Policy;
    type Response = Json<History>;

    fn read(input: &Input, _: &Operator) -> Result<Policy> {
        Ok(Policy::read(input, None))
    }

    async fn call(core: &Core, operator: Operator, policy: Policy) -> Result<Json<History>> {
        let target = policy.target(core, &operator).await?;
        let versions = versions(core, target).await?;
        let changes = changes(core, target).await?;
        Ok(Json(History {
            kind: target.kind.as_str(),
            active: versions.iter().find(|version| version.active).map(|version| version.version),
            rollback_to: rollback_target(core, target).await?,
            trial: Trial::find(core, target).await?,
            versions,
            changes,
            log: log(core, target).await?,
        }))
    }
}

/// The versions, newest first, at most 200: the active one, and the newest.
pub(in crate::operate) async fn versions(core: &Core, target: Target<'_>) -> Result<Vec<Version>> {
    let mut versions = sqlx::query_as!(
        Version,
        "select version, digest, size, active, rolled_back, fail_closed, config, info, \
             reason, signed_by, sample_fuel, created_by, created_at \
         from policy_version where client_id = $1 and kind = $2 \
         order by active desc, version desc limit $3",
        target.client.uuid(),
        target.kind.as_str(),
        VERSIONS_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    versions.sort_by_key(|version| Reverse(version.version));
    Ok(versions)
}

async fn changes(core: &Core, target: Target<'_>) -> Result<Vec<Change>> {
    let changes = sqlx::query_as!(
        Change,
        "select at, actor, action, detail from audit \
         where target = $1 and action like 'policy.%' and action <> 'policy.dry-run' \
             and detail ->> 'kind' = $2 \
         order by at desc, audit_id desc limit $3",
        target.slug,
        target.kind.as_str(),
        CHANGES_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(changes)
}

/// The newest live calls that logged something, at most 100.
pub(in crate::operate) async fn log(core: &Core, target: Target<'_>) -> Result<Vec<LoggedCall>> {
    let log = sqlx::query_as!(
        LoggedCall,
        "select at, version, request_id, lines, lines_dropped, calls_dropped from policy_log \
         where client_id = $1 and kind = $2 order by at desc, slot limit $3",
        target.client.uuid(),
        target.kind.as_str(),
        LOG_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(log)
}

/// A policy's versions, its trial, its changes and its log.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "PolicyHistory")]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// `signature`, `fee` or `method-order`.
    kind: &'static str,
    /// The active version; null with the built-in rule.
    active: Option<i64>,
    /// The version that a rollback leads to; null where there is none that may serve.
    rollback_to: Option<i64>,
    /// The version on trial; null without one.
    trial: Option<Trial>,
    /// The active version and its newest ones, newest first.
    versions: Vec<Version>,
    /// Its changes, newest first.
    changes: Vec<Change>,
    /// Live calls that logged something, at most one a second and edge; the newest 100.
    log: Vec<LoggedCall>,
}

/// Lines that the policy logged in a live call, without words that may identify somebody.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "PolicyLog")]
#[serde(rename_all = "camelCase")]
pub(in crate::operate) struct LoggedCall {
    /// When the call was made.
    pub(in crate::operate) at: DateTime<Utc>,
    /// The version that logged.
    pub(in crate::operate) version: i64,
    /// The request's `X-Request-Id`.
    pub(in crate::operate) request_id: String,
    /// `level` and `text` of each.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub(in crate::operate) lines: Value,
    /// Lines of this call over its limits.
    pub(in crate::operate) lines_dropped: i64,
    /// Calls before this one whose lines were not stored.
    pub(in crate::operate) calls_dropped: i64,
}

/// A version of a policy.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "PolicyVersion")]
#[serde(rename_all = "camelCase")]
pub(in crate::operate) struct Version {
    /// Its number, which calls name.
    pub(in crate::operate) version: i64,
    /// SHA-256 of the component, in hex.
    pub(in crate::operate) digest: String,
    /// Size of the component, in bytes.
    pub(in crate::operate) size: i64,
    /// `true` for the version that serves.
    pub(in crate::operate) active: bool,
    /// `true` if a rollback has left it.
    pub(in crate::operate) rolled_back: bool,
    /// `true` refuses requests when the policy fails, in place of the built-in rule.
    pub(in crate::operate) fail_closed: bool,
    /// Its configuration, as `info` declares it.
    #[schemars(with = "Map<String, Value>")]
    pub(in crate::operate) config: Value,
    /// The component's own description: `name`, `version`, `summary`, `config` and `keys`.
    #[schemars(with = "Map<String, Value>")]
    pub(in crate::operate) info: Value,
    /// The operator's words; null without any.
    pub(in crate::operate) reason: Option<String>,
    /// Name of the operator's key that signed its manifest.
    pub(in crate::operate) signed_by: Option<String>,
    /// Most fuel that a sample burnt at its examination; null for earlier versions.
    pub(in crate::operate) sample_fuel: Option<i64>,
    /// The author of the upload.
    pub(in crate::operate) created_by: String,
    /// When it was uploaded.
    pub(in crate::operate) created_at: DateTime<Utc>,
}

/// An upload, or a change of the versions that serve.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "PolicyChange")]
struct Change {
    /// When it was made.
    at: DateTime<Utc>,
    /// The operator, or the member of the partner's staff.
    actor: String,
    /// Such as `policy.activate`.
    action: String,
    /// The change itself, as the audit has it.
    #[schemars(with = "Map<String, Value>")]
    detail: Value,
}
