//! One Rampart that is measured: a release edge over a database, and what its partners send.

use std::net::SocketAddr;
use std::time::Duration;

use nix::sys::signal::Signal;
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{Edge, Setup};
use serde_json::Value;
use sqlx::AssertSqlSafe;

use crate::environment::{Database, Environment, partner};
use crate::generators::Target;
use crate::paths::CATALOGUE;
use crate::processes::{cpu_of, pin};

/// Cores on which an edge may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    /// One thread on the first core, as every peer whose CPU time is counted.
    First,
    /// Two threads on any, as what is compared by its rate.
    Any,
}

/// A live partner, whose money goes by routes.
pub(crate) struct LivePartner {
    /// Header with its API key.
    pub(crate) key: String,
    /// Header with a token.
    pub(crate) token: String,
    /// It by its API key.
    pub(crate) caller: Caller,
}

/// An edge and its two partners.
pub(crate) struct Side<'a> {
    /// Its environment.
    pub(crate) environment: &'a Environment,
    /// Its database.
    pub(crate) database: &'a Database,
    /// The edge.
    pub(crate) edge: Edge,
    /// Header with the API key of the partner without policies.
    pub(crate) plain: String,
    /// The same of the one with policies.
    pub(crate) ruled: String,
    /// Header with a token of the one without.
    pub(crate) token: String,
}

impl<'a> Side<'a> {
    /// Starts an edge.
    pub(crate) fn start(
        environment: &'a Environment,
        database: &'a Database,
        cores: Cores,
    ) -> Self {
        Self::start_with(environment, database, cores, |_| ())
    }

    /// The same with settings that the path changes.
    pub(crate) fn start_with(
        environment: &'a Environment,
        database: &'a Database,
        cores: Cores,
        change: impl FnOnce(&mut Setup),
    ) -> Self {
        let mut setup = database.setup();
        change(&mut setup);
        setup.set("edge.threads", if cores == Cores::First { "1" } else { "2" });
        // As the peers have it: a connection that ends costs its generator answers.
        setup.set("edge.connection_requests_max", "100000000");
        let (edge, token) = environment.runtime.block_on(async {
            let edge = Edge::of(setup).await;
            let caller = Caller::new(edge.address, Protocol::Http1, database.plain.clone());
            let token = credential(&caller.authenticated().await);
            (edge, token)
        });
        if cores == Cores::First {
            pin(edge.process.id(), 0);
        }
        let (plain, ruled) = (key(&database.plain), key(&database.ruled));
        Self { environment, database, edge, plain, ruled, token }
    }

    /// Its address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.edge.address
    }

    /// Its process.
    pub(crate) fn process(&self) -> u32 {
        self.edge.process.id()
    }

    /// GET of a path as a partner.
    pub(crate) fn get(&self, path: &str, credential: &str) -> Target {
        Target::get(self.address(), path, Some(credential.to_owned()))
    }

    /// Makes a live partner, among partners with many routes.
    pub(crate) fn live_partner(&self, slug: &str) -> LivePartner {
        let of_test_client = self.body(CATALOGUE);
        self.environment.runtime.block_on(async {
            let mut made = partner(&self.edge, slug).await;
            // The key of a partner that has become live says so.
            made["apiKey"] = key_text(&made).replace("rk_test_", "rk_live_").into();
            let routes = include_str!("peers/routes.sql").replace("@partner@", slug);
            sqlx::raw_sql(AssertSqlSafe(routes)).execute(&self.database.pool).await.unwrap();
            let caller = Caller::new(self.address(), Protocol::Http1, made.clone());
            until("the edge knows it and its routes", SOON, async || {
                let answer = caller.get(CATALOGUE).await;
                let is_routed = answer.text().contains("creditCard");
                (is_routed && answer.bytes() != of_test_client).then_some(())
            })
            .await;
            let token = credential(&caller.authenticated().await);
            LivePartner { key: key(&made), token, caller }
        })
    }

    /// Deletes what [`Side::live_partner`] has routed: it is not of the rows that follow.
    pub(crate) fn delete_routes(&self) {
        let deleting = sqlx::query("delete from route").execute(&self.database.pool);
        let deleted = self.environment.runtime.block_on(deleting);
        assert!(deleted.unwrap().rows_affected() > 9_000);
    }

    /// Its metrics.
    pub(crate) fn metrics(&self) -> String {
        let answer = self.environment.runtime.block_on(self.edge.ops("/metrics"));
        answer.assert_status(200).text().to_owned()
    }

    /// The body that a partner gets for a path.
    pub(crate) fn body(&self, path: &str) -> Vec<u8> {
        self.environment.runtime.block_on(async {
            let made = self.database.plain.clone();
            let answer = Caller::new(self.address(), Protocol::Http1, made).get(path).await;
            answer.assert_status(200);
            answer.bytes().to_vec()
        })
    }
}

impl Drop for Side<'_> {
    /// Stops it as an operator would: what deploy/profile counts is written at an orderly end.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.edge.process.signal(Signal::SIGINT);
            self.environment.runtime.block_on(self.edge.process.ended());
        }
    }
}

/// The header with the API key of a partner that an operator has made.
fn key(made: &Value) -> String {
    format!("x-api-key: {}", key_text(made))
}

fn key_text(made: &Value) -> &str {
    made["apiKey"].as_str().expect("a key")
}

/// The header that proves a caller, as `name: value`.
pub(crate) fn credential(caller: &Caller) -> String {
    let (name, value) = caller.credential();
    format!("{name}: {value}")
}

/// Microseconds of CPU that a process and what is below it take for each of the answers that
/// `load` gets.
pub(crate) fn cpu_per_answer(
    processes: &[u32],
    time: Duration,
    load: impl FnOnce(Duration) -> f64,
) -> f64 {
    let spent = || processes.iter().map(|process| cpu_of(*process)).sum::<Duration>();
    let before = spent();
    let answers = load(time);
    (spent() - before).as_secs_f64() * 1e6 / answers
}
