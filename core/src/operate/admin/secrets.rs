//! `POST /admin/v1/partners/{slug}/secrets/rotate`: a new secret, while the old one stays live for
//! as long as the partner needs to follow.

use std::sync::Arc;

use chrono::TimeDelta;
use serde::Deserialize;
use serde_json::json;

use super::{Answer, Input, Refused, api_keys, ok};
use crate::Core;
use crate::platform::audit::{self, Entry};
use crate::platform::revision;
use crate::tenancy::tenants::create::{SecretKind, StoredSecret};

/// Overlap where the call names none, in seconds.
const OVERLAP_SECONDS: i64 = 86_400;
/// Longest overlap, in seconds: 30 days.
const OVERLAP_SECONDS_MAX: i64 = 2_592_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Rotate {
    kind: SecretKind,
    overlap_seconds: Option<i64>,
}

pub(super) async fn rotate(core: &Arc<Core>, input: Input) -> Answer {
    let Rotate { kind, overlap_seconds } = input.json()?;
    let overlap = overlap_seconds.unwrap_or(OVERLAP_SECONDS);
    if !(0..=OVERLAP_SECONDS_MAX).contains(&overlap) {
        return Err(Refused::unprocessable("overlapSeconds: 0 to 2592000"));
    }
    let slug = input.param("slug");
    let (client, _) = api_keys::client(core, slug).await?;
    let secret = kind.generate(&core.clock)?;
    let stored = StoredSecret::new(core, client, kind, &secret).await?;
    let now = core.clock.now();
    let valid_until = now + TimeDelta::seconds(overlap);
    let mut tx = core.db.begin().await?;
    // First the counter: its row lock makes two rotations at once follow each other.
    revision::client_changed(&mut tx, client).await?;
    sqlx::query!(
        "update client_secret set valid_until = $3 \
         where client_id = $1 and kind = $2 and valid_until is null",
        client.uuid(),
        kind.as_str(),
        valid_until,
    )
    .execute(&mut *tx)
    .await?;
    stored.insert(&mut tx, client, now).await?;
    let detail = json!({"kind": kind, "overlapSeconds": overlap});
    let entry = Entry { actor: input.actor(), action: "secret.rotate", target: slug, detail };
    audit::record(&mut tx, &core.clock, entry).await?;
    tx.commit().await?;
    core.refresh().await?;
    ok(&json!({"kind": kind, "secret": secret.expose(), "previousValidUntil": valid_until}))
}
