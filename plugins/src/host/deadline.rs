//! The clock of deadlines: it advances the engine's epoch while there are calls, and rests between
//! them, so that an edge without policies never wakes for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use wasmtime::Engine;

/// One tick, in milliseconds. A deadline is met late by one tick at most. Shorter ones cost: on a
/// virtual machine each takes some 10 µs of a processor.
const TICK_MS: u64 = 5;

/// Drop it, and its thread ends.
pub(crate) struct DeadlineClock {
    signals: Arc<Signals>,
    thread: Thread,
}

/// What callers and the thread tell each other.
#[derive(Default)]
struct Signals {
    /// A call began since the last tick.
    begun: AtomicBool,
    /// The thread waits for the next call.
    resting: AtomicBool,
    ended: AtomicBool,
}

impl DeadlineClock {
    /// Starts the thread. `deadline_ms_max` is the longest deadline that a call will be given.
    ///
    /// # Errors
    /// When the system refuses the thread.
    pub(crate) fn start(engine: &Engine, deadline_ms_max: u64) -> std::io::Result<Self> {
        let signals = Arc::new(Signals::default());
        let (told, engine) = (Arc::clone(&signals), engine.weak());
        let tick = move || engine.upgrade().map(|engine| engine.increment_epoch()).is_some();
        let thread = thread::Builder::new()
            .name("policy-clock".into())
            .spawn(move || told.run(ticks(deadline_ms_max), tick))?;
        Ok(Self { signals, thread: thread.thread().clone() })
    }

    /// Must precede every call: a resting clock would not end it. Answers the deadline in ticks from
    /// now, no less than `deadline_ms`.
    pub(crate) fn begin(&self, deadline_ms: u64) -> u64 {
        self.signals.begun.store(true, Ordering::SeqCst);
        if self.signals.resting.load(Ordering::SeqCst)
            && self.signals.resting.swap(false, Ordering::SeqCst)
        {
            self.thread.unpark();
        }
        ticks(deadline_ms)
    }
}

impl Drop for DeadlineClock {
    fn drop(&mut self) {
        self.signals.ended.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

impl Signals {
    /// Ticks until the end, or until `tick` answers that the engine is gone. Rests once no call
    /// began for `rest_after` ticks: by then the deadline of every earlier one has passed.
    fn run(&self, rest_after: u64, tick: impl Fn() -> bool) {
        let mut quiet = 0;
        while !self.ended.load(Ordering::SeqCst) {
            thread::park_timeout(Duration::from_millis(TICK_MS));
            if !tick() {
                return;
            }
            quiet = if self.begun.swap(false, Ordering::SeqCst) { 0 } else { quiet + 1 };
            if quiet > rest_after {
                self.rest();
            }
        }
    }

    fn rest(&self) {
        self.resting.store(true, Ordering::SeqCst);
        // Whoever did not see that it rests has left its mark before.
        while self.resting.load(Ordering::SeqCst)
            && !self.begun.load(Ordering::SeqCst)
            && !self.ended.load(Ordering::SeqCst)
        {
            thread::park();
        }
        self.resting.store(false, Ordering::SeqCst);
    }
}

/// The first tick may come at once, so it does not count.
fn ticks(ms: u64) -> u64 {
    ms.div_ceil(TICK_MS).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_deadline_is_never_short() {
        assert_eq!((ticks(1), ticks(5), ticks(6), ticks(20)), (2, 2, 3, 5));
    }

    #[test]
    fn it_rests_without_calls_and_ticks_for_the_next_one() {
        let signals = Arc::new(Signals::default());
        let (ticked, ticks) = mpsc::sync_channel(64);
        let (count, told) = (AtomicU64::new(0), Arc::clone(&signals));
        let thread = thread::spawn(move || {
            told.run(2, || ticked.try_send(count.fetch_add(1, Ordering::SeqCst)).is_ok());
        });
        let clock = DeadlineClock { signals, thread: thread.thread().clone() };
        while !clock.signals.resting.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        let before = ticks.try_iter().count();
        assert_eq!(before, 3, "it ticked on although there was no call");
        clock.begin(TICK_MS);
        assert!(!clock.signals.resting.load(Ordering::SeqCst));
        ticks.iter().take(3).for_each(drop);
        drop(clock);
        thread.join().expect("the clock ends");
    }
}
