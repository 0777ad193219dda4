//! Money under random interleavings: reports of providers, commands of connectors, acts of operators,
//! workers, time and faults, over production code and a real Postgres.
//!
//! A seed decides the acts on every order and the conduct of every provider; the machine decides how
//! they interleave. After each round `rampart ledger check` and an account of the test's own (`model`)
//! look at everything. A failure prints its seed, the acts on the first order that is wrong with its
//! trace, and the shortest prefix of them that is wrong when it is played alone.
//!
//! `RAMPART_STEPS` is the number of calls of production code, seed after seed; without it one seed is
//! played, with fewer orders. `RAMPART_SEED` is the first seed.

mod act;
mod books;
mod desk;
mod dice;
mod model;
mod mutations;
mod providers;
mod replay;
mod run;
mod trace;
mod trade;
mod truth;
mod world;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use rampart_core::platform::clock::Clock;

use self::dice::Dice;
use self::replay::{Recorded, differences};
use self::run::{Failure, alone, fill_pools, generation, steps};
use self::world::World;
use crate::on_large_stacks;

/// Seed of the short form, so that it fails for the change at hand.
const SHORT_SEED: u64 = 1;

/// The extent of what is done with one database: its checks take longer with each order.
struct Extent {
    generations: u64,
    /// Orders of a generation.
    orders: u64,
    /// Replays of the facts, besides the one in their own order.
    replays: u64,
}

/// The extent as `make test` has it.
const SHORT: Extent = Extent { generations: 1, orders: 16, replays: 1 };
/// The extent of each seed of `make simulate`.
const FULL: Extent = Extent { generations: 4, orders: 48, replays: 2 };
/// Seeds at once on each core: one waits for Postgres half of its time.
const SEEDS_PER_CORE: usize = 2;
/// Orders whose books are broken on purpose: some of each state.
const MUTATED_ORDERS: u64 = 32;

#[expect(clippy::disallowed_methods, reason = "a test has no configuration to read it from")]
fn setting(name: &str) -> Option<usize> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Runs to the end on threads with stacks of their own.
fn run<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send) {
    on_large_stacks(|runtime| runtime.block_on(test()));
}

/// Prints what is wrong, the acts on the first order that is and its trace, and the shortest prefix of
/// those acts that is wrong alone; and fails.
async fn fail(seed: u64, failure: Failure) -> ! {
    let Failure { round, problems, order, trace } = failure;
    let mut report = format!("RAMPART_SEED={seed}: after round {round}: {problems:#?}");
    report = format!("{report}\nits trace: {trace:#?}");
    if let Some((index, acts)) = order {
        report = format!("{report}\norder {index} of the seed: {acts:?}");
        report = match Box::pin(alone(seed, index)).await {
            Some(Failure { problems, order, trace, .. }) => {
                let acts = order.map(|(_, acts)| acts);
                format!("{report}\nalone, after {acts:?}: {problems:#?}\nits trace: {trace:#?}")
            }
            None => format!("{report}\nalone, nothing is wrong: it takes the others"),
        };
    }
    panic!("{report}");
}

/// The facts of a database, in other orders: the same books.
async fn replay(world: &World, replays: u64) {
    let recorded = Recorded::of(world.contexts[0].db()).await;
    let (orders, compared) = recorded.counts();
    println!("the books of {compared} of {orders} orders are compared");
    assert!(compared > 0);
    let (books, holdings) = recorded.replay(None).await;
    for number in 0..replays {
        let mut dice = Dice::named(world.seed, "replay", &[number]);
        let (other_books, other_holdings) = recorded.replay(Some(&mut dice)).await;
        let found = differences(&holdings, &other_holdings);
        assert!(found.is_empty(), "RAMPART_SEED={}: holdings: {found:#?}", world.seed);
        let found = differences(&books, &other_books);
        assert!(found.is_empty(), "RAMPART_SEED={}: books: {found:#?}", world.seed);
    }
}

/// Plays what follows from a seed, and checks it. Gives the calls that it took.
async fn play(seed: u64, extent: &Extent) -> usize {
    let world = Arc::new(Box::pin(World::start(seed)).await);
    fill_pools(&world).await;
    for number in 0..extent.generations {
        if let Err(failure) = generation(&world, number * 1_000, extent.orders).await {
            fail(seed, failure).await;
        }
    }
    Box::pin(replay(&world, extent.replays)).await;
    let truth = world.truth.lock();
    let (cut, carried_out) = (truth.cut_before + truth.cut_after, truth.cut_after);
    println!("of {cut} cut calls {carried_out} were carried out");
    steps(&world)
}

/// Ends the play of all seeds when one has failed.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.fetch_or(std::thread::panicking(), Ordering::Relaxed);
    }
}

/// Plays seeds from `first` on, several at once, until they have taken so many calls.
fn play_all(first: u64, wanted: usize) {
    let (clock, cores) = (Clock::system(), std::thread::available_parallelism().unwrap().get());
    let (next, done, has_failed) =
        (AtomicU64::new(first), AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..cores * SEEDS_PER_CORE {
            scope.spawn(|| {
                let _ending = Ending(&has_failed);
                while done.load(Ordering::Relaxed) < wanted && !has_failed.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    println!("RAMPART_SEED={seed}");
                    run(async || {
                        let steps = Box::pin(play(seed, &FULL)).await;
                        let done = done.fetch_add(steps, Ordering::Relaxed) + steps;
                        let seconds = clock.monotonic_ns() / 1_000_000_000;
                        println!("RAMPART_SEED={seed} holds: {done} steps in {seconds} s");
                    });
                }
            });
        }
    });
}

#[test]
fn any_interleaving_of_reports_commands_and_acts_keeps_the_books() {
    let seed = setting("RAMPART_SEED").map(|seed| u64::try_from(seed).unwrap());
    let random = || Clock::system().random_u64().unwrap() >> 1;
    match setting("RAMPART_STEPS") {
        Some(wanted) => play_all(seed.unwrap_or_else(random), wanted),
        None => run(async || {
            Box::pin(play(seed.unwrap_or(SHORT_SEED), &SHORT)).await;
        }),
    }
}

#[test]
fn books_that_are_broken_on_purpose_are_found() {
    run(async || {
        let seed = 7;
        let world = Arc::new(Box::pin(World::start(seed)).await);
        fill_pools(&world).await;
        if let Err(failure) = generation(&world, 0, MUTATED_ORDERS).await {
            fail(seed, failure).await;
        }
        mutations::each_is_found(&world).await;
    });
}
