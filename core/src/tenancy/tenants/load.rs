//! Loading of changed tenants from Postgres into a snapshot.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ipnet::IpNet;
use uuid::Uuid;

use super::create::SecretKind;
use super::{AllowedSenders, ApiKey, Buckets, Mode, Rates, Tenant, TimedSecret};
use crate::Core;
use crate::platform::crypto::Secret;
use crate::platform::crypto::day_key::DayKey;
use crate::platform::error::{Error, Result};
use crate::platform::rate_limit::Quota;
use crate::policies::runtime::TenantPolicies;
use crate::tenancy::snapshot::Snapshot;
use rampart_types::{ApiKeyId, ClientId, LoopbackHttp};

impl Tenant {
    /// The tenants that changed since `known` was loaded, with their secrets and keys.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub(crate) async fn load_changed(core: &Core, known: &Snapshot) -> Result<Vec<Self>> {
        let rows = sqlx::query!(
            r#"
            select client_id, slug, username, name, mode, status, default_fee_percentage,
                fee_cap_percentage, wallet_address_required, allowed_countries, allowed_addresses,
                rate_limits as "rate_limits: sqlx::types::Json<BTreeMap<String, String>>",
                tokens_valid_from, certificate_subject
            from client
            where revision > $1
            "#,
            known.clients_revision(),
        )
        .fetch_all(&core.db)
        .await?;
        let ids: Vec<Uuid> = rows.iter().map(|row| row.client_id).collect();
        let mut secrets = secrets(core, &ids).await?;
        let mut keys = api_keys(core, &ids).await?;
        let known_policies = ids
            .iter()
            .filter_map(|id| Some((*id, &known.tenants.get(&ClientId::from(*id))?.policies)))
            .collect();
        let mut policies = TenantPolicies::load(core, &ids, &known_policies).await?;
        let mut tenants = Vec::with_capacity(rows.len());
        for row in rows {
            let id = ClientId::from(row.client_id);
            let buckets = known.tenants.get(&id).map(|tenant| Arc::clone(&tenant.buckets));
            let mut take_secrets =
                |kind| secrets.remove(&(row.client_id, kind)).unwrap_or_default();
            let mode = if row.mode == "live" { Mode::Live } else { Mode::Test };
            let loopback_http = match mode {
                Mode::Test if core.settings.callbacks.allow_loopback => LoopbackHttp::Allowed,
                Mode::Test | Mode::Live => LoopbackHttp::Refused,
            };
            tenants.push(Self {
                id,
                loopback_http,
                slug: row.slug.into(),
                username: row.username.into(),
                name: row.name,
                mode,
                suspended: row.status != "active",
                tokens_valid_from: row.tokens_valid_from,
                default_fee_percentage: row.default_fee_percentage,
                fee_cap_percentage: row.fee_cap_percentage,
                wallet_address_required: row.wallet_address_required,
                allowed_countries: row.allowed_countries,
                allowed_senders: senders(&row.allowed_addresses, row.certificate_subject)?,
                rates: Rates::new(&core.settings.ratelimit, &quotas(&row.rate_limits.0)?),
                buckets: buckets.unwrap_or_else(|| Arc::new(Buckets::default())),
                signing_secrets: take_secrets(SecretKind::Signing),
                webhook_secrets: take_secrets(SecretKind::Webhook),
                quote_key: DayKey::default(),
                api_keys: keys.remove(&row.client_id).unwrap_or_default(),
                policies: policies.remove(&row.client_id).unwrap_or_default(),
            });
        }
        Ok(tenants)
    }
}

fn quotas(texts: &BTreeMap<String, String>) -> Result<BTreeMap<String, Quota>> {
    let parse = |(name, text): (&String, &String)| {
        let quota = text.parse().map_err(|e| Error::internal("read a client's rate", e))?;
        Ok((name.clone(), quota))
    };
    texts.iter().map(parse).collect()
}

fn senders(networks: &[String], certificate: Option<String>) -> Result<AllowedSenders> {
    let parse = |text: &String| text.parse().map_err(|e| Error::internal("read a network", e));
    let networks: Vec<IpNet> = networks.iter().map(parse).collect::<Result<_>>()?;
    Ok(AllowedSenders { networks, certificate })
}

/// The context that a sealed secret is bound to.
pub(crate) fn secret_context(client: Uuid, secret: Uuid) -> String {
    format!("client_secret/{client}/{secret}")
}

/// Loads the live secrets of these tenants. One that cannot be opened is logged and left out, so that
/// it does not block changes of other tenants. Readiness detects a wrong master key.
async fn secrets(
    core: &Core,
    ids: &[Uuid],
) -> Result<HashMap<(Uuid, SecretKind), Vec<TimedSecret>>> {
    let rows = sqlx::query!(
        r#"
        select client_id, secret_id, kind, sealed as "sealed!", valid_until
        from client_secret
        where client_id = any($1) and sealed is not null
            and (valid_until is null or valid_until > $2)
        order by valid_until desc nulls first
        "#,
        ids,
        core.clock.now(),
    )
    .fetch_all(&core.db)
    .await?;
    let mut secrets: HashMap<_, Vec<TimedSecret>> = HashMap::new();
    for row in rows {
        let text = match open(core, row.client_id, row.secret_id, &row.sealed) {
            Ok(text) => text,
            Err(error) => {
                let (client, secret) = (row.client_id, row.secret_id);
                tracing::error!(%error, %client, %secret, "a secret cannot be opened");
                continue;
            }
        };
        let kind = if row.kind == "signing" { SecretKind::Signing } else { SecretKind::Webhook };
        secrets
            .entry((row.client_id, kind))
            .or_default()
            .push(TimedSecret { secret: Secret::new(text), valid_until: row.valid_until });
    }
    Ok(secrets)
}

fn open(core: &Core, client: Uuid, secret: Uuid, sealed: &[u8]) -> Result<String> {
    let plain = core.keys.open(&secret_context(client, secret), sealed)?;
    String::from_utf8(plain).map_err(|e| Error::internal("read a secret", e))
}

async fn api_keys(core: &Core, ids: &[Uuid]) -> Result<HashMap<Uuid, Vec<Arc<ApiKey>>>> {
    let rows = sqlx::query!(
        "select client_id, api_key_id, public_id, secret_digest, scopes, expires_at, \
         allowed_addresses, certificate_subject \
         from api_key where client_id = any($1) and revoked_at is null",
        ids,
    )
    .fetch_all(&core.db)
    .await?;
    let mut keys: HashMap<_, Vec<Arc<ApiKey>>> = HashMap::new();
    for row in rows {
        let secret_digest = row
            .secret_digest
            .try_into()
            .map_err(|_| Error::broken("read an API key: its digest is not SHA-256"))?;
        let key = ApiKey {
            id: ApiKeyId::from(row.api_key_id),
            client: ClientId::from(row.client_id),
            public_id: row.public_id.into(),
            secret_digest,
            scopes: super::Scopes::from_stored(&row.scopes),
            expires_at: row.expires_at,
            allowed_senders: senders(&row.allowed_addresses, row.certificate_subject)?,
        };
        keys.entry(row.client_id).or_default().push(Arc::new(key));
    }
    Ok(keys)
}
