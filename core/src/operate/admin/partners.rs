//! Partners: `POST` and `GET /admin/v1/partners`, `GET` and `PATCH /admin/v1/partners/{slug}`.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Answer, Input, Refused, created, ok};
use crate::Core;
use crate::platform::audit::{self, Entry};
use crate::platform::rate_limit::Quota;
use crate::platform::revision;
use crate::tenancy::tenants::create::NewTenant;
use crate::tenancy::tenants::{Mode, RATE_BUCKETS};
use rampart_types::{ClientId, Country, JsonDecimal};

/// Highest cap of a partner's fee, in percent.
const FEE_CAP_PERCENTAGE_MAX: Decimal = Decimal::from_parts(20, 0, 0, false, 0);
/// Longest slug, in characters.
const SLUG_CHARS_MAX: usize = 63;
/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 255;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    slug: String,
    name: String,
    mode: Mode,
}

/// Makes a partner with one of every credential. They are shown in this answer only.
pub(super) async fn create(core: &Arc<Core>, input: Input) -> Answer {
    let Create { slug, name, mode } = input.json()?;
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if slug.is_empty() || slug.len() > SLUG_CHARS_MAX || !slug.chars().all(allowed) {
        return Err(Refused::unprocessable("slug: 1 to 63 of a-z, 0-9 and -"));
    }
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
        return Err(Refused::unprocessable("name: 1 to 255 characters"));
    }
    let tenant = NewTenant::generate(core, slug, name, mode).await?;
    let mut tx = core.db.begin().await?;
    tenant.insert(&mut tx, core.clock.now()).await.map_err(|error| {
        match error.as_database_error().and_then(|e| e.constraint()) {
            Some("client_slug_key" | "client_username_key") => Refused::conflict("slug is taken"),
            _ => error.into(),
        }
    })?;
    let detail = json!({"name": tenant.name, "mode": tenant.mode.as_str()});
    let entry =
        Entry { actor: input.actor(), action: "partner.create", target: &tenant.slug, detail };
    audit::record(&mut tx, &core.clock, entry).await?;
    tx.commit().await?;
    core.refresh().await?;
    created(&json!({
        "id": tenant.id,
        "slug": tenant.slug,
        "mode": tenant.mode.as_str(),
        "username": tenant.slug,
        "password": tenant.password.expose(),
        "apiKey": tenant.api_key.text.expose(),
        "signingSecret": tenant.signing_secret.expose(),
        "webhookSecret": tenant.webhook_secret.expose(),
    }))
}

/// A partner as operators see it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Partner {
    id: ClientId,
    slug: String,
    name: String,
    mode: String,
    status: String,
    username: String,
    default_fee_percentage: JsonDecimal,
    fee_cap_percentage: JsonDecimal,
    wallet_address_required: bool,
    allowed_countries: Vec<String>,
    rate_limits: Value,
    policy_signature_required: bool,
    created_at: DateTime<Utc>,
    api_keys: Vec<ApiKeyView>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiKeyView {
    id: uuid::Uuid,
    name: String,
    scopes: Vec<String>,
    allowed_addresses: Vec<String>,
    expires_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
}

/// Most partners of one answer.
const PARTNERS_MAX: i64 = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    after: Option<String>,
}

/// Partners by slug, at most [`PARTNERS_MAX`]; `after` is the last slug of the page before.
pub(super) async fn list(core: &Arc<Core>, input: Input) -> Answer {
    let Page { after } = input.query()?;
    let rows = sqlx::query!(
        "select slug, name, mode, status, created_at from client where slug > $1 \
         order by slug limit $2",
        after.unwrap_or_default(),
        PARTNERS_MAX,
    )
    .fetch_all(&core.db)
    .await?;
    let partners: Vec<_> = rows
        .into_iter()
        .map(|row| {
            json!({"slug": row.slug, "name": row.name, "mode": row.mode, "status": row.status,
                "createdAt": row.created_at})
        })
        .collect();
    ok(&partners)
}

/// One partner.
pub(super) async fn read(core: &Arc<Core>, input: Input) -> Answer {
    ok(&view(core, input.param("slug")).await?)
}

async fn view(core: &Core, slug: &str) -> Result<Partner, Refused> {
    let row = sqlx::query!("select * from client where slug = $1", slug)
        .fetch_optional(&core.db)
        .await?
        .ok_or_else(|| Refused::not_found("partner"))?;
    let api_keys = sqlx::query_as!(
        ApiKeyView,
        "select api_key_id as id, name, scopes, allowed_addresses, expires_at, last_used_at \
         from api_key where client_id = $1 and revoked_at is null order by created_at",
        row.client_id,
    )
    .fetch_all(&core.db)
    .await?;
    Ok(Partner {
        id: row.client_id.into(),
        slug: row.slug,
        name: row.name,
        mode: row.mode,
        status: row.status,
        username: row.username,
        default_fee_percentage: JsonDecimal(row.default_fee_percentage),
        fee_cap_percentage: JsonDecimal(row.fee_cap_percentage),
        wallet_address_required: row.wallet_address_required,
        allowed_countries: row.allowed_countries,
        rate_limits: row.rate_limits,
        policy_signature_required: row.policy_signature_required,
        created_at: row.created_at,
        api_keys,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Change {
    status: Option<Status>,
    default_fee_percentage: Option<JsonDecimal>,
    fee_cap_percentage: Option<JsonDecimal>,
    wallet_address_required: Option<bool>,
    allowed_countries: Option<Vec<String>>,
    rate_limits: Option<BTreeMap<String, Quota>>,
    /// Whether its policies change by signed manifests alone.
    policy_signature_required: Option<bool>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Active,
    Suspended,
}

impl Status {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Suspended => "suspended",
        }
    }
}

impl Change {
    fn check(&self) -> Result<(), Refused> {
        let cap = self.fee_cap_percentage.as_ref().map(|cap| cap.0);
        if cap.is_some_and(|cap| cap < Decimal::ZERO || cap > FEE_CAP_PERCENTAGE_MAX) {
            return Err(Refused::unprocessable("feeCapPercentage: 0 to 20"));
        }
        let fee = self.default_fee_percentage.as_ref().map(|fee| fee.0);
        if fee.is_some_and(|fee| fee < Decimal::ZERO || fee > FEE_CAP_PERCENTAGE_MAX) {
            return Err(Refused::unprocessable("defaultFeePercentage: 0 to 20"));
        }
        let countries = self.allowed_countries.iter().flatten();
        if let Some(bad) = countries.into_iter().find(|code| code.parse::<Country>().is_err()) {
            return Err(Refused::unprocessable(format!("allowedCountries: {bad} is no country")));
        }
        let buckets = self.rate_limits.iter().flatten();
        match buckets.into_iter().find(|(name, _)| !RATE_BUCKETS.contains(&name.as_str())) {
            Some((name, _)) => Err(Refused::unprocessable(format!("rateLimits: no bucket {name}"))),
            None => Ok(()),
        }
    }
}

/// Changes the settings named; the others stay. Every edge follows within a second.
pub(super) async fn change(core: &Arc<Core>, input: Input) -> Answer {
    let change: Change = input.json()?;
    change.check()?;
    let slug = input.param("slug");
    let rates = change.rate_limits.as_ref().map(|rates| {
        let texts = rates.iter().map(|(name, quota)| (name.clone(), quota.to_string().into()));
        Value::Object(texts.collect())
    });
    let mut tx = core.db.begin().await?;
    let revision = revision::next_client_revision(&mut tx).await?;
    let changed = sqlx::query!(
        r#"
        update client set
            status = coalesce($2, status),
            default_fee_percentage = coalesce($3, default_fee_percentage),
            fee_cap_percentage = coalesce($4, fee_cap_percentage),
            wallet_address_required = coalesce($5, wallet_address_required),
            allowed_countries = coalesce($6, allowed_countries),
            rate_limits = coalesce($7, rate_limits),
            revision = $8,
            policy_signature_required = coalesce($9, policy_signature_required)
        where slug = $1
        "#,
        slug,
        change.status.map(Status::as_str),
        change.default_fee_percentage.map(|fee| fee.0),
        change.fee_cap_percentage.map(|cap| cap.0),
        change.wallet_address_required,
        change.allowed_countries.as_deref(),
        rates,
        revision,
        change.policy_signature_required,
    )
    .execute(&mut *tx)
    .await?;
    if changed.rows_affected() == 0 {
        return Err(Refused::not_found("partner"));
    }
    let detail = input.json()?;
    let entry = Entry { actor: input.actor(), action: "partner.change", target: slug, detail };
    audit::record(&mut tx, &core.clock, entry).await?;
    tx.commit().await?;
    core.refresh().await?;
    ok(&view(core, slug).await?)
}
