//! The core over a database of the test's own.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use rampart_api::operate::listener;
use rampart_api::served_apis;
use rampart_core::Core;
use rampart_core::http::request::Head;
use rampart_core::platform::clock::Clock;
use rampart_core::platform::crypto::Secret;
use rampart_core::platform::settings::Settings;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::answer::Answer;
use crate::caller::Caller;
use crate::cluster::{self, OwnDatabase};
use crate::document;
use crate::edge::{ADMIN_TOKEN, Edge, MASTER_KEY};
use crate::going_live;
use crate::guests::native_code;
use crate::partner::Partner;

/// One edge's core, or several over one database.
pub struct TestContext {
    core: Arc<Core>,
    settings: Settings,
    url: String,
    db: PgPool,
    /// Of the first edge over it.
    _database: Option<OwnDatabase>,
}

impl TestContext {
    /// A context with default settings.
    pub async fn start() -> Self {
        Self::with(|_| ()).await
    }

    /// A context whose settings the test changes.
    pub async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let database = OwnDatabase::make().await;
        let url = database.url().to_owned();
        let context = Box::pin(Self::over(url, Clock::system(), change)).await;
        Self { _database: Some(database), ..context }
    }

    /// The core of an edge that runs in a process of its own, over the same database and with this
    /// clock: what was issued then, or will be, is issued now.
    pub async fn beside(edge: &Edge, clock: Clock) -> Self {
        Self::over(edge.setup().database().to_owned(), clock, |_| ()).await
    }

    async fn over(url: String, clock: Clock, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::default();
        let [requests, workers] = cluster::edge_urls(&url).await;
        settings.database.url = Some(Secret::new(requests));
        settings.database.worker_url = Some(Secret::new(workers));
        // A pool opens all that it may, one request after the other, and each costs a start and cold
        // caches.
        settings.database.connections_max = 4;
        settings.database.worker_connections_max = 3;
        settings.database.operator_connections_max = 3;
        settings.database.connector_connections_max = 3;
        // A busy machine may take its time; the test is not about that.
        settings.database.acquire_timeout_ms = 20_000;
        settings.database.statement_timeout_ms = 20_000;
        settings.policy.compile_timeout_ms = 120_000;
        // Of wall clock, while other tests have the processors.
        settings.policy.deadline_ms = 5_000;
        settings.policy.cache_folder = Some(native_code().to_owned());
        settings.keys.master = Some(Secret::new(MASTER_KEY));
        settings.callbacks.allow_loopback = true;
        settings.pages.gallery = true;
        settings.admin_token = Some(Secret::new(ADMIN_TOKEN));
        settings.public_url = "https://pay.example.com".to_owned();
        // A server that is not there: nothing is sent unless a test runs the worker.
        settings.mail.smtp_url = Some(Secret::new("smtp://127.0.0.1:9"));
        let folder = format!("rampart-documents-{}", std::process::id());
        settings.documents.folder = Some(std::env::temp_dir().join(folder));
        change(&mut settings);
        let core = Box::pin(Core::start(served_apis(), settings.clone(), clock)).await.unwrap();
        let db = cluster::pool(&url).await;
        Self { core, settings, url, db, _database: None }
    }

    /// Another edge over the same database, with a core and a pool of its own and the same clock.
    pub async fn second_edge(&self) -> Self {
        self.edge_with(|_| ()).await
    }

    /// Another edge whose settings differ.
    pub async fn edge_with(&self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = self.settings.clone();
        change(&mut settings);
        let clock = self.core.clock.clone();
        let core = Box::pin(Core::start(served_apis(), settings.clone(), clock)).await.unwrap();
        let db = cluster::pool(&self.url).await;
        Self { core, settings, url: self.url.clone(), db, _database: None }
    }

    /// The core itself, for what no request can reach (a worker's turn, a refresh).
    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// The clock of every edge of this context.
    pub fn clock(&self) -> &Clock {
        &self.core.clock
    }

    /// The URL of this test's own database, for the role that owns it.
    pub fn database(&self) -> &str {
        &self.url
    }

    /// This test's own database.
    pub fn db(&self) -> &PgPool {
        &self.db
    }

    /// A test client, made by the admin API, with generous rates.
    pub async fn partner(&self, slug: &str) -> Partner {
        self.partner_of(json!({"slug": slug, "name": slug, "mode": "test"})).await
    }

    /// A client made of this body. For a live one, everything that it needs is there.
    pub async fn partner_of(&self, body: Value) -> Partner {
        let made = going_live::partner(body, &mut async |method, path, body| {
            self.admin(method, &path, body).await
        })
        .await;
        Partner::new(Arc::clone(&self.core), &made)
    }

    /// A partner of another core over this database.
    pub fn known(&self, partner: &Caller) -> Partner {
        Partner::new(Arc::clone(&self.core), partner.made())
    }

    /// The token of a new operator with these roles.
    pub async fn operator(&self, name: &str, roles: &[&str]) -> String {
        let body = json!({"name": name, "roles": roles});
        let made = self.admin(Method::POST, "/admin/v1/operators", body).await;
        made.assert_status(201).json()["token"].as_str().unwrap().to_owned()
    }

    /// A call of the operators' API with its token.
    pub async fn admin(&self, method: Method, path: &str, body: Value) -> Answer {
        self.admin_bytes(method, path, body.to_string().into()).await
    }

    /// A call of the operators' API with its token and these bytes.
    pub async fn admin_bytes(&self, method: Method, path: &str, body: Bytes) -> Answer {
        self.admin_as(Some(ADMIN_TOKEN), method, path, body).await
    }

    /// A call of the operators' API with this token and these bytes.
    pub async fn admin_as(
        &self,
        token: Option<&str>,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Answer {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", &**bearer)).collect();
        self.admin_with(&headers, method, path, body).await
    }

    /// A call of the operators' API with these headers and these bytes.
    pub async fn admin_with(
        &self,
        headers: &[(&'static str, &str)],
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Answer {
        let mut head = head(method.clone(), path);
        for (name, value) in headers {
            head.headers.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        let Head { path, query, .. } = head.clone();
        // On the heap: unoptimised, a test's calls would not fit on its thread's stack.
        let reply = Box::pin(listener::answer(&self.core, head, body.clone())).await;
        let answer = Answer::of_operators(&method, &path, reply);
        document::OPERATORS.check(&method, &path, query.as_deref(), &body, &answer);
        answer
    }
}

/// The head of a request from loopback; `path` may have a query.
pub fn head(method: Method, path: &str) -> Head {
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Some(query.to_owned())),
        None => (path, None),
    };
    Head {
        method,
        path: path.to_owned(),
        query,
        headers: HeaderMap::new(),
        peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
        client_certificate: None,
        request_id: "test-request".to_owned(),
    }
}
