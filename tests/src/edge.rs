//! The real edge: `rampart serve` in a process of its own, on free ports, over a database of the
//! cluster.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::caller::{Caller, Protocol, received};
use crate::certificate::CERTIFICATE;
use crate::cluster::{self, OwnDatabase};
use crate::deadline::{SOON, until};
use crate::document;
use crate::going_live;
use crate::guests::native_code;
use crate::process::{Process, binary};

/// 32 bytes in base64, the same for all edges over one database.
pub(crate) const MASTER_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// Token of the admin listener.
pub const ADMIN_TOKEN: &str = "operator-of-the-test";
/// No address: of a listener that there is not.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
/// A rate that no test reaches.
pub const UNLIMITED: &str = "1000000/s burst 1000000";

static NUMBER: AtomicU32 = AtomicU32::new(0);
static SHARED: tokio::sync::Mutex<Weak<Edge>> = tokio::sync::Mutex::const_new(Weak::new());

/// The configuration of an edge: the settings of its environment, by `section.key`.
#[derive(Clone)]
pub struct Setup {
    settings: BTreeMap<String, String>,
    /// URL of its database for who owns the schema.
    owner: String,
    arguments: Vec<String>,
    wrapper: Vec<String>,
    binary: Option<PathBuf>,
    folder: Arc<Folder>,
    start_within: Duration,
    /// Removed once no edge and no copy of this configuration is left.
    _database: Option<Arc<OwnDatabase>>,
}

impl Setup {
    /// Free ports, the certificate of the harness, and a rate and connections per address that no test
    /// reaches, because all of them come from one.
    pub fn over(database: &str) -> Self {
        let folder = Arc::new(Folder::make());
        CERTIFICATE.write(folder.path());
        let mut setup = Self {
            settings: BTreeMap::new(),
            owner: database.to_owned(),
            arguments: Vec::new(),
            wrapper: Vec::new(),
            binary: None,
            folder: Arc::clone(&folder),
            start_within: SOON,
            _database: None,
        };
        for listener in ["edge.listen", "admin.listen", "connectors.listen", "ops.listen"] {
            setup.set(listener, "127.0.0.1:0");
        }
        let place = |name: &str| folder.path().join(name).display().to_string();
        setup.set("edge.tls.cert", place("cert.pem"));
        setup.set("edge.tls.key", place("key.pem"));
        setup.set("edge.upgrade_socket", place("upgrade.sock"));
        setup.set("edge.threads", "2");
        setup.set("admin.token", ADMIN_TOKEN);
        setup.set("database.url", database);
        setup.set("database.connections_max", "8");
        setup.set("database.acquire_timeout_ms", "10000");
        setup.set("database.statement_timeout_ms", "10000");
        // Policies are compiled at low priority, beside tests that have the processors as well, and a
        // live call may be put aside for longer than its deadline. Fuel bounds a call, not the clock.
        setup.set("policy.compile_timeout_ms", "120000");
        setup.set("policy.deadline_ms", "5000");
        setup.set("policy.cache_folder", native_code().display().to_string());
        setup.set("keys.master", MASTER_KEY);
        setup.set("documents.folder", folder.path().join("documents").display().to_string());
        setup.set("callbacks.allow_loopback", "true");
        setup.set("ratelimit.address", UNLIMITED);
        setup.set("edge.connections_per_address_max", "4096");
        setup.set("ratelimit.credentials", UNLIMITED);
        setup
    }

    /// Sets `section.key`.
    pub fn set(&mut self, key: &str, value: impl Into<String>) -> &mut Self {
        self.settings.insert(key.to_owned(), value.into());
        self
    }

    /// Takes `section.key` away.
    pub fn unset(&mut self, key: &str) -> &mut Self {
        self.settings.remove(key);
        self
    }

    /// Takes away a setting, or all of a section.
    pub fn unset_all(&mut self, name: &str) -> &mut Self {
        let below = format!("{name}.");
        self.settings.retain(|key, _| key != name && !key.starts_with(&below));
        self
    }

    /// Adds an argument behind `serve`.
    pub fn argument(&mut self, argument: impl Into<String>) -> &mut Self {
        self.arguments.push(argument.into());
        self
    }

    /// Takes all arguments away.
    pub fn clear_arguments(&mut self) -> &mut Self {
        self.arguments.clear();
        self
    }

    /// Has the edge use a database of the cluster under the roles of edges.
    pub async fn under_roles(mut self) -> Self {
        let [requests, workers] = cluster::edge_urls(&self.owner).await;
        self.set("database.url", requests).set("database.worker_url", workers);
        self
    }

    /// URL of the database that it is over, under the role that owns the schema.
    pub fn database(&self) -> &str {
        &self.owner
    }

    /// Has this command run the binary, such as a tool that watches it.
    pub fn under(&mut self, command: &[&str]) -> &mut Self {
        self.wrapper = command.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// Runs this binary in place of the one that cargo built.
    pub fn binary(&mut self, path: &Path) -> &mut Self {
        self.binary = Some(path.to_owned());
        self
    }

    /// Sets the timeout of its start, where that is longer than usual.
    pub fn start_within(&mut self, time: Duration) -> &mut Self {
        self.start_within = time;
        self
    }

    /// The folder with `cert.pem` and `key.pem`, accessible to its owner alone.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// `rampart serve` with these settings, started.
    pub fn spawn(&self) -> Process {
        let binary = self.program();
        let mut command = match self.wrapper.split_first() {
            Some((tool, arguments)) => {
                let mut command = Command::new(tool);
                command.args(arguments).arg(binary);
                command
            }
            None => Command::new(binary),
        };
        command.env_clear().arg("serve").args(&self.arguments).current_dir(self.folder.path());
        command.envs(self.environment());
        Process::spawn(command)
    }

    /// Another command of the binary with these settings, started.
    pub fn run(&self, command: &str) -> Process {
        let mut process = Command::new(self.program());
        process.env_clear().args(command.split(' ')).envs(self.environment());
        process.current_dir(self.folder());
        Process::spawn(process)
    }

    /// The binary that it runs.
    pub fn program(&self) -> PathBuf {
        self.binary.clone().unwrap_or_else(binary)
    }

    /// The settings as environment variables.
    pub fn environment(&self) -> impl Iterator<Item = (String, &str)> {
        let settings = self.settings.iter();
        settings.map(|(key, value)| {
            (format!("RAMPART__{}", key.to_uppercase().replace('.', "__")), value.as_str())
        })
    }
}

/// A folder that goes with its last user.
pub struct Folder(PathBuf);

impl Folder {
    /// A new one, empty, accessible to its owner alone.
    pub fn make() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("rampart-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        Self(path)
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays in the folder for temporary files does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running edge.
pub struct Edge {
    /// Its process.
    pub process: Process,
    /// Address of the partner listener.
    pub address: SocketAddr,
    /// Address of the admin listener.
    pub admin: SocketAddr,
    /// Address of the connectors' listener; unspecified where the binary, of an earlier version, has none.
    pub connectors: SocketAddr,
    /// Address of the listener for metrics and health.
    pub ops: SocketAddr,
    setup: Setup,
}

impl Edge {
    /// An edge over a database of its own.
    pub async fn start() -> Self {
        Self::with(|_| ()).await
    }

    /// The same with settings that the test changes.
    pub async fn with(change: impl FnOnce(&mut Setup)) -> Self {
        let database = OwnDatabase::make().await;
        let setup = Setup::over(database.url()).under_roles().await;
        let mut setup = Setup { _database: Some(Arc::new(database)), ..setup };
        change(&mut setup);
        Self::of(setup).await
    }

    /// An edge that the tests of this process use together, as long as one of them does. For what
    /// cannot disturb the others.
    pub async fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().await;
        if let Some(edge) = shared.upgrade() {
            return edge;
        }
        let edge = Arc::new(Self::start().await);
        *shared = Arc::downgrade(&edge);
        edge
    }

    /// An edge of this setup, accepting.
    pub async fn of(setup: Setup) -> Self {
        let process = setup.spawn();
        let line = until("the edge says where it listens", setup.start_within, async || {
            let is_it = |line: &String| {
                line.starts_with("listening ") || line.contains(r#""message":"listening""#)
            };
            let line = process.out().into_iter().find(is_it);
            let ended = line.is_none() && process.status().is_some();
            assert!(!ended, "the edge has ended: {:?}", process.err());
            line
        })
        .await;
        let members: Option<Value> = serde_json::from_str(&line).ok();
        let listens_on = |name: &str| {
            let mut words = line.split(' ').filter_map(|word| word.split_once('='));
            let address = match &members {
                Some(said) => said[name].as_str().or_else(|| said[name][0].as_str()),
                None => words.find(|(known, _)| *known == name).map(|(_, address)| address),
            };
            address.map(|address| address.parse().unwrap())
        };
        let address = |name| listens_on(name).unwrap();
        let (edge, admin, ops) = (address("edge"), address("admin"), address("ops"));
        let connectors = listens_on("connectors").unwrap_or(NOWHERE);
        Self { process, address: edge, admin, connectors, ops, setup }
    }

    /// Another edge with the same settings, over the same database.
    pub async fn beside(&self) -> Self {
        Self::of(self.setup.clone()).await
    }

    /// A copy of its configuration, for another edge.
    pub fn setup(&self) -> Setup {
        self.setup.clone()
    }

    /// A path as a URL of the public listener.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// A test client, made through the admin listener, with rates that no test reaches.
    pub async fn partner(&self, slug: &str) -> Caller {
        let partner = self.limited_partner(slug).await;
        let rates = json!({"rateLimits": {"client": UNLIMITED, "quotes": UNLIMITED}});
        let path = format!("/admin/v1/partners/{slug}");
        self.admin(Method::PATCH, &path, rates).await.assert_status(200);
        partner
    }

    /// A test client with the default rates.
    pub async fn limited_partner(&self, slug: &str) -> Caller {
        self.partner_of(json!({"slug": slug, "name": slug, "mode": "test"})).await
    }

    /// A client made of this body, with the default rates.
    pub async fn partner_of(&self, body: Value) -> Caller {
        let made = going_live::partner(body, &mut async |method, path, body| {
            self.admin(method, &path, body).await
        })
        .await;
        Caller::new(self.address, Protocol::Http1, made)
    }

    /// A call of the admin listener with its token.
    pub async fn admin(&self, method: Method, path: &str, body: Value) -> Answer {
        self.admin_bytes(method, path, body.to_string().into()).await
    }

    /// The same with these bytes.
    pub async fn admin_bytes(&self, method: Method, path: &str, body: Bytes) -> Answer {
        let url = format!("http://{}{path}", self.admin);
        let request = Protocol::Http1.client().request(method.clone(), url);
        let request = request.bearer_auth(ADMIN_TOKEN).body(body.clone());
        let answer = received(request.send().await.unwrap()).await;
        // Another version's binary answers as its own document says.
        if self.setup.binary.is_none() {
            let (path, query) = path.split_once('?').map_or((path, None), |(p, q)| (p, Some(q)));
            document::OPERATORS.check(&method, path, query, &body, &answer);
        }
        answer
    }

    /// Runs the binary with these arguments, as a command of its operators.
    pub async fn command(&self, arguments: &[&str]) -> Output {
        self.command_as(ADMIN_TOKEN, arguments).await
    }

    /// The same with this token.
    pub async fn command_as(&self, token: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(binary());
        command.env_clear().args(arguments).stdin(Stdio::null());
        command.env("RAMPART__ADMIN__LISTEN", self.admin.to_string());
        command.env("RAMPART__ADMIN__TOKEN", token);
        let certificate = self.setup.settings.get("admin.tls.cert");
        command.envs(certificate.map(|file| ("RAMPART__ADMIN__TLS__CERT", file)));
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }

    /// GET of the ops listener.
    pub async fn ops(&self, path: &str) -> Answer {
        let url = format!("http://{}{path}", self.ops);
        received(Protocol::Http1.client().get(url).send().await.unwrap()).await
    }
}
