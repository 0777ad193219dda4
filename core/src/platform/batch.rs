//! Statements that would wait for each other run as one. Whatever is asked while another statement
//! is under way is gathered and goes together; nobody waits for company. One round trip, one plan
//! and, for a write, one commit are then shared by all of them. So a second statement is begun beside
//! the first only when that one is full or takes long: two halves cost more than one whole.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::platform::error::{Error, Result};

/// Most that waits in one place; what comes then is refused.
const WAITING_MAX: usize = 4_096;
/// How long a statement is waited for before another is begun beside it.
const PROMPT_MAX: Duration = Duration::from_millis(2);
/// How long a lane that has nothing to do keeps what it works with.
const LINGER: Duration = Duration::from_millis(5);
/// Most statements that a lane carries out before it lets go of what it works with: a pool's bound
/// on a connection's life is then kept under any load.
const KEPT_MAX: usize = 4_096;

/// What is gathered, and how it is carried out.
pub(crate) trait Work: Send + Sync + 'static {
    /// One question.
    type Ask: Send + 'static;
    /// Its answer.
    type Answer: Send + 'static;
    /// What a lane works with and keeps from one statement to the next: its connection.
    type Tool: Default + Send + 'static;

    /// Most questions of one statement.
    const TOGETHER_MAX: usize;
    /// Statements under way at once.
    const LANES: usize;
    /// For the error when too many wait.
    const DOING: &'static str;

    /// Answers all questions, in their order.
    fn run(
        &self,
        tool: &mut Self::Tool,
        asked: Vec<Self::Ask>,
    ) -> impl Future<Output = Vec<Self::Answer>> + Send;
}

/// Where questions wait.
pub(crate) struct Gather<W: Work> {
    work: W,
    state: Mutex<State<W>>,
}

struct State<W: Work> {
    waiting: VecDeque<(W::Ask, Told<W>)>,
    lanes: usize,
    /// Lanes that will look at what waits without a call.
    busy: usize,
    /// Those of them whose statement takes longer than [`PROMPT_MAX`].
    late: usize,
    /// Calls lanes that linger. One that has left meanwhile does not hear.
    idle: Vec<oneshot::Sender<()>>,
}

impl<W: Work> State<W> {
    /// Sees to it that what waits is looked at soon. `true` when one more lane must be opened for
    /// that, whose place is then taken.
    fn call(&mut self) -> bool {
        let soon = self.busy > self.late && self.waiting.len() < W::TOGETHER_MAX;
        if soon || self.waiting.is_empty() {
            return false;
        }
        let called = std::iter::from_fn(|| self.idle.pop()).any(|idle| idle.send(()).is_ok());
        let opened = !called && self.lanes < W::LANES;
        self.lanes += usize::from(opened);
        self.busy += usize::from(called || opened);
        opened
    }
}

/// Where the answer to a question goes.
type Told<W> = oneshot::Sender<<W as Work>::Answer>;

impl<W: Work> std::fmt::Debug for Gather<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gather")
    }
}

impl<W: Work> Gather<W> {
    /// Nothing waits yet.
    pub(crate) fn new(work: W) -> Arc<Self> {
        let (waiting, idle) = (VecDeque::new(), Vec::new());
        let state = State { waiting, lanes: 0, busy: 0, late: 0, idle };
        Arc::new(Self { work, state: Mutex::new(state) })
    }

    /// The answer to one question. What was asked is carried out even if nobody waits any more.
    ///
    /// # Errors
    /// 503 when too many wait; 500 when the work broke off.
    pub(crate) async fn ask(self: &Arc<Self>, question: W::Ask) -> Result<W::Answer> {
        let (answer, answered) = oneshot::channel();
        let opened = {
            let mut state = self.lock();
            if state.waiting.len() >= WAITING_MAX {
                return Err(Error::unavailable(W::DOING));
            }
            state.waiting.push_back((question, answer));
            state.call()
        };
        if opened {
            // A task of its own: the request that opens the lane may be given up before others
            // that travel with it.
            tokio::spawn(Lane::of(self).serve());
        }
        answered.await.map_err(|error| Error::internal(W::DOING, error))
    }

    fn lock(&self) -> MutexGuard<'_, State<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of the statements that may be under way. Dropping it, by a panic too, frees its place.
struct Lane<W: Work> {
    gather: Arc<Gather<W>>,
    /// Whether it is counted as such.
    busy: bool,
    late: bool,
}

impl<W: Work> Lane<W> {
    /// One whose place is taken.
    fn of(gather: &Arc<Gather<W>>) -> Self {
        Self { gather: Arc::clone(gather), busy: true, late: false }
    }

    async fn serve(mut self) {
        let gather = Arc::clone(&self.gather);
        let mut tool = W::Tool::default();
        for _ in 0..KEPT_MAX {
            let next = match self.next() {
                Next::Work(next) => next,
                Next::Idle(call) => {
                    self.busy = is_called(call).await;
                    if self.busy {
                        continue;
                    }
                    return;
                }
            };
            let (asked, answers): (Vec<_>, Vec<_>) = next.into_iter().unzip();
            let mut running = pin!(gather.work.run(&mut tool, asked));
            let given = match timeout(PROMPT_MAX, &mut running).await {
                Ok(given) => given,
                Err(_) => {
                    self.fall_behind();
                    running.await
                }
            };
            for (answer, told) in given.into_iter().zip(answers) {
                // Who has gone away needs no answer.
                let _ = told.send(answer);
            }
        }
    }

    /// What waits, the longest first; nothing while another lane is prompt and can take it all.
    fn next(&mut self) -> Next<W> {
        let mut state = self.gather.lock();
        state.late -= usize::from(std::mem::take(&mut self.late));
        let left = state.busy > state.late + 1 && state.waiting.len() < W::TOGETHER_MAX;
        if left || state.waiting.is_empty() {
            state.busy -= usize::from(std::mem::take(&mut self.busy));
            let (caller, call) = oneshot::channel();
            state.idle.push(caller);
            return Next::Idle(call);
        }
        let count = state.waiting.len().min(W::TOGETHER_MAX);
        Next::Work(state.waiting.drain(..count).collect())
    }

    /// Leaves what waits to another lane.
    fn fall_behind(&mut self) {
        let mut state = self.gather.lock();
        (state.late, self.late) = (state.late + 1, true);
        if state.call() {
            tokio::spawn(Self::of(&self.gather).serve());
        }
    }
}

/// What a lane does next.
enum Next<W: Work> {
    /// It answers these.
    Work(Vec<(W::Ask, Told<W>)>),
    /// It waits for a call.
    Idle(oneshot::Receiver<()>),
}

/// Whether there is work again before the lane has lingered long enough.
async fn is_called(mut call: oneshot::Receiver<()>) -> bool {
    let called = timeout(LINGER, &mut call).await.is_ok_and(|called| called.is_ok());
    // Who calls after this notices, and leaves it to the lane's end to open another.
    call.close();
    called || call.try_recv().is_ok()
}

impl<W: Work> Drop for Lane<W> {
    fn drop(&mut self) {
        let mut state = self.gather.lock();
        state.lanes -= 1;
        state.busy -= usize::from(self.busy);
        state.late -= usize::from(self.late);
        // Who came after the last look, or before a panic, found this lane and opened no other.
        if let Ok(runtime) = Handle::try_current()
            && state.call()
        {
            runtime.spawn(Self::of(&self.gather).serve());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;

    /// Doubles numbers as soon as it is let, and fails on 99.
    struct Doubling<const LANES: usize = 1> {
        gate: Semaphore,
        runs: AtomicUsize,
        /// Most runs of one lane.
        longest: AtomicUsize,
    }

    impl<const LANES: usize> Work for Doubling<LANES> {
        type Ask = usize;
        type Answer = usize;
        type Tool = usize;
        const TOGETHER_MAX: usize = 8;
        const LANES: usize = LANES;
        const DOING: &'static str = "double";

        async fn run(&self, runs: &mut usize, asked: Vec<usize>) -> Vec<usize> {
            self.runs.fetch_add(1, Ordering::Relaxed);
            *runs += 1;
            self.longest.fetch_max(*runs, Ordering::Relaxed);
            assert!(!asked.contains(&99), "unlucky");
            self.gate.acquire().await.unwrap().forget();
            asked.into_iter().map(|number| 2 * number).collect()
        }
    }

    fn doubling(open: usize) -> Arc<Gather<Doubling>> {
        with_lanes(open)
    }

    fn with_lanes<const LANES: usize>(open: usize) -> Arc<Gather<Doubling<LANES>>> {
        let [runs, longest] = [0, 0].map(AtomicUsize::new);
        Gather::new(Doubling { gate: Semaphore::new(open), runs, longest })
    }

    #[tokio::test]
    async fn what_comes_meanwhile_goes_together_and_everybody_gets_their_own() {
        let gather = doubling(0);
        let asking = (0..17).map(|number| {
            let gather = Arc::clone(&gather);
            tokio::spawn(async move { gather.ask(number).await.unwrap() })
        });
        let asking: Vec<_> = asking.collect();
        tokio::task::yield_now().await;
        gather.work.gate.add_permits(17);
        let answers = join_all(asking).await.into_iter().map(Result::unwrap);
        assert_eq!(answers.collect::<Vec<_>>(), (0..17).map(|n| 2 * n).collect::<Vec<_>>());
        let runs = gather.work.runs.load(Ordering::Relaxed);
        assert!((3..=4).contains(&runs), "{runs} runs");
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_statement_is_begun_when_the_first_is_full_or_takes_long() {
        let gather = with_lanes::<3>(0);
        let mut asking: Vec<_> = (0..10).map(|number| Box::pin(gather.ask(number))).collect();
        let mut ask = async |range: std::ops::Range<usize>| {
            for asked in &mut asking[range] {
                assert!(futures::poll!(asked).is_pending());
            }
            tokio::task::yield_now().await;
            gather.work.runs.load(Ordering::Relaxed)
        };
        assert_eq!(ask(0..1).await, 1);
        assert_eq!(ask(1..8).await, 1, "they wait for the first, which is prompt");
        assert_eq!(ask(8..9).await, 2, "they fill a statement");
        assert_eq!(ask(9..10).await, 2);
        tokio::time::advance(PROMPT_MAX + Duration::from_millis(1)).await;
        assert_eq!(ask(0..0).await, 3, "both are late");
        gather.work.gate.add_permits(3);
        let answers = join_all(asking).await.into_iter().map(Result::unwrap);
        assert_eq!(answers.collect::<Vec<_>>(), (0..10).map(|n| 2 * n).collect::<Vec<_>>());
        assert_eq!(gather.lock().late, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_left_to_the_lane_that_is_prompt() {
        let gather = with_lanes::<2>(0);
        let mut asking: Vec<_> = (0..10).map(|number| Box::pin(gather.ask(number))).collect();
        for asked in &mut asking {
            assert!(futures::poll!(asked).is_pending());
            tokio::task::yield_now().await;
        }
        // One question in the first lane, eight in the second, and the last one waits.
        let runs = || gather.work.runs.load(Ordering::Relaxed);
        assert_eq!((runs(), gather.lock().busy), (2, 2));
        gather.work.gate.add_permits(1);
        while gather.lock().busy == 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!((runs(), gather.lock().waiting.len()), (2, 1));
        gather.work.gate.add_permits(2);
        assert!(join_all(asking).await.iter().all(Result::is_ok));
        assert_eq!(runs(), 3);
    }

    #[tokio::test]
    async fn a_lane_with_nothing_to_do_ends_and_another_is_opened() {
        let gather = doubling(2);
        for number in 0..2 {
            assert_eq!(gather.ask(number).await.unwrap(), 2 * number);
            while gather.lock().lanes > 0 {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(gather.work.longest.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_lane_keeps_its_tool_but_not_for_ever() {
        let gather = doubling(KEPT_MAX * 2 + 9);
        for number in 0..KEPT_MAX * 2 {
            let number = 100 + number;
            assert_eq!(gather.ask(number).await.unwrap(), 2 * number);
        }
        let longest = gather.work.longest.load(Ordering::Relaxed);
        assert!((2..=KEPT_MAX).contains(&longest), "{longest} runs");
    }

    #[tokio::test]
    async fn work_that_breaks_off_fails_its_own_and_the_next_goes_on() {
        let gather = doubling(1);
        let failed = gather.ask(99).await;
        assert!(matches!(failed, Err(Error::Failed(_))));
        assert_eq!(gather.ask(4).await.unwrap(), 8);
    }

    #[tokio::test]
    async fn who_leaves_takes_nobody_along() {
        let gather = doubling(0);
        let mut gone = Box::pin(gather.ask(1));
        assert!(futures::poll!(&mut gone).is_pending());
        drop(gone);
        gather.work.gate.add_permits(2);
        assert_eq!(gather.ask(2).await.unwrap(), 4);
    }
}
