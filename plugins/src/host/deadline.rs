//! The deadline clock: it advances the engine's epoch during calls and sleeps between them, so that
//! an edge without policies never wakes for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wasmtime::{Engine, UpdateDeadline};

/// Longest tick, in milliseconds: a call ends less than two ticks after its deadline. Shorter ones
/// cost: on a virtual machine each takes some 10 µs of a processor, a hundredth of it by the
/// millisecond, and a deadline of 20 ms is none the better for them.
const TICK_MS_MAX: u64 = 5;
/// Ticks in the deadline of a live call that is too short for the longest ones.
const TICKS_MIN: u64 = 3;
/// Longest wall clock of a call whose processor time is bounded, in times of that bound: it frees the
/// slot of one whose thread gets next to none.
const WALL_TIMES: u32 = 20;

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

/// A deadline on the processor time of the thread that began it, for calls that no request waits for:
/// on a busy machine, wall clock says nothing of the policy.
pub(crate) struct ProcessorDeadline {
    clock: Arc<DeadlineClock>,
    /// On the clock of the thread's processor time.
    processor: Duration,
    /// On the clock that tells the time since the start of the system.
    wall: Duration,
}

impl ProcessorDeadline {
    /// Starts now, on the calling thread.
    pub(crate) fn begin(clock: &Arc<DeadlineClock>, deadline_ms: u64) -> Self {
        let time = Duration::from_millis(deadline_ms);
        Self {
            clock: Arc::clone(clock),
            processor: now(ClockId::ThreadCPUTime).saturating_add(time),
            wall: now(ClockId::Monotonic).saturating_add(time.saturating_mul(WALL_TIMES)),
        }
    }

    /// Extends the call by what is left of its processor time and its wall clock, or ends it. Must run
    /// on the thread that began it.
    pub(crate) fn check(&self) -> UpdateDeadline {
        let processor = self.processor.saturating_sub(now(ClockId::ThreadCPUTime));
        let left = processor.min(self.wall.saturating_sub(now(ClockId::Monotonic)));
        if left.is_zero() {
            return UpdateDeadline::Interrupt;
        }
        // Less than a millisecond is a tick, too.
        let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1);
        UpdateDeadline::Continue(self.clock.begin(left_ms))
    }
}

/// The time of a clock; zero if the system gives none.
fn now(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
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
    fn a_short_deadline_is_not_held_up_by_long_ticks() {
        let clock = DeadlineClock::start(&Engine::default(), 3, 500).unwrap();
        assert_eq!((clock.tick_ms, clock.begin(3)), (1, 4));
    }

    /// A clock that nothing drives.
    fn stopped_clock() -> Arc<DeadlineClock> {
        let (signals, thread) = (Arc::default(), thread::current());
        Arc::new(DeadlineClock { signals, thread, tick_ms: TICK_MS_MAX })
    }

    #[test]
    fn time_that_the_thread_did_not_have_does_not_end_a_call() {
        let deadline = ProcessorDeadline::begin(&stopped_clock(), 3_600_000);
        // The ticks are over, and the thread has had next to none of the time.
        let UpdateDeadline::Continue(left) = deadline.check() else {
            panic!("it ends a call that has its processor time left");
        };
        let all = ticks(3_600_000, TICK_MS_MAX);
        assert!((all / 2..=all).contains(&left), "{left} of {all}");
        assert!(deadline.clock.signals.begun.load(Ordering::SeqCst), "the clock may sleep");
    }

    #[test]
    fn a_call_ends_with_its_processor_time() {
        let began = now(ClockId::ThreadCPUTime);
        let deadline = ProcessorDeadline::begin(&stopped_clock(), 3);
        while matches!(deadline.check(), UpdateDeadline::Continue(_)) {
            std::hint::spin_loop();
        }
        let had = now(ClockId::ThreadCPUTime) - began;
        let wall_over = now(ClockId::Monotonic) >= deadline.wall;
        assert!(had >= Duration::from_millis(3) || wall_over, "after {had:?}");
    }

    #[test]
    fn a_call_whose_thread_never_runs_ends_with_its_wall_clock() {
        let mut deadline = ProcessorDeadline::begin(&stopped_clock(), 3_600_000);
        deadline.wall = now(ClockId::Monotonic);
        assert!(matches!(deadline.check(), UpdateDeadline::Interrupt));
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
