//! Policies and the keys they may name: `/admin/v1/partners/{slug}/policies/{kind}` and
//! `/admin/v1/partners/{slug}/verification-keys/{name}`.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use rampart_plugins::contract::PolicyKind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Answer, Input, Refused, api_keys, done, ok};
use crate::Core;
use crate::policies::lifecycle::{self, NotDone, Settings, Target};
use crate::policies::{keys, rehearsal};
use crate::secrets::Secret;

/// Most versions of one answer.
const VERSIONS_MAX: i64 = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PushQuery {
    /// A JSON object; without one the active version's configuration is kept.
    config: Option<String>,
    fail_closed: Option<String>,
}

/// `PUT …/policies/{kind}`: the body is the component.
pub(super) async fn push(core: &Arc<Core>, input: Input) -> Answer {
    let PushQuery { config, fail_closed } = input.query()?;
    let config = config.map(|text| object(&text)).transpose()?;
    let fail_closed = match fail_closed.as_deref() {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => return Err(Refused::unprocessable("failClosed: true or false")),
    };
    let target = target(core, &input).await?;
    let settings = Settings { config, fail_closed };
    ok(&lifecycle::push(core, target, input.bytes().clone(), settings).await?)
}

fn object(text: &str) -> Result<Map<String, Value>, Refused> {
    match crate::fields::parse(text.as_bytes()) {
        Ok(Value::Object(members)) => Ok(members),
        _ => Err(Refused::unprocessable("config: a JSON object")),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Configure {
    config: Option<Map<String, Value>>,
    fail_closed: Option<bool>,
}

/// `PUT …/policies/{kind}/config`: the active component with another configuration.
pub(super) async fn configure(core: &Arc<Core>, input: Input) -> Answer {
    let Configure { config, fail_closed } = input.json()?;
    let target = target(core, &input).await?;
    ok(&lifecycle::configure(core, target, Settings { config, fail_closed }).await?)
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
    created_by: String,
    created_at: DateTime<Utc>,
}

/// `GET …/policies/{kind}`: every version, newest first.
pub(super) async fn history(core: &Arc<Core>, input: Input) -> Answer {
    let target = target(core, &input).await?;
    let versions = sqlx::query_as!(
        Version,
        "select version, digest, size, active, rolled_back, fail_closed, config, info, \
             created_by, created_at \
         from policy_version where client_id = $1 and kind = $2 order by version desc limit $3",
        target.client.uuid(),
        target.kind.as_str(),
        VERSIONS_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    let active = versions.iter().find(|version| version.active).map(|version| version.version);
    ok(&json!({"kind": target.kind.as_str(), "active": active, "versions": versions}))
}

/// `POST …/policies/{kind}/rollback`
pub(super) async fn roll_back(core: &Arc<Core>, input: Input) -> Answer {
    let target = target(core, &input).await?;
    ok(&lifecycle::roll_back(core, target).await?)
}

/// `DELETE …/policies/{kind}`
pub(super) async fn remove(core: &Arc<Core>, input: Input) -> Answer {
    let target = target(core, &input).await?;
    lifecycle::remove(core, target).await?;
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DryRun {
    input: Value,
}

/// `POST …/policies/{kind}/dry-run`
pub(super) async fn dry_run(core: &Arc<Core>, input: Input) -> Answer {
    let DryRun { input: question } = input.json()?;
    let target = target(core, &input).await?;
    ok(&rehearsal::dry_run(core, target, question).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    algorithm: String,
    key: Secret,
}

/// `PUT …/verification-keys/{name}`
pub(super) async fn put_key(core: &Arc<Core>, input: Input) -> Answer {
    let Key { algorithm, key } = input.json()?;
    let (slug, name) = (input.param("slug"), input.param("name"));
    let (client, _) = api_keys::client(core, slug).await?;
    keys::put(core, input.actor(), (client, slug), name, (&algorithm, &key)).await?;
    ok(&json!({"name": name, "algorithm": algorithm}))
}

/// `DELETE …/verification-keys/{name}`
pub(super) async fn delete_key(core: &Arc<Core>, input: Input) -> Answer {
    let (slug, name) = (input.param("slug"), input.param("name"));
    let (client, _) = api_keys::client(core, slug).await?;
    keys::delete(core, input.actor(), (client, slug), name).await?;
    done()
}

async fn target<'a>(core: &Core, input: &'a Input) -> Result<Target<'a>, Refused> {
    let kind = PolicyKind::from_name(input.param("kind"))
        .ok_or_else(|| Refused::not_found("kind of policy"))?;
    let slug = input.param("slug");
    let (client, _) = api_keys::client(core, slug).await?;
    Ok(Target { actor: input.actor(), slug, client, kind })
}

impl From<NotDone> for Refused {
    fn from(not_done: NotDone) -> Self {
        match not_done {
            NotDone::Unfit(reason) => Self::unprocessable(reason),
            NotDone::Missing(what) => Self::not_found(what),
            NotDone::Conflict(reason) => Self::conflict(reason),
            NotDone::Failed(error) => error.into(),
        }
    }
}
