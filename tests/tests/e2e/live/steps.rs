//! The steps of the walk: a line each, with its number and time.

use std::time::Duration;

use rampart_core::platform::clock::Clock;

/// Prints steps as they end.
pub(super) struct Steps {
    clock: Clock,
    started_ns: u64,
    done: u32,
    total: u32,
}

impl Steps {
    /// Starts the clock of so many steps.
    pub(super) fn new(total: u32) -> Self {
        let clock = Clock::system();
        Self { started_ns: clock.monotonic_ns(), clock, done: 0, total }
    }

    /// Awaits a step and prints its time; one that fails ends the walk.
    pub(super) async fn run<T>(&mut self, what: &str, work: impl Future<Output = T>) -> T {
        self.done += 1;
        let began_ns = self.clock.monotonic_ns();
        let result = work.await;
        println!("{:>2}/{} {:>8}  {what}", self.done, self.total, self.since(began_ns));
        result
    }

    /// Prints the time of everything.
    ///
    /// # Panics
    /// After another number of steps than was announced.
    pub(super) fn done(&self) {
        assert_eq!(self.done, self.total, "the walk has another number of steps");
        println!("\nA purchase and a sale of a live partner: {}.", self.since(self.started_ns));
    }

    fn since(&self, began_ns: u64) -> String {
        let took = Duration::from_nanos(self.clock.monotonic_ns() - began_ns);
        format!("{}.{} s", took.as_secs(), took.subsec_millis() / 100)
    }
}
