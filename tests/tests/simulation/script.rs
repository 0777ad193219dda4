//! Scripts, and the run of them: two edges over one database, calls side by side, faults between.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestError, TestRunner};
use rampart_core::platform::rate_limit::Quota;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::json;

use crate::history::{Heard, History, Model, Outcome};
use crate::on_large_stacks;

/// Scripts of a test, unless `PROPTEST_CASES` says otherwise.
const CASES: u32 = 12;
/// Scripts that a failure is made smaller with.
const SHRINKS_MAX: u32 = 100;
/// Longest time that a request which dies has lived, in microseconds: most are done by then.
const LIFE_MICROS_MAX: u64 = 20_000;
/// Requests at once that use every connection of an edge.
const CONNECTIONS: usize = 16;
/// Most statements that pass before connections are ended.
const DELAY_MAX: u8 = 12;

/// A fault of a round.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// None.
    Nothing,
    /// The first call's request dies after so many microseconds.
    Death(u64),
    /// Every edge loses its connections to the database, after so many statements of somebody else.
    Disconnect(u8),
}

/// Calls that run at the same time, each with the edge that it goes to.
#[derive(Clone, Debug)]
pub(crate) struct Round<C> {
    pub(crate) calls: Vec<(usize, C)>,
    pub(crate) fault: Fault,
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        6 => Just(Fault::Nothing),
        1 => (0..LIFE_MICROS_MAX).prop_map(Fault::Death),
        1 => (0..DELAY_MAX).prop_map(Fault::Disconnect),
    ]
}

/// Rounds of one to five calls of a kind.
pub(crate) fn rounds<C: Clone + std::fmt::Debug>(
    call: impl Strategy<Value = C>,
    most: usize,
) -> impl Strategy<Value = Vec<Round<C>>> {
    let calls = prop::collection::vec((0..2_usize, call), 1..=5);
    let round = (calls, fault()).prop_map(|(calls, fault)| Round { calls, fault });
    prop::collection::vec(round, 1..=most)
}

/// Two edges over one database, which all scripts of a test share.
pub(crate) struct Edges {
    pub(crate) contexts: [TestContext; 2],
}

impl Edges {
    async fn start() -> Self {
        // The scripts are about order, not about rates.
        let plenty = Quota::new(1_000_000, 1, 1_000_000);
        let first = TestContext::with(|settings| {
            let rates = &mut settings.ratelimit;
            for rate in [&mut rates.address, &mut rates.client, &mut rates.quotes] {
                *rate = plenty;
            }
            for rate in [&mut rates.credentials, &mut rates.login] {
                *rate = plenty;
            }
        })
        .await;
        let price = json!({"price": 50_000});
        first.admin(http::Method::PUT, "/admin/v1/prices/BTC-EUR", price).await.assert_status(200);
        let second = first.second_edge().await;
        let edges = Self { contexts: [first, second] };
        edges.refresh().await;
        edges
    }

    /// A new partner, as both edges see it.
    pub(crate) async fn partner(&self) -> [Partner; 2] {
        let slug = format!("p{}", self.contexts[0].clock().uuid().unwrap().simple());
        let partner = self.contexts[0].partner(&slug[..30]).await;
        self.refresh().await;
        [partner.clone(), partner.at(&self.contexts[1])]
    }

    async fn refresh(&self) {
        for context in &self.contexts {
            context.core().refresh().await.unwrap();
        }
    }

    /// Ends every connection of the edges to the database, after so many statements.
    pub(crate) async fn disconnect(&self, statements: u8) {
        let db = self.contexts[0].db();
        for _ in 0..statements {
            sqlx::query("select 1").execute(db).await.unwrap();
        }
        let end = "select pg_terminate_backend(pid) from pg_stat_activity \
                   where datname = current_database() and usename in ('rampart_edge', 'rampart_worker')";
        sqlx::query(end).execute(db).await.unwrap();
    }

    /// Waits until both edges answer from the database again, partners and operators, on every
    /// connection.
    pub(crate) async fn recovered(&self, partners: &[Partner; 2]) {
        for (context, partner) in self.contexts.iter().zip(partners) {
            until("an edge is connected again", SOON, async || {
                let reads = join_all((0..CONNECTIONS).map(|_| partner.get("/api/v2/events")));
                let looks = (0..CONNECTIONS).map(|_| {
                    Box::pin(context.admin(http::Method::GET, "/admin/v1/partners", json!({})))
                });
                let (reads, looks) = tokio::join!(reads, join_all(looks));
                reads.iter().chain(&looks).all(|answer| answer.status() == 200).then_some(())
            })
            .await;
        }
    }
}

/// Runs a round: each call by `send`, all at the same time.
pub(crate) async fn run<M, F>(
    edges: &Arc<Edges>,
    partners: &[Partner; 2],
    round: &Round<M::Call>,
    send: impl Fn(usize, M::Call) -> F,
) -> Vec<Heard<M>>
where
    M: Model,
    M::Call: Send + 'static,
    M::Answer: Send + 'static,
    F: Future<Output = Option<M::Answer>> + Send + 'static,
{
    let calls = round.calls.iter().enumerate().map(|(index, (edge, call))| {
        let life = match round.fault {
            Fault::Death(micros) if index == 0 => Duration::from_micros(micros),
            _ => Duration::MAX,
        };
        let sent = Box::pin(send(*edge, call.clone()));
        tokio::spawn(async move {
            match tokio::time::timeout(life, sent).await {
                Ok(Some(answer)) => Outcome::Answered(answer),
                Ok(None) => Outcome::Failed,
                Err(_) => Outcome::Died,
            }
        })
    });
    let calls = join_all(calls.collect::<Vec<_>>());
    let answers = if let Fault::Disconnect(statements) = round.fault {
        let (answers, ()) = tokio::join!(calls, edges.disconnect(statements));
        edges.recovered(partners).await;
        answers
    } else {
        calls.await
    };
    let answers = answers.into_iter().map(|answer| answer.unwrap());
    round.calls.iter().map(|(_, call)| call.clone()).zip(answers).collect()
}

/// Runs a whole script: after each round its answers must be explained, and then `look` may compare
/// what the tables show.
pub(crate) async fn play<M, F>(
    edges: &Arc<Edges>,
    partners: &[Partner; 2],
    rounds: &[Round<M::Call>],
    send: impl Fn(usize, M::Call) -> F,
    mut look: impl AsyncFnMut(&mut History<M>) -> Result<(), String>,
) -> Result<(), String>
where
    M: Model,
    M::Call: Send + 'static,
    M::Answer: Send + 'static,
    F: Future<Output = Option<M::Answer>> + Send + 'static,
{
    let mut history = History::<M>::new();
    for round in rounds {
        let heard = run::<M, F>(edges, partners, round, &send).await;
        history.round(&heard)?;
        look(&mut history).await?;
    }
    Ok(())
}

/// Runs scripts until one fails, and panics with the smallest that does.
pub(crate) fn simulate<S, F>(scripts: S, run: impl Fn(Arc<Edges>, S::Value) -> F + Send)
where
    S: Strategy + Send,
    F: Future<Output = Result<(), String>>,
{
    let found = on_large_stacks(move |runtime| {
        let edges = Arc::new(runtime.block_on(Edges::start()));
        let config = ProptestConfig {
            cases: cases(),
            max_shrink_iters: SHRINKS_MAX,
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        TestRunner::new(config)
            .run(&scripts, |script| {
                runtime.block_on(run(Arc::clone(&edges), script)).map_err(TestCaseError::fail)
            })
            .map_err(|error| match error {
                TestError::Fail(reason, script) => format!("{reason}\nin {script:#?}"),
                TestError::Abort(reason) => reason.to_string(),
            })
    });
    if let Err(found) = found {
        panic!("{found}");
    }
}

#[expect(clippy::disallowed_methods, reason = "a test has no configuration to read it from")]
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").map_or(CASES, |text| text.parse().unwrap())
}
