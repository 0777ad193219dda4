//! The deadline clock: it advances the engine's epoch during calls and sleeps between them, so that
//! an edge without policies never wakes for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use wasmtime::Engine;

/// Longest tick, in milliseconds: a call ends less than two ticks after its deadline. Shorter ones
/// cost: on a virtual machine each takes some 10 µs of a processor, a hundredth of it by the
/// millisecond, and a deadline of 20 ms is none the better for them.
const TICK_MS_MAX: u64 = 5;
/// Ticks in the deadline of a live call that is too short for the longest ones.
const TICKS_MIN: u64 = 3;

/// Its thread ends when it is dropped.
pub(crate) struct DeadlineClock {
    signals: Arc<Signals>,
    thread: Thread,
    tick_ms: u64,
}

/// State shared by callers and the thread.
#[derive(Default)]
struct Signals {
    /// A call began since the last tick.
    begun: AtomicBool,
    /// The thread waits for the next call.
    sleeping: AtomicBool,
    ended: AtomicBool,
}

impl DeadlineClock {
    /// Starts the thread. `deadline_ms` is that of live calls, which the length of a tick follows, and
    /// `deadline_ms_max` the longest of all.
    ///
    /// # Errors
    /// When the system refuses the thread.
    pub(crate) fn start(
        engine: &Engine,
        deadline_ms: u64,
        deadline_ms_max: u64,
    ) -> std::io::Result<Self> {
        let tick_ms = tick_ms(deadline_ms);
        let every = Duration::from_millis(tick_ms);
        let sleep_after = ticks(deadline_ms_max, tick_ms);
        let signals = Arc::new(Signals::default());
        let (shared, engine) = (Arc::clone(&signals), engine.weak());
        let tick = move || engine.upgrade().map(|engine| engine.increment_epoch()).is_some();
        let thread = thread::Builder::new()
            .name("policy-clock".into())
            .spawn(move || shared.run(every, sleep_after, tick))?;
        Ok(Self { signals, thread: thread.thread().clone(), tick_ms })
    }

    /// Must precede every call, as a sleeping clock would not end it. The deadline in ticks from now,
    /// no less than `deadline_ms`.
    pub(crate) fn begin(&self, deadline_ms: u64) -> u64 {
        self.signals.begun.store(true, Ordering::SeqCst);
        if self.signals.sleeping.load(Ordering::SeqCst)
            && self.signals.sleeping.swap(false, Ordering::SeqCst)
        {
            self.thread.unpark();
        }
        ticks(deadline_ms, self.tick_ms)
    }
}

impl Drop for DeadlineClock {
    fn drop(&mut self) {
        self.signals.ended.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

impl Signals {
    /// Ticks until the clock is dropped, or `tick` returns that the engine is gone. Sleeps once no call
    /// began for `sleep_after` ticks: by then the deadline of every earlier one has passed.
    fn run(&self, every: Duration, sleep_after: u64, tick: impl Fn() -> bool) {
        let mut idle_ticks = 0;
        while !self.ended.load(Ordering::SeqCst) {
            thread::park_timeout(every);
            if !tick() {
                return;
            }
            idle_ticks = if self.begun.swap(false, Ordering::SeqCst) { 0 } else { idle_ticks + 1 };
            if idle_ticks > sleep_after {
                self.sleep();
            }
        }
    }

    fn sleep(&self) {
        self.sleeping.store(true, Ordering::SeqCst);
        // A caller that saw it awake has set `begun` before.
        while self.sleeping.load(Ordering::SeqCst)
            && !self.begun.load(Ordering::SeqCst)
            && !self.ended.load(Ordering::SeqCst)
        {
            thread::park();
        }
        self.sleeping.store(false, Ordering::SeqCst);
    }
}

/// The length of a tick for live calls with this deadline, in milliseconds.
fn tick_ms(deadline_ms: u64) -> u64 {
    (deadline_ms / TICKS_MIN).clamp(1, TICK_MS_MAX)
}

/// The first tick may come at once, so it does not count.
fn ticks(ms: u64, tick_ms: u64) -> u64 {
    ms.div_ceil(tick_ms).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_deadline_is_never_short() {
        assert_eq!((ticks(1, 5), ticks(5, 5), ticks(6, 5), ticks(20, 5)), (2, 2, 3, 5));
        assert_eq!((ticks(1, 1), ticks(3, 1)), (2, 4));
    }

    #[test]
    fn a_tick_is_at_most_a_third_of_the_deadline_down_to_a_millisecond() {
        assert_eq!([1, 3, 6, 9, 15, 20, 60_000].map(tick_ms), [1, 1, 2, 3, 5, 5, 5]);
    }

    #[test]
    fn it_sleeps_without_calls_and_ticks_for_the_next_one() {
        let signals = Arc::new(Signals::default());
        let (ticked, ticks) = mpsc::sync_channel(64);
        let (count, shared) = (AtomicU64::new(0), Arc::clone(&signals));
        let thread = thread::spawn(move || {
            let every = Duration::from_millis(TICK_MS_MAX);
            shared.run(every, 2, || ticked.try_send(count.fetch_add(1, Ordering::SeqCst)).is_ok());
        });
        let (waker, tick_ms) = (thread.thread().clone(), TICK_MS_MAX);
        let clock = DeadlineClock { signals, thread: waker, tick_ms };
        while !clock.signals.sleeping.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        let before = ticks.try_iter().count();
        assert_eq!(before, 3, "it ticked on although there was no call");
        clock.begin(TICK_MS_MAX);
        assert!(!clock.signals.sleeping.load(Ordering::SeqCst));
        ticks.iter().take(3).for_each(drop);
        drop(clock);
        thread.join().expect("the clock ends");
    }
}
