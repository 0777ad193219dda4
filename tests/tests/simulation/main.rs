//! Random interleavings and faults against a model, over real Postgres and two edges.
//!
//! A case is a script: rounds of calls that run at the same time, some of which die on the way or
//! lose their connections to the database. The [`model`] has a sequential answer to every call.
//! After each round some order of the calls must explain all answers, with those that nobody heard
//! carried out or not ([`history`]), and the tables must show what one such order leaves.
//!
//! `PROPTEST_CASES` says how many scripts each test runs. A failure prints the smallest script that
//! was found; the interleaving itself is the machine's, so that it may take some runs to see it again.
//!
//! [`model`]: history::Model

#![expect(clippy::panic, clippy::unwrap_used, reason = "what a test cannot do must fail it")]

mod codes;
mod deliveries;
mod history;
mod logins;
mod money;
mod orders;
mod purchases;
mod script;

use tokio::runtime::{Builder, Runtime};

/// Stack of a thread: unoptimised, the calls of a round want more than the default.
const STACK_BYTES: usize = 16 << 20;

/// Runs this on a thread of its own with a runtime; all of their stacks are that large.
fn on_large_stacks<T: Send>(run: impl FnOnce(&Runtime) -> T + Send) -> T {
    let running = move || {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()
            .unwrap();
        run(&runtime)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        thread.spawn_scoped(scope, running).unwrap().join().unwrap()
    })
}
