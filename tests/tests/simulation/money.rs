//! Money under random interleavings: reports of providers, commands of connectors, acts of operators,
//! workers, time and faults, over production code and a real Postgres.
//!
//! A seed decides the acts on every order and the conduct of every provider; the machine decides how
//! they interleave. After each round `rampart ledger check` and an account of the test's own (`model`)
//! look at everything. A failure prints its seed and the shortest prefix of the acts on the first order
//! that is wrong, played alone.
//!
//! `RAMPART_STEPS` is the number of calls of production code, `RAMPART_SEED` the first seed.

mod act;
mod books;
mod desk;
mod dice;
mod model;
mod mutations;
mod providers;
mod replay;
mod run;
mod trade;
mod truth;
mod world;

use std::future::Future;
use std::sync::Arc;

use rampart_tests::test_context::TestContext;

use self::dice::Dice;
use self::replay::{Recorded, differences};
use self::run::{Failure, alone, fill_pools, generation, steps};
use self::world::World;

/// Calls of a run, unless `RAMPART_STEPS` says otherwise.
const STEPS: usize = 4_000;
/// Generations of orders over one database: its checks take longer with each.
const GENERATIONS: u64 = 4;
/// Replays of the facts of a database, besides the one in their own order.
const REPLAYS: u64 = 2;
/// Stack of a thread: unoptimised, the calls of a round want more than the default.
const STACK_BYTES: usize = 16 << 20;

#[expect(clippy::disallowed_methods, reason = "a test has no configuration to read it from")]
fn setting(name: &str) -> Option<usize> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Runs to the end on threads with stacks of their own.
fn run<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let running = thread.spawn_scoped(scope, || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .thread_stack_size(STACK_BYTES)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(test());
        });
        running.unwrap().join().unwrap();
    });
}

/// Prints what is wrong with the shortest prefix of the order's acts, and fails.
async fn fail(seed: u64, failure: Failure) -> ! {
    let Failure { round, problems, order } = failure;
    let mut report = format!("RAMPART_SEED={seed}: after round {round}: {problems:#?}");
    if let Some((index, acts)) = order {
        report = format!("{report}\norder {index} of the seed: {acts:?}");
        report = match Box::pin(alone(seed, index)).await {
            Some((acts, problems)) => format!("{report}\nalone, after {acts:?}: {problems:#?}"),
            None => format!("{report}\nalone, nothing is wrong: it takes the others"),
        };
    }
    panic!("{report}");
}

/// The facts of a database, in other orders: the same books.
async fn replay(world: &World) {
    let recorded = Recorded::of(world.contexts[0].db()).await;
    let (orders, compared) = recorded.counts();
    assert!(compared * 2 > orders, "of {orders} orders {compared} are compared");
    let (books, holdings) = recorded.replay(None).await;
    for number in 0..REPLAYS {
        let mut dice = Dice::named(world.seed, "replay", &[number]);
        let (other_books, other_holdings) = recorded.replay(Some(&mut dice)).await;
        let found = differences(&holdings, &other_holdings);
        assert!(found.is_empty(), "RAMPART_SEED={}: holdings: {found:#?}", world.seed);
        let found = differences(&books, &other_books);
        assert!(found.is_empty(), "RAMPART_SEED={}: books: {found:#?}", world.seed);
    }
}

#[test]
fn any_interleaving_of_reports_commands_and_acts_keeps_the_books() {
    run(async || {
        let wanted = setting("RAMPART_STEPS").unwrap_or(STEPS);
        let clock = TestContext::start().await.clock().clone();
        let mut seed = match setting("RAMPART_SEED") {
            Some(seed) => u64::try_from(seed).unwrap(),
            None => clock.random_u64().unwrap() >> 1,
        };
        let (began, mut done) = (clock.monotonic_ns(), 0);
        while done < wanted {
            println!("RAMPART_SEED={seed}");
            let world = Arc::new(Box::pin(World::start(seed)).await);
            fill_pools(&world).await;
            for number in 0..GENERATIONS {
                if let Err(failure) = generation(&world, number * 1_000).await {
                    fail(seed, failure).await;
                }
                if done + steps(&world) >= wanted {
                    break;
                }
            }
            done += steps(&world);
            Box::pin(replay(&world)).await;
            let seconds = (clock.monotonic_ns() - began) / 1_000_000_000;
            let truth = world.truth.lock();
            println!(
                "{done} steps in {seconds} s; of {} cut calls {} were carried out",
                truth.cut_before + truth.cut_after,
                truth.cut_after
            );
            seed += 1;
        }
    });
}

#[test]
fn books_that_are_broken_on_purpose_are_found() {
    run(async || {
        let seed = 7;
        let world = Arc::new(Box::pin(World::start(seed)).await);
        fill_pools(&world).await;
        if let Err(failure) = generation(&world, 0).await {
            fail(seed, failure).await;
        }
        mutations::each_is_found(&world).await;
    });
}
