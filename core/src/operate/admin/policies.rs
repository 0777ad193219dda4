//! Policies: `/admin/v1/partners/{slug}/policies/{kind}`.

pub(super) mod keys;
pub(super) mod trial;
pub(super) mod versions;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use rampart_plugins::contract::PolicyKind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Answer, Input, Refused, api_keys, done, ok};
use crate::Core;
use crate::policies::dry_run::{self, DryRunInput};
use crate::policies::lifecycle::{self, LifecycleError, REASON_CHARS_MAX, Target, VersionSettings};

/// Most versions of one answer.
const VERSIONS_MAX: i64 = 200;
/// Most changes of one answer.
const CHANGES_MAX: i64 = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PushQuery {
    /// A JSON object; without one the active version's configuration is kept.
    config: Option<String>,
    fail_closed: Option<String>,
    reason: Option<String>,
}

/// `PUT …/policies/{kind}`: the body is the component.
pub(super) async fn push(core: &Arc<Core>, input: Input) -> Answer {
    let PushQuery { config, fail_closed, reason } = input.query()?;
    let config = config.map(|text| object(&text)).transpose()?;
    let fail_closed = match fail_closed.as_deref() {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => return Err(Refused::unprocessable("failClosed: true or false")),
    };
    let target = because(target(core, &input).await?, reason.as_deref())?;
    let settings = VersionSettings { config, fail_closed };
    ok(&lifecycle::push(core, target, input.bytes().clone(), settings).await?)
}

fn object(text: &str) -> Result<Map<String, Value>, Refused> {
    match crate::http::fields::parse(text.as_bytes()) {
        Ok(Value::Object(members)) => Ok(members),
        _ => Err(Refused::unprocessable("config: a JSON object")),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Configure {
    config: Option<Map<String, Value>>,
    fail_closed: Option<bool>,
    reason: Option<String>,
}

/// `PUT …/policies/{kind}/config`: the active component with another configuration.
pub(super) async fn configure(core: &Arc<Core>, input: Input) -> Answer {
    let Configure { config, fail_closed, reason } = input.json()?;
    let target = because(target(core, &input).await?, reason.as_deref())?;
    ok(&lifecycle::configure(core, target, VersionSettings { config, fail_closed }).await?)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    version: i64,
    digest: String,
    size: i64,
    active: bool,
    rolled_back: bool,
    fail_closed: bool,
    config: Value,
    info: Value,
    reason: Option<String>,
    /// Name of the operator's key that signed its manifest.
    signed_by: Option<String>,
    created_by: String,
    created_at: DateTime<Utc>,
}

/// A change of who is served by what, or an upload.
#[derive(Serialize)]
struct Change {
    at: DateTime<Utc>,
    actor: String,
    action: String,
    detail: Value,
}

/// `GET …/policies/{kind}`: every version, newest first; what is on trial; and who changed what,
/// when and why, newest first.
pub(super) async fn history(core: &Arc<Core>, input: Input) -> Answer {
    let target = target(core, &input).await?;
    let versions = sqlx::query_as!(
        Version,
        "select version, digest, size, active, rolled_back, fail_closed, config, info, \
             reason, signed_by, created_by, created_at \
         from policy_version where client_id = $1 and kind = $2 order by version desc limit $3",
        target.client.uuid(),
        target.kind.as_str(),
        VERSIONS_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    let active = versions.iter().find(|version| version.active).map(|version| version.version);
    let changes = sqlx::query_as!(
        Change,
        "select at, actor, action, detail from audit \
         where target = $1 and action like 'policy.%' and detail ->> 'kind' = $2 \
         order by at desc, audit_id desc limit $3",
        target.slug,
        target.kind.as_str(),
        CHANGES_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    ok(&json!({
        "kind": target.kind.as_str(),
        "active": active,
        "trial": trial::find(core, target).await?,
        "versions": versions,
        "changes": changes,
    }))
}

/// `POST …/policies/{kind}/rollback`
pub(super) async fn roll_back(core: &Arc<Core>, input: Input) -> Answer {
    let Because { reason } = input.json()?;
    let target = because(target(core, &input).await?, reason.as_deref())?;
    ok(&lifecycle::roll_back(core, target).await?)
}

/// `DELETE …/policies/{kind}`
pub(super) async fn remove(core: &Arc<Core>, input: Input) -> Answer {
    let Because { reason } = input.json()?;
    let target = because(target(core, &input).await?, reason.as_deref())?;
    lifecycle::remove(core, target).await?;
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DryRun {
    input: Option<Value>,
    inputs: Option<Vec<Value>>,
    #[serde(default)]
    recorded: bool,
    /// The active version where it is left out.
    version: Option<i64>,
    /// What the policy takes for the time, in seconds since 1970.
    now: Option<u32>,
}

/// `POST …/policies/{kind}/dry-run`: one `input`, several `inputs`, or what live requests asked.
pub(super) async fn dry_run(core: &Arc<Core>, input: Input) -> Answer {
    let DryRun { input: one, inputs, recorded, version, now } = input.json()?;
    let asked = match (one, inputs, recorded) {
        (Some(one), None, false) => DryRunInput::Single(one),
        (None, Some(inputs), false) => DryRunInput::Batch(inputs),
        (None, None, true) => DryRunInput::Recorded,
        _ => return Err(Refused::unprocessable("one of input, inputs and recorded")),
    };
    let target = target(core, &input).await?;
    ok(&dry_run::dry_run(core, target, (version, now), asked).await?)
}

/// The body of a call that takes nothing but a reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Because {
    pub(super) reason: Option<String>,
}

/// The same target, with the operator's reason.
///
/// # Errors
/// 422 for one that is too long.
pub(super) fn because<'a>(
    target: Target<'a>,
    reason: Option<&'a str>,
) -> Result<Target<'a>, Refused> {
    if reason.is_some_and(|reason| reason.chars().count() > REASON_CHARS_MAX) {
        return Err(Refused::unprocessable(format!(
            "reason: at most {REASON_CHARS_MAX} characters"
        )));
    }
    Ok(Target { reason: reason.filter(|reason| !reason.trim().is_empty()), ..target })
}

/// The policy that the path names.
///
/// # Errors
/// 404 when there is no such partner or kind.
pub(super) async fn target<'a>(core: &Core, input: &'a Input) -> Result<Target<'a>, Refused> {
    let kind = PolicyKind::from_name(input.param("kind"))
        .ok_or_else(|| Refused::not_found("kind of policy"))?;
    let slug = input.param("slug");
    let (client, _) = api_keys::client(core, slug).await?;
    Ok(Target { actor: input.actor(), slug, client, kind, reason: None })
}

impl From<LifecycleError> for Refused {
    fn from(error: LifecycleError) -> Self {
        match error {
            LifecycleError::Invalid(reason) => Self::unprocessable(reason),
            LifecycleError::NotFound(object) => Self::not_found(object),
            LifecycleError::Conflict(reason) => Self::conflict(reason),
            LifecycleError::Internal(error) => error.into(),
        }
    }
}
