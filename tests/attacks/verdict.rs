//! The judgement of a family: what was accepted of what was tried, and what the neighbour saw.

use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use rampart_core::platform::clock::Clock;
use rampart_tests::campaign::{Report, Scale};
use rampart_tests::neighbour::{Neighbour, Window};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::block_in_place;

/// Most of what was accepted is named.
const NAMED_MAX: usize = 10;
/// Pairs of windows, alone and beside the attack, in the full form.
const PAIRS: usize = 5;
/// Length of a window alone, and the least of one beside the attack: the 99th of 100 answers of a
/// short window would be one stall of the machine.
const WINDOW: Duration = Duration::from_secs(6);
/// A window alone in the short form, which judges no ratio: some requests that all are granted.
const SHORT_ALONE: Duration = Duration::from_millis(250);
/// The neighbour's p99 beside an attack, in hundredths of its p99 alone.
const RATIO_MAX: u128 = 125;
/// A p99 below this is the timer's and the scheduler's, not the edge's.
const NOISE: Duration = Duration::from_millis(5);
/// The neighbour's p99 in the short form, on a machine that other tests use too.
const SHORT_MAX: Duration = Duration::from_secs(3);

/// The attempts, and those of them that were accepted.
#[derive(Default)]
pub(crate) struct Verdict {
    attempts: usize,
    accepted: Vec<String>,
}

impl Verdict {
    /// Notes an attempt.
    pub(crate) fn note(&mut self, accepted: bool, name: impl FnOnce() -> String) {
        self.attempts += 1;
        if accepted {
            self.accepted.push(name());
        }
    }
}

/// Runs the attack beside the neighbour: once, or in the full form in each pair of windows, again
/// and again until the window has its length.
pub(crate) async fn judged(
    scale: Scale,
    neighbour: &Neighbour,
    mut attack: impl AsyncFnMut(&mut Verdict) + Send,
) -> Report {
    let (mut verdict, clock) = (Verdict::default(), Clock::system());
    let (mut alone, mut beside) = (Window::default(), Window::default());
    let (pairs, time, least) =
        if scale.is_exact() { (PAIRS, WINDOW, WINDOW) } else { (1, SHORT_ALONE, Duration::ZERO) };
    for _ in 0..pairs {
        alone.join(neighbour.ask_for(time).await);
        let mut attacks = async |verdict: &mut Verdict| {
            let began = clock.monotonic_ns();
            loop {
                attack(verdict).await;
                if Duration::from_nanos(clock.monotonic_ns() - began) >= least {
                    break;
                }
            }
        };
        beside.join(beside_attack(scale, neighbour, &mut attacks, &mut verdict));
    }
    report(scale, verdict, &alone, &beside)
}

/// Runs the attack on the attackers' threads; what the neighbour saw meanwhile, on its own.
fn beside_attack(
    scale: Scale,
    neighbour: &Neighbour,
    attack: &mut (impl AsyncFnMut(&mut Verdict) + Send),
    verdict: &mut Verdict,
) -> Window {
    let (over, ended) = oneshot::channel();
    block_in_place(|| {
        thread::scope(|scope| {
            scope.spawn(move || {
                yield_to_others(scale);
                attackers(scale).block_on(attack(verdict));
                // Nobody waits any more where the neighbour has panicked.
                let _ = over.send(());
            });
            Handle::current().block_on(neighbour.ask_while(ended)).1
        })
    })
}

/// The attackers' threads.
fn attackers(scale: Scale) -> &'static Runtime {
    static ATTACKERS: OnceLock<Runtime> = OnceLock::new();
    ATTACKERS.get_or_init(|| {
        let start = move || yield_to_others(scale);
        Builder::new_multi_thread().enable_all().on_thread_start(start).build().unwrap()
    })
}

/// Leaves this thread of the attackers, in the full form, what processor time the edge and the neighbour
/// do not want: as if it had a machine of its own, its work slows the edge only by what it has the edge
/// do. One that is merely nice keeps a processor to the end of its time slice. In the short form, on a
/// machine that others may want whole, it would get no time at all, and be late.
fn yield_to_others(scale: Scale) {
    if !scale.is_exact() {
        return;
    }
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle).unwrap();
}

fn report(scale: Scale, verdict: Verdict, alone: &Window, beside: &Window) -> Report {
    let (before, then) = (alone.p99(), beside.p99());
    let ratio = then.as_micros() * 100 / before.as_micros().max(1);
    let failed: usize = alone.failed.values().chain(beside.failed.values()).sum();
    let millis =
        |time: Duration| format!("{}.{} ms", time.as_millis(), time.as_micros() / 100 % 10);
    let mut report = Report {
        cells: vec![
            verdict.attempts.to_string(),
            verdict.accepted.len().to_string(),
            (alone.asked + beside.asked).to_string(),
            failed.to_string(),
            millis(before),
            millis(then),
            format!("{}.{:02}", ratio / 100, ratio % 100),
        ],
        wrong: Vec::new(),
    };
    report.require(verdict.attempts > 0, || "nothing was tried".to_owned());
    let was_there = alone.asked > 0 && beside.asked > 0;
    report.require(was_there, || "the neighbour was not always there".to_owned());
    report.require(failed == 0, || {
        format!("the neighbour failed: {:?} alone, {:?} beside", alone.failed, beside.failed)
    });
    let quick =
        if scale.is_exact() { then <= NOISE || ratio <= RATIO_MAX } else { then <= SHORT_MAX };
    report.require(quick, || {
        format!("the neighbour's p99 was {} alone, {} beside", millis(before), millis(then))
    });
    for accepted in verdict.accepted.into_iter().take(NAMED_MAX) {
        report.wrong.push(format!("accepted: {accepted}"));
    }
    report
}
