//! Everything on one machine: edges, PgBouncer, HAProxy, the members, Valkey, Prometheus.

use std::net::SocketAddr;
use std::process::Command;

use rampart_tests::caller::Caller;
use rampart_tests::cluster;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::journal::PARTNER;
use rampart_tests::pgbouncer::PgBouncer;
use rampart_tests::prices;
use rampart_tests::process::binary;
use rampart_tests::valkey::Valkey;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool};

use crate::haproxy::HaProxy;
use crate::patroni::{MEMBERS, Patroni};
use crate::prometheus::Prometheus;
use crate::site::Site;

/// Edges.
const EDGES: usize = 2;
/// Connections of PgBouncer to the leader for each role.
const SERVERS: u32 = 20;
/// The database and the role that owns it.
const OWNER: &str = "rampart";

/// Running processes, in the order in which they end.
pub(crate) struct Stack {
    prometheus: Prometheus,
    /// The edges.
    pub(crate) edges: Vec<Edge>,
    /// A partner of theirs, with a token.
    pub(crate) partner: Caller,
    _valkey: Valkey,
    _pooler: PgBouncer,
    balancer: HaProxy,
    /// The database's members.
    pub(crate) patroni: Patroni,
    /// The folder of everything.
    pub(crate) site: Site,
}

impl Stack {
    /// Starts everything, from the bottom to the top, each once what it needs is there.
    pub(crate) async fn start() -> Self {
        let site = Site::make();
        let patroni = Patroni::start(&site).await;
        println!("three members under Patroni, one of them leads");
        let balancer = HaProxy::start(&site, patroni.members());
        make_database(balancer.leader, &patroni.password).await;
        println!("HAProxy leads to it; the schema is migrated");
        let pooler = PgBouncer::before(balancer.leader, &patroni.password, SERVERS).await;
        let valkey = Valkey::start(&[]).await;
        let edges = start_edges(balancer.leader, &patroni.password, &pooler, &valkey).await;
        let partner = edges[0].partner(PARTNER).await.authenticated().await;
        for edge in &edges {
            let there = partner.at(edge.address);
            until("the edge knows the partner", SOON, async || {
                let answer = there.request(http::Method::GET, "/api/v1/prices").try_send().await;
                answer.is_ok_and(|answer| answer.status() == 200).then_some(())
            })
            .await;
        }
        let prometheus = Prometheus::start(&site, &edges, patroni.members());
        println!("two edges behind PgBouncer, with Valkey and Prometheus");
        Self {
            prometheus,
            edges,
            partner,
            _valkey: valkey,
            _pooler: pooler,
            balancer,
            patroni,
            site,
        }
    }

    /// A look at the database by the leader, under the role that sees every row.
    pub(crate) async fn look(&self) -> PgPool {
        let password = &self.patroni.password;
        cluster::pool(&url("postgres", password, self.balancer.leader, OWNER)).await
    }

    /// Waits until both edges are ready.
    pub(crate) async fn ready(&self) {
        for edge in &self.edges {
            until("the edge is ready", SOON, async || {
                (edge.ops("/readyz").await.status() == 200).then_some(())
            })
            .await;
        }
    }

    /// Everything that Prometheus has not seen as it must be after so many kills, a sentence each.
    pub(crate) async fn unseen(&self, kills: usize) -> Vec<String> {
        let mut wrong = Vec::new();
        let up = self.prometheus.values(r#"min_over_time(up{job="rampart"}[1h])"#).await;
        if up != ["1"; EDGES] {
            wrong.push(format!("edges did not answer Prometheus at some time: {up:?}"));
        }
        // Each leader begins a timeline of its own.
        let timeline = self.prometheus.values("max(patroni_postgres_timeline)").await;
        let expected = (kills + 1).to_string();
        if timeline != [expected] {
            wrong.push(format!("after {kills} kills Prometheus shows timeline {timeline:?}"));
        }
        wrong
    }
}

fn url(role: &str, password: &str, leader: SocketAddr, database: &str) -> String {
    format!("postgres://{role}:{password}@{leader}/{database}?sslmode=disable")
}

/// Makes the database and the roles, and has `rampart migrate` write the schema.
async fn make_database(leader: SocketAddr, password: &str) {
    let server = url("postgres", password, leader, "postgres");
    // Before its first checks HAProxy takes every member for the leader, in turn.
    let mut writable_in_a_row = 0;
    let mut server = until("HAProxy leads to the leader alone", SOON, async || {
        let before = std::mem::take(&mut writable_in_a_row);
        let mut server = PgConnection::connect(&server).await.ok()?;
        let reads = sqlx::query_scalar("select pg_is_in_recovery()");
        let reads: bool = reads.fetch_one(&mut server).await.ok()?;
        writable_in_a_row = if reads { 0 } else { before + 1 };
        (writable_in_a_row > 2 * MEMBERS).then_some(server)
    })
    .await;
    let make = [
        format!("create role {OWNER} login createrole password '{password}'"),
        format!("create database {OWNER} owner {OWNER}"),
    ];
    for statement in make {
        run(&mut server, statement).await;
    }
    let owner = url(OWNER, password, leader, OWNER);
    let migrated = Command::new(binary())
        .arg("migrate")
        .env_clear()
        .env("RAMPART__DATABASE__MIGRATE_URL", &owner)
        .output()
        .unwrap();
    assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
    for role in ["rampart_edge", "rampart_worker"] {
        run(&mut server, format!("alter role {role} login password '{password}'")).await;
    }
    server.close().await.unwrap();
    prices::set(&owner).await;
}

async fn run(server: &mut PgConnection, statement: String) {
    sqlx::query(AssertSqlSafe(statement)).execute(server).await.unwrap();
}

/// Edges with pools and timeouts as in production.
async fn start_edges(
    leader: SocketAddr,
    password: &str,
    pooler: &PgBouncer,
    valkey: &Valkey,
) -> Vec<Edge> {
    let mut setup = Setup::over(&url(OWNER, password, leader, OWNER));
    setup.set("database.url", pooler.url("rampart_edge", OWNER));
    setup.set("database.worker_url", pooler.url("rampart_worker", OWNER));
    setup.set("ratelimit.redis_url", valkey.url());
    setup.set("lifetimes.quote_seconds", "3600").set("log.access", "false");
    for key in ["connections_max", "acquire_timeout_ms", "statement_timeout_ms"] {
        setup.unset(&format!("database.{key}"));
    }
    let mut edges = vec![Edge::of(setup).await];
    while edges.len() < EDGES {
        edges.push(edges[0].beside().await);
    }
    edges
}
