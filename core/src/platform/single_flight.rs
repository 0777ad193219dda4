//! Work of which one run serves everybody who asked before it began.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use crate::platform::error::Result;

/// Runs of one kind of work, one at a time. However many wait, they wait for the run under way and one
/// more.
#[derive(Debug, Default)]
pub(crate) struct SingleFlight {
    /// Runs that have begun.
    begun: AtomicU64,
    /// The number of the last one that succeeded.
    succeeded: Mutex<u64>,
}

impl SingleFlight {
    /// Returns when a run has succeeded that began after this call: its own, or that of another one
    /// who waited. A run that fails, or is given up, serves nobody.
    ///
    /// # Errors
    /// Those of its own run.
    pub(crate) async fn run<W>(&self, work: impl FnOnce() -> W) -> Result<()>
    where
        W: Future<Output = Result<()>>,
    {
        let before = self.begun.load(Ordering::SeqCst);
        let mut succeeded = self.succeeded.lock().await;
        if *succeeded > before {
            return Ok(());
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        work().await?;
        *succeeded = number;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::Arc;

    use futures::future::abortable;
    use tokio::sync::Semaphore;
    use tokio::task::{JoinHandle, yield_now};

    use super::*;
    use crate::platform::error::Error;
    use crate::platform::interleavings::{Task, TaskSet, in_every_order};

    /// Work that ends when the gate lets it, and may fail.
    #[derive(Clone)]
    struct Bench {
        flight: Arc<SingleFlight>,
        gate: Arc<Semaphore>,
    }

    impl Bench {
        fn new() -> Self {
            Self { flight: Arc::default(), gate: Arc::new(Semaphore::new(0)) }
        }

        fn ask(&self, fails: bool) -> JoinHandle<Result<()>> {
            let Self { flight, gate } = self.clone();
            tokio::spawn(async move {
                let work = || async move {
                    gate.acquire().await.unwrap().forget();
                    if fails { Err(Error::invariant("work")) } else { Ok(()) }
                };
                flight.run(work).await
            })
        }

        fn runs(&self) -> u64 {
            self.flight.begun.load(Ordering::SeqCst)
        }
    }

    #[tokio::test]
    async fn one_run_serves_all_who_asked_before_it_began() {
        let bench = Bench::new();
        let first = bench.ask(false);
        yield_now().await;
        let later: Vec<_> = (0..10).map(|_| bench.ask(false)).collect();
        yield_now().await;
        bench.gate.add_permits(100);
        first.await.unwrap().unwrap();
        for one in later {
            one.await.unwrap().unwrap();
        }
        assert_eq!(bench.runs(), 2, "the first one had begun before the others asked");
        bench.ask(false).await.unwrap().unwrap();
        assert_eq!(bench.runs(), 3);
    }

    /// Asks once, where the run of this number fails. Each run is noted: true once it has succeeded.
    async fn ask(flight: Rc<SingleFlight>, runs: Rc<RefCell<Vec<bool>>>, failing: Option<usize>) {
        let before = runs.borrow().len();
        let work = || async {
            let number = runs.borrow().len();
            runs.borrow_mut().push(false);
            yield_now().await;
            if failing == Some(number) {
                return Err(Error::invariant("work"));
            }
            runs.borrow_mut()[number] = true;
            Ok(())
        };
        if flight.run(work).await.is_ok() {
            assert!(runs.borrow()[before..].contains(&true), "one from before it asked served it");
        }
    }

    #[test]
    fn in_every_order_a_caller_is_served_by_a_run_that_began_after_it_asked() {
        for failing in [None, Some(0), Some(1)] {
            let orders = in_every_order(|| {
                let (flight, runs) = (Rc::<SingleFlight>::default(), Rc::default());
                let asking = || ask(Rc::clone(&flight), Rc::clone(&runs), failing);
                let (given_up, handle) = abortable(asking());
                let tasks: Vec<Task> = vec![
                    Box::pin(async { _ = given_up.await }),
                    Box::pin(async move { handle.abort() }),
                    Box::pin(asking()),
                    Box::pin(asking()),
                ];
                TaskSet { tasks, check: Box::new(|| ()) }
            });
            assert!(orders > 100, "{orders}");
        }
    }

    #[tokio::test]
    async fn a_run_that_fails_serves_nobody() {
        let bench = Bench::new();
        let first = bench.ask(false);
        yield_now().await;
        let (fails, waits) = (bench.ask(true), bench.ask(false));
        yield_now().await;
        bench.gate.add_permits(100);
        first.await.unwrap().unwrap();
        assert!(fails.await.unwrap().is_err());
        waits.await.unwrap().unwrap();
        assert_eq!(bench.runs(), 3);
    }
}
