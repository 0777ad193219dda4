//! Two edges over one Postgres, and a partner of theirs.

use std::net::SocketAddr;
use std::time::Duration;

use rampart_core::platform::clock::Clock;
use rampart_tests::caller::Caller;
use rampart_tests::campaign::Scale;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{Edge, Setup};
use rampart_tests::postgres_server::PostgresServer;
use sqlx::PgPool;
use tokio::sync::watch;

use rampart_tests::journal::PARTNER;
use rampart_tests::load::{Load, Pace};

/// Edges at any time.
const EDGES: usize = 2;
/// Longest wait for a connection in the short form, twice the default.
const SHORT_ACQUIRE_MS: &str = "2000";

/// The parts that are broken, and the partner that feels it.
pub(crate) struct Fleet {
    /// The edges; one that was killed is replaced in its place.
    pub(crate) edges: Vec<Edge>,
    addresses: watch::Sender<Vec<SocketAddr>>,
    /// The partner, with a token.
    pub(crate) partner: Caller,
    /// The server.
    pub(crate) postgres: PostgresServer,
    database: String,
    clock: Clock,
}

/// A server. Figures are for one whose commits wait for a disk.
pub(crate) async fn server(scale: Scale) -> PostgresServer {
    if scale.is_exact() {
        PostgresServer::start_on_disk().await
    } else {
        PostgresServer::start().await
    }
}

impl Fleet {
    /// Two edges over a server of their own, patient as tests on a shared machine are.
    pub(crate) async fn start(scale: Scale) -> Self {
        Self::over(server(scale).await, EDGES, |_| ()).await
    }

    /// Two edges with pools and timeouts as in production; on a shared machine they wait a little
    /// longer for a connection.
    pub(crate) async fn impatient(scale: Scale) -> Self {
        Self::over(server(scale).await, EDGES, |setup| {
            setup.unset("database.statement_timeout_ms").unset("database.connections_max");
            setup.unset("database.acquire_timeout_ms");
            if !scale.is_exact() {
                setup.set("database.acquire_timeout_ms", SHORT_ACQUIRE_MS);
            }
        })
        .await
    }

    /// So many edges over this server, with settings that the family changes.
    pub(crate) async fn over(
        postgres: PostgresServer,
        count: usize,
        change: impl FnOnce(&mut Setup),
    ) -> Self {
        let database = postgres.database().await;
        let mut setup = Setup::over(&postgres.url(&database));
        setup.set("lifetimes.quote_seconds", "3600").set("log.access", "false");
        change(&mut setup);
        let mut edges = vec![Edge::of(setup).await];
        let partner = edges[0].partner(PARTNER).await.authenticated().await;
        while edges.len() < count {
            edges.push(edges[0].beside().await);
        }
        let addresses = edges.iter().map(|edge| edge.address).collect();
        let addresses = watch::Sender::new(addresses);
        let fleet = Self { edges, addresses, partner, postgres, database, clock: Clock::system() };
        for edge in &fleet.edges {
            fleet.knows_partner(edge).await;
        }
        fleet
    }

    async fn knows_partner(&self, edge: &Edge) {
        let there = self.partner.at(edge.address);
        until("the edge knows the partner", SOON, async || {
            let answer = there.request(http::Method::GET, "/api/v1/prices").try_send().await;
            answer.is_ok_and(|answer| answer.status() == 200).then_some(())
        })
        .await;
    }

    /// Begins to confirm quotes.
    pub(crate) fn load(&self) -> Load {
        Load::start(&self.partner, &self.addresses, Pace::FULL)
    }

    /// Kills the edge at this place and starts another one there.
    pub(crate) async fn kill_edge(&mut self, place: usize) {
        self.edges[place].process.kill();
        self.replace(place, Edge::of(self.edges[place].setup()).await);
    }

    /// Puts another edge in this place.
    pub(crate) fn replace(&mut self, place: usize, edge: Edge) {
        drop(self.replaced(place, edge));
    }

    /// The same; the one that was there before goes on.
    pub(crate) fn replaced(&mut self, place: usize, edge: Edge) -> Edge {
        let before = std::mem::replace(&mut self.edges[place], edge);
        let addresses = self.edges.iter().map(|edge| edge.address).collect();
        self.addresses.send_replace(addresses);
        before
    }

    /// A number below `bound`.
    pub(crate) fn random(&self, bound: usize) -> usize {
        let random = self.clock.random_u64().unwrap();
        usize::try_from(random % u64::try_from(bound).unwrap()).unwrap()
    }

    /// The time until the load is acknowledged again.
    pub(crate) async fn recovery(&self, load: &Load) -> Duration {
        let (began, before) = (self.clock.monotonic_ns(), load.acknowledged());
        load.reach(before + 1).await;
        Duration::from_nanos(self.clock.monotonic_ns() - began)
    }

    /// A look at the database that no fault is in the way of.
    pub(crate) async fn pool(&self) -> PgPool {
        self.postgres.pool(&self.database).await
    }
}
