//! What the demo does, a line each with the time it took.

use std::fmt::Display;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use rampart_core::platform::clock::Clock;

/// Redraw of the line that waits, on a terminal.
const TICK: Duration = Duration::from_millis(100);

/// Prints steps as they end; on a terminal the one that runs is shown too.
pub(super) struct Steps {
    clock: Clock,
    started_ns: u64,
    done: u32,
}

impl Steps {
    /// Starts the clock.
    pub(super) fn new() -> Self {
        let clock = Clock::system();
        Self { started_ns: clock.monotonic_ns(), clock, done: 0 }
    }

    /// Waits for a step and says how long it took.
    pub(super) async fn run<T, E: Display>(
        &mut self,
        what: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let step = self.begin(what);
        let result = work.await;
        self.end(what, step, &result);
        result
    }

    /// The same for a step that blocks.
    pub(super) fn block<T, E: Display>(
        &mut self,
        what: &str,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let step = self.begin(what);
        let result = work();
        self.end(what, step, &result);
        result
    }

    fn begin(&self, what: &str) -> (ProgressBar, u64) {
        let bar = ProgressBar::new_spinner().with_message(what.to_owned());
        if let Ok(style) = ProgressStyle::with_template("     {spinner} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        (bar, self.clock.monotonic_ns())
    }

    fn end<T, E: Display>(&mut self, what: &str, step: (ProgressBar, u64), result: &Result<T, E>) {
        let (bar, began_ns) = step;
        bar.finish_and_clear();
        self.done += 1;
        let took = Millis(self.clock.monotonic_ns() - began_ns);
        let mark = if result.is_ok() { "ok" } else { "FAILED" };
        println!("{:>2}. {what:<58} {took:>10}  {mark}", self.done);
    }

    /// Says how long everything took.
    pub(super) fn done(&self) {
        let took = Millis(self.clock.monotonic_ns() - self.started_ns);
        println!("\nA purchase from end to end, {} steps in {took}.", self.done);
    }
}

/// Nanoseconds shown as milliseconds with a tenth.
struct Millis(u64);

impl Display for Millis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = self.0 / 100_000;
        f.pad(&format!("{}.{} ms", tenths / 10, tenths % 10))
    }
}
