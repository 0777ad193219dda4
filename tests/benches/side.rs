//! One Rampart that is measured: a release edge over a database, and what its partners send.

use std::net::SocketAddr;
use std::time::Duration;

use nix::sys::signal::Signal;
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::edge::{Edge, Setup};
use serde_json::Value;

use crate::environment::{Database, Environment};
use crate::generators::Target;
use crate::processes::{cpu_of, pin};

/// Cores on which an edge may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cores {
    /// One thread on the first core, as every peer whose CPU time is counted.
    First,
    /// Two threads on any, as what is compared by its rate.
    Any,
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
            let token = header(caller.authenticated().await.credential());
            (edge, token)
        });
        if cores == Cores::First {
            pin(edge.process.id(), 0);
        }
        let key = |made: &Value| header(("x-api-key", made["apiKey"].as_str().expect("a key")));
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

/// A header as `name: value`.
pub(crate) fn header((name, value): (&str, &str)) -> String {
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
