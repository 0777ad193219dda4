//! `POST /admin/v1/partners/{slug}/api-keys` and `DELETE …/{id}`.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use ipnet::IpNet;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::{Answer, Input, Refused, created, done};
use crate::Core;
use crate::platform::audit::{self, Entry};
use crate::platform::revision;
use crate::tenancy::tenants::{ApiKey, Mode};
use rampart_types::ClientId;

/// Most live keys of one partner.
const KEYS_MAX: i64 = 100;
/// Most networks of one key.
const NETWORKS_MAX: usize = 64;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Issue {
    name: String,
    scopes: Vec<String>,
    expires_at: Option<DateTime<Utc>>,
    allowed_addresses: Vec<IpNet>,
}

/// Issues a key. Its text is shown in this answer only.
pub(super) async fn issue(core: &Arc<Core>, input: Input) -> Answer {
    let Issue { name, scopes, expires_at, allowed_addresses } = input.json()?;
    if allowed_addresses.len() > NETWORKS_MAX {
        return Err(Refused::unprocessable("allowedAddresses: at most 64 networks"));
    }
    let slug = input.param("slug");
    let (client, mode) = client(core, slug).await?;
    let mut key = ApiKey::generate(&core.clock, mode)?;
    key.name = name;
    key.scopes = scopes;
    key.expires_at = expires_at;
    key.allowed_addresses = allowed_addresses.iter().map(ToString::to_string).collect();
    let mut tx = core.db.begin().await?;
    revision::client_changed(&mut tx, client).await?;
    let live = sqlx::query_scalar!(
        r#"select count(*) as "count!" from api_key where client_id = $1 and revoked_at is null"#,
        client.uuid(),
    )
    .fetch_one(&mut *tx)
    .await?;
    if live >= KEYS_MAX {
        return Err(Refused::conflict("the partner has 100 live keys already"));
    }
    key.insert(&mut tx, client, core.clock.now()).await?;
    let detail = json!({"apiKeyId": key.id, "name": key.name});
    let entry = Entry { actor: input.actor(), action: "api-key.issue", target: slug, detail };
    audit::record(&mut tx, &core.clock, entry).await?;
    tx.commit().await?;
    core.refresh().await?;
    created(&json!({"id": key.id, "apiKey": key.text.expose()}))
}

/// Revokes a key: every edge refuses it within a second.
pub(super) async fn revoke(core: &Arc<Core>, input: Input) -> Answer {
    let slug = input.param("slug");
    let (client, _) = client(core, slug).await?;
    let id: Uuid = input.param("id").parse().map_err(|_| Refused::not_found("API key"))?;
    let mut tx = core.db.begin().await?;
    let revoked = sqlx::query!(
        "update api_key set revoked_at = $3 \
         where client_id = $1 and api_key_id = $2 and revoked_at is null",
        client.uuid(),
        id,
        core.clock.now(),
    )
    .execute(&mut *tx)
    .await?;
    if revoked.rows_affected() == 0 {
        return Err(Refused::not_found("API key"));
    }
    revision::client_changed(&mut tx, client).await?;
    let detail = json!({"apiKeyId": id});
    let entry = Entry { actor: input.actor(), action: "api-key.revoke", target: slug, detail };
    audit::record(&mut tx, &core.clock, entry).await?;
    tx.commit().await?;
    core.refresh().await?;
    done()
}

/// The partner with this slug.
pub(super) async fn client(core: &Core, slug: &str) -> Result<(ClientId, Mode), Refused> {
    let row = sqlx::query!("select client_id, mode from client where slug = $1", slug)
        .fetch_optional(&core.db)
        .await?
        .ok_or_else(|| Refused::not_found("partner"))?;
    Ok((row.client_id.into(), if row.mode == "live" { Mode::Live } else { Mode::Test }))
}
