//! Every order in which a few tasks can run, for tests of what they share: on one thread, where each goes
//! on once it was woken. A task that nobody wakes is found.
//!
//! Threads interleave within a step, too. What tasks share there is behind a lock, or one atomic.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

/// A task.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Tasks that share something, and the check of that when all have ended.
pub(crate) struct TaskSet {
    pub(crate) tasks: Vec<Task>,
    pub(crate) check: Box<dyn FnOnce()>,
}

/// Runs tasks, made anew each time, in every order; the number of orders.
///
/// # Panics
/// When tasks wait and none was woken.
pub(crate) fn in_every_order(tasks: impl Fn() -> TaskSet) -> usize {
    let (mut choices, mut orders) = (Choices::default(), 1);
    run(tasks(), &mut choices);
    while choices.advance() {
        run(tasks(), &mut choices);
        orders += 1;
    }
    orders
}

fn run(set: TaskSet, choices: &mut Choices) {
    let begin = |task| (Arc::new(Woken(AtomicBool::new(true))), task);
    let mut tasks: Vec<(Arc<Woken>, Task)> = set.tasks.into_iter().map(begin).collect();
    while !tasks.is_empty() {
        let ready: Vec<usize> = (0..tasks.len()).filter(|&place| tasks[place].0.get()).collect();
        assert!(!ready.is_empty(), "{} tasks wait, and nobody wakes them", tasks.len());
        let place = ready[choices.next(ready.len())];
        let (woken, task) = &mut tasks[place];
        woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(woken));
        if task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            drop(tasks.remove(place));
        }
    }
    (set.check)();
}

/// True once its task was woken, until that runs.
struct Woken(AtomicBool);

impl Woken {
    fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The choices that lead to one order.
#[derive(Default)]
struct Choices {
    made: Vec<Choice>,
    /// Choices made again so far.
    step: usize,
}

struct Choice {
    chosen: usize,
    of: usize,
}

impl Choices {
    /// The next choice among so many.
    fn next(&mut self, of: usize) -> usize {
        if self.step == self.made.len() {
            self.made.push(Choice { chosen: 0, of });
        }
        let choice = &self.made[self.step];
        assert_eq!(choice.of, of, "the same choices lead to the same place");
        self.step += 1;
        choice.chosen
    }

    /// Turns to the next order; false when there is none.
    fn advance(&mut self) -> bool {
        self.step = 0;
        while let Some(last) = self.made.last_mut() {
            last.chosen += 1;
            if last.chosen < last.of {
                return true;
            }
            self.made.pop();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::rc::Rc;

    use tokio::sync::Notify;
    use tokio::task::yield_now;

    use super::*;

    #[test]
    fn two_tasks_of_two_steps_have_six_orders() {
        let seen = Rc::new(RefCell::new(BTreeSet::new()));
        let orders = in_every_order(|| {
            let steps = Rc::new(RefCell::new(String::new()));
            let task = |name: char| {
                let steps = Rc::clone(&steps);
                Box::pin(async move {
                    steps.borrow_mut().push(name);
                    yield_now().await;
                    steps.borrow_mut().push(name);
                }) as Task
            };
            let (tasks, seen) = (vec![task('a'), task('b')], Rc::clone(&seen));
            TaskSet { tasks, check: Box::new(move || _ = seen.borrow_mut().insert(steps.take())) }
        });
        let seen = seen.take();
        assert_eq!(orders, 6);
        assert!(seen.iter().eq(["aabb", "abab", "abba", "baab", "baba", "bbaa"]), "{seen:?}");
    }

    #[test]
    #[should_panic(expected = "1 tasks wait, and nobody wakes them")]
    fn a_task_that_nobody_wakes_is_found() {
        in_every_order(|| {
            let notify = Rc::new(Notify::new());
            let waiting = Rc::clone(&notify);
            let tasks: Vec<Task> = vec![
                Box::pin(async move { waiting.notified().await }),
                // Too early in one of the orders.
                Box::pin(async move { notify.notify_waiters() }),
            ];
            TaskSet { tasks, check: Box::new(|| ()) }
        });
    }
}
