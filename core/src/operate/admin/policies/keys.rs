//! Keys: `/admin/v1/partners/{slug}/verification-keys/{name}`, which a partner's policy may name,
//! and `/admin/v1/operator-keys/{name}`, with which operators sign.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use crate::Core;
use crate::operate::admin::{Answer, Input, api_keys, done, ok};
use crate::platform::crypto::Secret;
use crate::policies::{keys, operator_keys};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    algorithm: String,
    key: Secret,
}

/// `PUT …/verification-keys/{name}`
pub(in crate::operate::admin) async fn put_key(core: &Arc<Core>, input: Input) -> Answer {
    let Key { algorithm, key } = input.json()?;
    let (slug, name) = (input.param("slug"), input.param("name"));
    let (client, _) = api_keys::client(core, slug).await?;
    keys::put(core, input.actor(), (client, slug), name, (&algorithm, &key)).await?;
    ok(&json!({"name": name, "algorithm": algorithm}))
}

/// `DELETE …/verification-keys/{name}`
pub(in crate::operate::admin) async fn delete_key(core: &Arc<Core>, input: Input) -> Answer {
    let (slug, name) = (input.param("slug"), input.param("name"));
    let (client, _) = api_keys::client(core, slug).await?;
    keys::delete(core, input.actor(), (client, slug), name).await?;
    done()
}

/// `GET /admin/v1/operator-keys`
pub(in crate::operate::admin) async fn list_operators(core: &Arc<Core>, _: Input) -> Answer {
    ok(&operator_keys::list(core).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct OperatorKey {
    public_key: String,
}

/// `PUT /admin/v1/operator-keys/{name}`
pub(in crate::operate::admin) async fn register_operator(core: &Arc<Core>, input: Input) -> Answer {
    let OperatorKey { public_key } = input.json()?;
    let name = input.param("name");
    operator_keys::register(core, input.actor(), name, &public_key).await?;
    ok(&json!({ "name": name }))
}

/// `DELETE /admin/v1/operator-keys/{name}`
pub(in crate::operate::admin) async fn remove_operator(core: &Arc<Core>, input: Input) -> Answer {
    operator_keys::remove(core, input.actor(), input.param("name")).await?;
    done()
}
