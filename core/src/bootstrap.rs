//! Construction of the core from settings.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;

use crate::Core;
use crate::auth::login_failures::LoginFailures;
use crate::auth::oidc::Provider;
use crate::auth::passwords::Passwords;
use crate::auth::tokens::Tokens;
use crate::endpoint::KeyClaims;
use crate::endpoint::router::ServedApis;
use crate::http::images::ImageProcessor;
use crate::money::connectors::caller::FAILURES;
use crate::money::connectors::waits::LeaseWaits;
use crate::notify::callbacks::{Outbound, SweptDeliveries};
use crate::notify::events::marks::TransactionMarks;
use crate::partners::Attempts;
use crate::platform::acme::AcmeClient;
use crate::platform::clock::Clock;
use crate::platform::crypto::tenant_key::TenantKeys;
use crate::platform::crypto::{KEY_BYTES, MasterKey, Purpose, Secret, lasting_context};
use crate::platform::db::{self, DatabaseError, Pool};
use crate::platform::error::{Error, Result};
use crate::platform::heartbeats::Heartbeats;
use crate::platform::log_throttle::LogThrottle;
use crate::platform::mail::Mailer;
use crate::platform::metrics::Metrics;
use crate::platform::object_store::DocumentStore;
use crate::platform::schema::{self, Applied, Schema};
use crate::platform::settings::{self, Settings};
use crate::platform::shared_rates::SharedRates;
use crate::platform::telemetry::Telemetry;
use crate::policies::ShadowQueue;
use crate::policies::runtime::Policies;
use crate::tenancy::snapshot::Snapshots;
use crate::tenancy::tenant_keys;
use crate::tenancy::tenants::api_keys::ApiKeyUses;
use crate::trading::limits::upstream::Upstream;
use crate::trading::market::PriceCache;
use crate::trading::market::feed::PriceFeed;
use crate::trading::orders::{OrderInserts, OrderReads};
use crate::trading::pay::OrderWatches;
use crate::trading::payment_methods::{MethodCache, PerformanceCache};
use crate::trading::quotes::counts::QuoteCounts;
use crate::trading::sell::onboarding_signers::OnboardingSigners;
use crate::users;
use rampart_types::fiat_exponent;

/// Time for the command that prints the master key.
const KEY_COMMAND_MAX: Duration = Duration::from_secs(30);

/// The reason the core cannot start: one sentence for the operator.
#[derive(Debug)]
pub struct StartError {
    subject: &'static str,
    sentence: String,
}

impl StartError {
    /// The part of the installation that it is about: `configuration`, `keys.master` or `database`.
    pub const fn subject(&self) -> &'static str {
        self.subject
    }

    fn configuration(sentence: impl Into<String>) -> Self {
        Self { subject: "configuration", sentence: sentence.into() }
    }

    fn master_key(sentence: impl Into<String>) -> Self {
        Self { subject: "keys.master", sentence: sentence.into() }
    }

    fn database(error: impl std::fmt::Display) -> Self {
        Self { subject: "database", sentence: error.to_string() }
    }
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for StartError {}

/// Parts made of the settings alone, before the database is opened.
struct Parts {
    upstream: Option<Upstream>,
    mailer: Option<Mailer>,
    price_feed: Option<PriceFeed>,
    metrics: Metrics,
    oidc: Option<Provider>,
    telemetry: Telemetry,
    shared_rates: SharedRates,
    acme: AcmeClient,
    documents: DocumentStore,
}

impl Parts {
    fn new(settings: &Settings, clock: &Clock) -> Result<Self, StartError> {
        let upstream = configured_upstream(settings)?;
        let price_feed = PriceFeed::new(&settings.prices).map_err(StartError::configuration)?;
        settings.quotes.check().map_err(StartError::configuration)?;
        settings.policy.check().map_err(StartError::configuration)?;
        check_limit_currency(settings)?;
        let mailer =
            Mailer::new(&settings.mail, &settings.public_url).map_err(StartError::configuration)?;
        let metrics = Metrics::new(settings.metrics.partners_max)
            .map_err(|error| StartError::configuration(error.to_string()))?;
        let oidc = settings.operators.oidc.as_ref().map(Provider::new).transpose();
        let telemetry = Telemetry::new(&settings.telemetry, clock, &metrics);
        let shared_rates = SharedRates::new(&settings.ratelimit, clock, &metrics);
        let documents = DocumentStore::new(&settings.documents, clock, &metrics);
        Ok(Self {
            upstream,
            mailer,
            price_feed,
            oidc: oidc.map_err(StartError::configuration)?,
            telemetry: telemetry.map_err(StartError::configuration)?,
            shared_rates: shared_rates.map_err(StartError::configuration)?,
            acme: AcmeClient::new(&settings.acme).map_err(StartError::configuration)?,
            documents: documents.map_err(StartError::configuration)?,
            metrics,
        })
    }
}

impl Core {
    /// Connects, checks the schema and loads the snapshot. The runtime that awaits this owns the pool
    /// and must outlive the core.
    ///
    /// # Errors
    /// One sentence that names the cause.
    pub async fn start(
        apis: ServedApis,
        settings: Settings,
        clock: Clock,
    ) -> Result<Arc<Self>, StartError> {
        let configured = configured_key(&settings).await?;
        let parts = Parts::new(&settings, &clock)?;
        let db = open_checked(&settings.database, &clock).await.map_err(StartError::database)?;
        let keys = match configured {
            Some(key) => key,
            None => {
                refuse_live_without_key(&db).await?;
                stored_key(&clock, &db).await.map_err(StartError::database)?
            }
        };
        store_lasting_keys(&keys, &clock, &db).await.map_err(StartError::database)?;
        let assembled = Self::assemble(apis, settings, clock, db, keys, parts).await;
        assembled.map_err(StartError::database)
    }

    /// Starts what [`Core::start`] would, but changes nothing: neither the database nor a folder.
    /// The second value is the state of the schema; the first is absent where an edge refuses it.
    ///
    /// # Errors
    /// One sentence that names the cause.
    pub async fn inspect(
        apis: ServedApis,
        mut settings: Settings,
        clock: Clock,
    ) -> Result<(Option<Arc<Self>>, Schema), StartError> {
        let configured = configured_key(&settings).await?;
        let parts = Parts::new(&settings, &clock)?;
        settings.policy.cache_folder = None;
        let db = db::open(&settings.database, &clock).await.map_err(StartError::database)?;
        let schema = Schema::read(&db).await.map_err(StartError::database)?;
        if schema.refusal().is_some() {
            return Ok((None, schema));
        }
        schema::check(&db).await.map_err(StartError::database)?;
        let keys = match configured {
            Some(key) => key,
            None => {
                refuse_live_without_key(&db).await?;
                read_key(&clock, &db).await.map_err(StartError::database)?
            }
        };
        let assembled = Self::assemble(apis, settings, clock, db, keys, parts).await;
        Ok((Some(assembled.map_err(StartError::database)?), schema))
    }

    async fn assemble(
        apis: ServedApis,
        settings: Settings,
        clock: Clock,
        db: Pool,
        keys: MasterKey,
        parts: Parts,
    ) -> Result<Arc<Self>> {
        load_lasting_keys(&keys, &db).await?;
        let has_tenant_keys = match settings.keys.per_tenant {
            Some(chosen) => chosen,
            None => tenant_keys::by_default(&db).await?,
        };
        db.measure(&parts.metrics);
        parts.metrics.build_info.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        let policies = Arc::new(Policies::new(&settings.policy, &keys, clock.clone())?);
        let passwords = Passwords::new(clock.clone())?;
        let (order_inserts, order_reads) = (OrderInserts::start(&db), OrderReads::start(&db));
        let key_claims = KeyClaims::start(&db);
        let core = Arc::new(Self {
            clock,
            db,
            keys,
            tenant_keys: TenantKeys::default(),
            has_tenant_keys,
            metrics: parts.metrics,
            telemetry: parts.telemetry,
            outbound: Outbound::new()?,
            apis,
            policies,
            policy_shadows: ShadowQueue::default(),
            price_feed: parts.price_feed,
            mailer: parts.mailer,
            upstream: parts.upstream,
            snapshots: Snapshots::empty(),
            passwords,
            documents: parts.documents,
            images: ImageProcessor::default(),
            method_cache: MethodCache::default(),
            price_cache: PriceCache::default(),
            method_performance: PerformanceCache::default(),
            acme: parts.acme,
            used_up_shares: LogThrottle::default(),
            shared_rates: Arc::new(parts.shared_rates),
            attempts: Attempts::default(),
            oidc: parts.oidc,
            login_failures: LoginFailures::new(settings.ratelimit.operators),
            connector_failures: LoginFailures::new(FAILURES),
            lease_waits: LeaseWaits::default(),
            user_attempts: users::Attempts::default(),
            tokens: Tokens::new(&settings.lifetimes),
            order_inserts,
            key_claims,
            order_reads,
            order_watches: OrderWatches::default(),
            api_key_uses: ApiKeyUses::default(),
            transaction_marks: TransactionMarks::default(),
            swept_deliveries: SweptDeliveries::default(),
            quote_counts: QuoteCounts::default(),
            onboarding_signers: OnboardingSigners::default(),
            heartbeats: Heartbeats::default(),
            settings,
        });
        core.refresh().await?;
        Ok(core)
    }
}

/// Connects to a database whose schema this version can serve, migrated first where the settings
/// say so.
async fn open_checked(settings: &settings::Database, clock: &Clock) -> Result<Pool, DatabaseError> {
    if settings.migrate_on_start {
        let report = |applied: &Applied| tracing::info!(migration = applied.name, "migrated");
        schema::migrate(settings, report).await?;
    }
    let db = db::open(settings, clock).await?;
    schema::check(&db).await?;
    Ok(db)
}

/// The backend for limits, if one is configured.
fn configured_upstream(settings: &Settings) -> Result<Option<Upstream>, StartError> {
    let Some(text) = &settings.limits.upstream else { return Ok(None) };
    let wrong = "limits.upstream is not a base URL such as https://limits.example.com";
    Upstream::parse(text).map(Some).ok_or_else(|| StartError::configuration(wrong))
}

fn check_limit_currency(settings: &Settings) -> Result<(), StartError> {
    let currency = settings.limits.currency;
    let refused = || format!("limits.currency '{currency}' is no fiat currency");
    fiat_exponent(currency).map(drop).ok_or_else(|| StartError::configuration(refused()))
}

/// The configured master key. Checked before anything else.
async fn configured_key(settings: &Settings) -> Result<Option<MasterKey>, StartError> {
    let printed = printed_key(&settings.keys.master_command).await?;
    if printed.is_some() && settings.keys.master.is_some() {
        return Err(StartError::master_key("keys.master and keys.master_command are both set"));
    }
    let (text, setting) = match (&settings.keys.master, &printed) {
        (Some(text), _) => (text, "keys.master"),
        (None, Some(text)) => (text, "the output of keys.master_command"),
        (None, None) => return Ok(None),
    };
    let key = MasterKey::parse(text);
    key.map(Some).ok_or_else(|| {
        let wrong = "is not 32 bytes in base64, or a list of up to 8 such keys";
        StartError::master_key(format!("{setting} {wrong}"))
    })
}

/// The output of a command, if there is one.
async fn printed_key(command: &[String]) -> Result<Option<Secret>, StartError> {
    let Some((program, arguments)) = command.split_first() else { return Ok(None) };
    let failed = |why: &dyn std::fmt::Display| {
        StartError::master_key(format!("keys.master_command, '{program}', gives no key: {why}"))
    };
    let run = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(KEY_COMMAND_MAX, run).await;
    let output = output.map_err(|_| failed(&"it takes longer than 30 s"))?;
    let output = output.map_err(|error| failed(&error))?;
    if !output.status.success() {
        return Err(failed(&output.status));
    }
    String::from_utf8(output.stdout)
        .map(|text| Some(Secret::new(text)))
        .map_err(|_| failed(&"its output is not text"))
}

/// Refuses a database with live partners whose master key would lie beside what it seals.
async fn refuse_live_without_key(db: &Pool) -> Result<(), StartError> {
    let live =
        sqlx::query_scalar!(r#"select exists (select from client where mode = 'live') as "live!""#);
    match live.fetch_one(db).await.map_err(Error::from).map_err(StartError::database)? {
        false => Ok(()),
        true => Err(StartError::master_key(
            "keys.master is not set, and there are live partners: configure the key (so far it is \
             in the table edge_key)",
        )),
    }
}

/// Stores the keys that outlive a rotation, at the first start.
async fn store_lasting_keys(keys: &MasterKey, clock: &Clock, db: &Pool) -> Result<()> {
    let stored = lasting_keys(db).await?;
    let names = Purpose::LASTING.map(|purpose| (purpose, purpose.label()));
    for (purpose, name) in names.into_iter().filter(|(_, name)| !stored.contains_key(name)) {
        let sealed = keys.seal(clock, &lasting_context(&name), &keys.derive_oldest(purpose)?)?;
        sqlx::query!(
            "insert into lasting_key (name, sealed, created_at) values ($1, $2, now()) \
             on conflict (name) do nothing",
            name,
            sealed,
        )
        .execute(db)
        .await?;
    }
    Ok(())
}

/// Loads the keys that outlive a rotation. What needs one of another master key fails; readiness tells.
async fn load_lasting_keys(keys: &MasterKey, db: &Pool) -> Result<()> {
    let mut opened = HashMap::new();
    for (name, sealed) in lasting_keys(db).await? {
        let key = keys.open(&lasting_context(&name), &sealed).and_then(|key| {
            let key = <[u8; KEY_BYTES]>::try_from(key);
            key.map_err(|_| Error::invariant("open a lasting key: another length"))
        });
        if let Err(error) = &key {
            tracing::error!(%error, name, "a lasting key cannot be opened");
        }
        opened.insert(name, key.ok());
    }
    keys.keep_lasting(opened);
    Ok(())
}

async fn lasting_keys(db: &Pool) -> Result<HashMap<String, Vec<u8>>> {
    let rows = sqlx::query!("select name, sealed from lasting_key").fetch_all(db).await?;
    Ok(rows.into_iter().map(|row| (row.name, row.sealed)).collect())
}

/// The master key in the database, generated at the first start.
async fn stored_key(clock: &Clock, db: &Pool) -> Result<MasterKey> {
    tracing::warn!("keys.master is not set: the key is kept in the database beside what it seals");
    let generated: [u8; KEY_BYTES] = clock.random_bytes()?;
    sqlx::query!(
        "insert into edge_key (name, value, created_at) values ('master', $1, $2) \
         on conflict (name) do nothing",
        &generated[..],
        clock.now(),
    )
    .execute(db)
    .await?;
    read_key(clock, db).await
}

/// The master key in the database; one that is kept nowhere when there is none yet.
async fn read_key(clock: &Clock, db: &Pool) -> Result<MasterKey> {
    let stored = sqlx::query_scalar!("select value from edge_key where name = 'master'")
        .fetch_optional(db)
        .await?;
    match stored {
        Some(stored) => Ok(MasterKey::from_bytes(&stored)),
        None => Ok(MasterKey::from_bytes(&clock.random_bytes::<KEY_BYTES>()?)),
    }
}
