//! The demo's steps: a line each with its number and time, and the total at the end.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use rampart_core::platform::clock::Clock;

use crate::output;

/// Steps of a whole demo.
const TOTAL: u32 = 19;
/// Redraw interval of the running step, on a terminal.
const TICK: Duration = Duration::from_millis(100);

/// Prints steps as they end; a terminal shows the running one too.
pub(super) struct Steps {
    clock: Clock,
    started_ns: u64,
    done: u32,
}

/// A step that has begun.
struct Running<'a> {
    what: &'a str,
    bar: ProgressBar,
    began_ns: u64,
}

impl Steps {
    /// Starts the clock.
    pub(super) fn new() -> Self {
        let clock = Clock::system();
        Self { started_ns: clock.monotonic_ns(), clock, done: 0 }
    }

    /// Awaits a step and prints its time.
    pub(super) async fn run<T, E: Display>(
        &mut self,
        what: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let step = self.begin(what);
        let result = work.await;
        self.end(&step, result.is_ok());
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
        self.end(&step, result.is_ok());
        result
    }

    fn begin<'a>(&mut self, what: &'a str) -> Running<'a> {
        self.done += 1;
        let bar = ProgressBar::new_spinner().with_message(what.to_owned());
        // Cut at the terminal's edge: a wrapped line could not be redrawn.
        if let Ok(style) = ProgressStyle::with_template("{prefix} {spinner:>9}  {wide_msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(self.number());
        bar.enable_steady_tick(TICK);
        Running { what, bar, began_ns: self.clock.monotonic_ns() }
    }

    /// The time stands before the words, so that a narrow terminal wraps nothing but these.
    fn end(&self, step: &Running<'_>, succeeded: bool) {
        step.bar.finish_and_clear();
        let took = Elapsed(self.clock.monotonic_ns() - step.began_ns);
        let failed = if succeeded { "" } else { "FAILED: " };
        output::line(format_args!("{} {took:>9}  {failed}{}", self.number(), step.what));
    }

    fn number(&self) -> String {
        format!("{:>2}/{TOTAL}", self.done)
    }

    /// Prints the time of everything, and of what came before by the caller's account.
    pub(super) fn done(&self, built_seconds: Option<u64>) {
        debug_assert_eq!(self.done, TOTAL, "the demo has another number of steps");
        let took = self.clock.monotonic_ns() - self.started_ns;
        let (steps, took_shown) = (self.done, Elapsed(took));
        output::line(format_args!("\nA purchase from end to end: {steps} steps in {took_shown}."));
        if let Some(seconds) = built_seconds {
            let total = Duration::from_nanos(took) + Duration::from_secs(seconds);
            let (minutes, seconds) = (total.as_secs() / 60, total.as_secs() % 60);
            output::line(format_args!("With the build: {minutes} min {seconds} s."));
        }
    }
}

/// Nanoseconds, shown with a tenth: as milliseconds below a second, as seconds above.
struct Elapsed(u64);

impl Display for Elapsed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (unit_ns, unit) =
            if self.0 < 1_000_000_000 { (1_000_000, "ms") } else { (1_000_000_000, "s") };
        let tenths = self.0 / (unit_ns / 10);
        f.pad(&format!("{}.{} {unit}", tenths / 10, tenths % 10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_tenth_and_a_unit() {
        for (nanoseconds, shown) in [
            (0, "0.0 ms"),
            (12_345_678, "12.3 ms"),
            (999_999_999, "999.9 ms"),
            (1_000_000_000, "1.0 s"),
            (61_250_000_000, "61.2 s"),
        ] {
            assert_eq!(Elapsed(nanoseconds).to_string(), shown);
        }
    }
}
