//! Loading of changed tenants from Postgres into a snapshot.

use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use ipnet::IpNet;
use rust_decimal::Decimal;
use sqlx::types::Json;
use uuid::Uuid;

use super::branding::BrandRow;
use super::create::SecretKind;
use super::{AllowedSenders, ApiKey, Buckets, GuestOrders, Mode, Rates, Tenant, TimedSecret};
use crate::Core;
use crate::platform::crypto::Secret;
use crate::platform::crypto::day_key::DayKey;
use crate::platform::db::{BrokenRow, Readable, readable};
use crate::platform::error::{Error, Result};
use crate::platform::network::canonical_network;
use crate::platform::rate_limit::Quota;
use crate::platform::settings::Gate;
use crate::policies::runtime::TenantPolicies;
use crate::tenancy::snapshot::Snapshot;
use crate::tenancy::tenant_keys;
use crate::trading::catalogue::PaymentMethodKind;
use rampart_types::{ApiKeyId, ClientId, LoopbackHttp};

/// Tenants that changed, with their secrets, keys and policies.
pub(crate) struct ChangedTenants {
    /// Every one that changed.
    pub(crate) ids: Vec<ClientId>,
    /// Those of them whose rows can be read.
    pub(crate) tenants: Vec<Tenant>,
    /// Rows that were left out.
    pub(crate) broken: Vec<BrokenRow>,
}

/// A row of `client`, as stored.
struct Row {
    client_id: Uuid,
    slug: String,
    username: String,
    name: String,
    mode: String,
    status: String,
    default_fee_percentage: Decimal,
    fee_cap_percentage: Decimal,
    wallet_address_required: bool,
    allowed_countries: Vec<String>,
    allowed_addresses: Vec<String>,
    rate_limits: Json<BTreeMap<String, String>>,
    tokens_valid_from: DateTime<Utc>,
    certificate_subject: Option<String>,
    compliance_gate: Option<String>,
    compliance_gates: Json<BTreeMap<String, String>>,
    guest_orders_allowed: Option<bool>,
    guest_orders_max: Option<Decimal>,
    accent_color: Option<String>,
    support_url: Option<String>,
    privacy_url: Option<String>,
    terms_url: Option<String>,
    logo_digest: Option<Vec<u8>>,
    logo_is_svg: bool,
}

impl ChangedTenants {
    /// The tenants that changed since `known` was loaded. A row that cannot be read costs its tenant
    /// alone: a key or a secret is left out, and with a broken `client`, `tenant_key` or
    /// `policy_version` the tenant.
    pub(crate) async fn load(core: &Core, known: &Snapshot) -> Result<Self> {
        let mut broken = Vec::new();
        let mut rows = rows(core, known.clients_revision(), &mut broken).await?;
        let readable = rows.iter().map(|row| ClientId::from(row.client_id));
        let changed: Vec<_> = readable.chain(broken.iter().filter_map(|row| row.client)).collect();
        let keyless = tenant_keys::load(core, &changed, &mut broken).await?;
        // Without its key a tenant could use nothing of its own.
        rows.retain(|row| !keyless.contains(&row.client_id.into()));
        let ids: Vec<Uuid> = rows.iter().map(|row| row.client_id).collect();
        let mut secrets = secrets(core, &ids, &mut broken).await?;
        let mut keys = api_keys(core, &ids, &mut broken).await?;
        let known_policies = ids
            .iter()
            .filter_map(|id| Some((*id, &known.tenants.get(&ClientId::from(*id))?.policies)))
            .collect();
        let mut policies = TenantPolicies::load(core, &ids, &known_policies, &mut broken).await?;
        let mut tenants = Vec::with_capacity(rows.len());
        for row in rows {
            let id = row.client_id;
            // Without them the built-in rules would apply, which may refuse less.
            let Some(policies) = policies.remove(&id) else { continue };
            let mut take_secrets = |kind| secrets.remove(&(id, kind)).unwrap_or_default();
            let held = Held {
                signing_secrets: take_secrets(SecretKind::Signing),
                webhook_secrets: take_secrets(SecretKind::Webhook),
                api_keys: keys.remove(&id).unwrap_or_default(),
                policies,
                before: known.tenants.get(&id.into()).cloned(),
            };
            match tenant(core, row, held) {
                Ok(tenant) => tenants.push(tenant),
                Err(error) => broken.push(BrokenRow::of_tenant("client", id, &id, &error)),
            }
        }
        let all = ids.into_iter().map(ClientId::from).chain(broken.iter().filter_map(|r| r.client));
        Ok(Self { ids: all.collect(), tenants, broken })
    }
}

/// Everything of a tenant besides its row.
struct Held {
    signing_secrets: Vec<TimedSecret>,
    webhook_secrets: Vec<TimedSecret>,
    api_keys: Vec<Arc<ApiKey>>,
    policies: TenantPolicies,
    /// The tenant so far, for its buckets.
    before: Option<Arc<Tenant>>,
}

/// The tenant of a row.
///
/// # Errors
/// When a value of the row cannot be read.
fn tenant(core: &Core, row: Row, held: Held) -> Result<Tenant> {
    let mode = if row.mode == "live" { Mode::Live } else { Mode::Test };
    let loopback_http = match mode {
        Mode::Test if core.settings.callbacks.allow_loopback => LoopbackHttp::Allowed,
        Mode::Test | Mode::Live => LoopbackHttp::Refused,
    };
    let guest_orders = match row.guest_orders_allowed.unwrap_or(mode == Mode::Test) {
        false => GuestOrders::Refused,
        true => row.guest_orders_max.map_or(GuestOrders::Allowed, GuestOrders::UpTo),
    };
    let brand = BrandRow {
        accent_color: row.accent_color,
        support_url: row.support_url,
        privacy_url: row.privacy_url,
        terms_url: row.terms_url,
        logo_digest: row.logo_digest,
        logo_is_svg: row.logo_is_svg,
    };
    let id = row.client_id.into();
    let rates = Rates::new(&core.settings.ratelimit, &quotas(&row.rate_limits.0)?);
    Ok(Tenant {
        id,
        brand: brand.brand(&row.slug),
        compliance_gate: row.compliance_gate.as_deref().map(gate).transpose()?,
        compliance_gates: gates(&row.compliance_gates.0)?,
        guest_orders,
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
        rates,
        buckets: Arc::new(Buckets::new(id, &rates, held.before.as_deref())),
        signing_secrets: held.signing_secrets,
        webhook_secrets: held.webhook_secrets,
        quote_key: DayKey::default(),
        api_keys: held.api_keys,
        policies: held.policies,
    })
}

async fn rows(core: &Core, revision: i64, broken: &mut Vec<BrokenRow>) -> Result<Vec<Row>> {
    let ids = sqlx::query_scalar!("select client_id from client where revision > $1", revision);
    let read = |part: Option<Vec<Uuid>>| async move {
        sqlx::query_as!(
            Row,
            r#"
            select client_id, slug, username, name, mode, status, default_fee_percentage,
                fee_cap_percentage, wallet_address_required, allowed_countries, allowed_addresses,
                rate_limits as "rate_limits: Json<BTreeMap<String, String>>",
                tokens_valid_from, certificate_subject, compliance_gate,
                compliance_gates as "compliance_gates: Json<BTreeMap<String, String>>",
                guest_orders_allowed, guest_orders_max, accent_color, support_url, privacy_url, terms_url,
                logo_digest, logo_is_svg
            from client
            where revision > $1 and ($2::uuid[] is null or client_id = any($2))
            "#,
            revision,
            part.as_deref(),
        )
        .fetch_all(&core.db)
        .await
    };
    Ok(of_tenants("client", readable(read, ids.fetch_all(&core.db)).await?, broken))
}

/// The rows that could be read; the others are noted, one for each tenant that has some.
pub(crate) fn of_tenants<R>(
    table: &'static str,
    read: Readable<Uuid, R>,
    broken: &mut Vec<BrokenRow>,
) -> Vec<R> {
    let noted = read.broken.iter();
    broken.extend(noted.map(|(id, reason)| BrokenRow::of_tenant(table, *id, id, reason)));
    read.rows
}

/// The gate of this name. Without one that it does not know an edge would hold less than it should.
fn gate(name: &str) -> Result<Gate> {
    Gate::from_name(name).ok_or_else(|| Error::invariant("know a client's gate"))
}

/// Gates by kind of method. One of a kind that this edge does not know is left out: an edge of a
/// later version has written it.
fn gates(names: &BTreeMap<String, String>) -> Result<BTreeMap<PaymentMethodKind, Gate>> {
    let known = names.iter().filter_map(|(method, name)| {
        let method = PaymentMethodKind::from_name(method)?;
        Some(gate(name).map(|gate| (method, gate)))
    });
    known.collect()
}

fn quotas(texts: &BTreeMap<String, String>) -> Result<BTreeMap<String, Quota>> {
    let parse = |(name, text): (&String, &String)| {
        let quota = text.parse().map_err(|e| Error::internal("read a client's rate", e))?;
        Ok((name.clone(), quota))
    };
    texts.iter().map(parse).collect()
}

fn senders(networks: &[String], certificate: Option<String>) -> Result<AllowedSenders> {
    let parse = |text: &String| {
        let network: IpNet = text.parse().map_err(|e| Error::internal("read a network", e))?;
        Ok(canonical_network(network))
    };
    let networks: Vec<IpNet> = networks.iter().map(parse).collect::<Result<_>>()?;
    Ok(AllowedSenders { networks, certificate })
}

/// The context that a sealed secret is bound to.
pub fn secret_context(client: Uuid, secret: Uuid) -> String {
    format!("client_secret/{client}/{secret}")
}

/// Loads the live secrets of these tenants. Readiness detects a wrong master key.
async fn secrets(
    core: &Core,
    ids: &[Uuid],
    broken: &mut Vec<BrokenRow>,
) -> Result<HashMap<(Uuid, SecretKind), Vec<TimedSecret>>> {
    let read = |part: Option<Vec<Uuid>>| async move {
        sqlx::query!(
            r#"
            select client_id, secret_id, kind, sealed as "sealed!", valid_until
            from client_secret
            where client_id = any($1) and sealed is not null
                and (valid_until is null or valid_until > rampart_now())
            order by valid_until desc nulls first
            "#,
            part.as_deref().unwrap_or(ids),
        )
        .fetch_all(&core.db)
        .await
    };
    let rows = readable(read, ready(Ok(ids.to_vec()))).await?;
    let mut secrets: HashMap<_, Vec<TimedSecret>> = HashMap::new();
    for row in of_tenants("client_secret", rows, broken) {
        let (client, secret) = (row.client_id, row.secret_id);
        let text = match open(core, client, secret, &row.sealed) {
            Ok(text) => text,
            Err(error) => {
                let why = BrokenRow::of_tenant("client_secret", client, &secret, &error);
                broken.push(why);
                continue;
            }
        };
        let kind = if row.kind == "signing" { SecretKind::Signing } else { SecretKind::Webhook };
        secrets
            .entry((client, kind))
            .or_default()
            .push(TimedSecret { secret: Secret::new(text), valid_until: row.valid_until });
    }
    Ok(secrets)
}

fn open(core: &Core, client: Uuid, secret: Uuid, sealed: &[u8]) -> Result<String> {
    let plain = core.cipher(client.into()).open(&secret_context(client, secret), sealed)?;
    String::from_utf8(plain).map_err(|_| Error::invariant("read a secret: it is not text"))
}

/// A row of `api_key`, as stored.
struct KeyRow {
    client_id: Uuid,
    api_key_id: Uuid,
    public_id: String,
    secret_digest: Vec<u8>,
    scopes: Vec<String>,
    expires_at: Option<DateTime<Utc>>,
    allowed_addresses: Vec<String>,
    certificate_subject: Option<String>,
}

async fn api_keys(
    core: &Core,
    ids: &[Uuid],
    broken: &mut Vec<BrokenRow>,
) -> Result<HashMap<Uuid, Vec<Arc<ApiKey>>>> {
    let read = |part: Option<Vec<Uuid>>| async move {
        sqlx::query_as!(
            KeyRow,
            "select client_id, api_key_id, public_id, secret_digest, scopes, expires_at, \
             allowed_addresses, certificate_subject \
             from api_key where client_id = any($1) and revoked_at is null",
            part.as_deref().unwrap_or(ids),
        )
        .fetch_all(&core.db)
        .await
    };
    let rows = readable(read, ready(Ok(ids.to_vec()))).await?;
    let mut keys: HashMap<_, Vec<Arc<ApiKey>>> = HashMap::new();
    for row in of_tenants("api_key", rows, broken) {
        let (client, id) = (row.client_id, row.api_key_id);
        match api_key(row) {
            Ok(key) => keys.entry(client).or_default().push(Arc::new(key)),
            Err(error) => broken.push(BrokenRow::of_tenant("api_key", client, &id, &error)),
        }
    }
    Ok(keys)
}

fn api_key(row: KeyRow) -> Result<ApiKey> {
    let not_sha_256 = |_| Error::invariant("read an API key: its digest is not SHA-256");
    Ok(ApiKey {
        id: ApiKeyId::from(row.api_key_id),
        client: ClientId::from(row.client_id),
        public_id: row.public_id.into(),
        secret_digest: row.secret_digest.try_into().map_err(not_sha_256)?,
        scopes: super::Scopes::from_stored(&row.scopes),
        expires_at: row.expires_at,
        allowed_senders: senders(&row.allowed_addresses, row.certificate_subject)?,
    })
}
