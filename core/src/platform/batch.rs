//! Batches: items that arrive while a statement runs go together in the next one. They share one
//! round trip, one plan and, for a write, one commit; none waits for company.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::timeout;
use uuid::Uuid;

use crate::platform::db::{HeldConnection, Pool, tenant};
use crate::platform::error::{Error, Result};
use rampart_types::ClientId;

/// Most items that wait in one queue; further ones are refused.
const QUEUE_MAX: usize = 4_096;
/// Time that an idle worker keeps its connection.
const CONNECTION_IDLE_MAX: Duration = Duration::from_millis(5);
/// Most batches that a worker runs on one connection, so that the pool's bound on a connection's
/// life is kept under any load.
const CONNECTION_BATCHES_MAX: usize = 4_096;

/// Items of one kind, and the statement that takes many of them.
pub(crate) trait BatchJob: Send + Sync + 'static {
    /// One item.
    type Item: Send + 'static;
    /// Its result.
    type Output: Send + 'static;

    /// Most items of one batch.
    const BATCH_MAX: usize;
    /// Batches that run at once.
    const WORKERS: usize;
    /// The job in words, for errors.
    const NAME: &'static str;

    /// The tenant of an item. A batch is one tenant's: its statements see no other's rows.
    fn tenant(item: &Self::Item) -> ClientId;

    /// Items with the same key never share a batch.
    fn exclusive_key(_: &Self::Item) -> Option<Uuid> {
        None
    }

    /// Runs one batch. The outputs are those of the items, in their order.
    fn run(
        &self,
        connection: &mut HeldConnection,
        items: Vec<Self::Item>,
    ) -> impl Future<Output = Vec<Self::Output>> + Send;
}

/// A bounded queue of items, and the workers that empty it. They end when it is dropped.
pub(crate) struct Batcher<J: BatchJob> {
    queue: mpsc::Sender<Pending<J>>,
}

/// An item in the queue, and the sender of its reply.
struct Pending<J: BatchJob> {
    item: J::Item,
    reply: oneshot::Sender<J::Output>,
}

impl<J: BatchJob> std::fmt::Debug for Batcher<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Batcher")
    }
}

impl<J: BatchJob> Batcher<J> {
    /// Starts the workers on the runtime that calls this.
    pub(crate) fn start(db: &Pool, job: J) -> Self {
        let (queue, receiver) = mpsc::channel(QUEUE_MAX);
        let (job, receiver) = (Arc::new(job), Arc::new(Mutex::new(receiver)));
        for _ in 0..J::WORKERS {
            let worker = Worker {
                job: Arc::clone(&job),
                receiver: Arc::clone(&receiver),
                connection: HeldConnection::new(db.clone()),
                pending: Vec::with_capacity(J::BATCH_MAX),
            };
            // Tasks of their own: a request may be given up before others of its batch.
            tokio::spawn(worker.serve());
        }
        Self { queue }
    }

    /// Items that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    /// The output of one item. It is run even if the caller is gone by then.
    ///
    /// # Errors
    /// 503 when the queue is full; 500 when the batch panicked.
    pub(crate) async fn submit(&self, item: J::Item) -> Result<J::Output> {
        let (reply, output) = oneshot::channel();
        let queued = self.queue.try_send(Pending { item, reply });
        queued.map_err(|_| Error::unavailable(J::NAME))?;
        output.await.map_err(|error| Error::internal(J::NAME, error))
    }
}

/// A task that runs one batch at a time.
struct Worker<J: BatchJob> {
    job: Arc<J>,
    receiver: Arc<Mutex<mpsc::Receiver<Pending<J>>>>,
    connection: HeldConnection,
    /// Received and not yet run.
    pending: Vec<Pending<J>>,
}

impl<J: BatchJob> Worker<J> {
    async fn serve(mut self) {
        let mut batches = 0;
        while self.receive().await {
            let (items, replies): (Vec<_>, Vec<_>) =
                next_batch(&mut self.pending).map(|Pending { item, reply }| (item, reply)).unzip();
            let tenant = items.first().map(J::tenant);
            let run = Box::pin(self.job.run(&mut self.connection, items));
            let run = tenant::run(tenant, run);
            let run = AssertUnwindSafe(run);
            match run.catch_unwind().await {
                Ok(outputs) => {
                    for (output, reply) in outputs.into_iter().zip(replies) {
                        // The caller may have disconnected.
                        let _ = reply.send(output);
                    }
                }
                // Dropping the replies fails the callers. The panic hook has logged the cause.
                Err(_) => self.connection.release(),
            }
            batches += 1;
            if batches % CONNECTION_BATCHES_MAX == 0 {
                self.connection.release();
            }
        }
    }

    /// Waits for the next items; `false` when there will be none. An idle worker's connection goes
    /// back to the pool.
    async fn receive(&mut self) -> bool {
        let Self { receiver, pending, connection, .. } = self;
        if !pending.is_empty() {
            // Left from the last batch: whatever has come since goes along. The lock is taken where
            // another worker waits for it already.
            if let Ok(mut receiver) = receiver.try_lock() {
                let room = J::BATCH_MAX - pending.len();
                pending.extend(std::iter::from_fn(|| receiver.try_recv().ok()).take(room));
            }
            return true;
        }
        let mut next = async || receiver.lock().await.recv_many(pending, J::BATCH_MAX).await;
        let received = match timeout(CONNECTION_IDLE_MAX, next()).await {
            Ok(received) => received,
            Err(_) => {
                connection.release();
                next().await
            }
        };
        received > 0
    }
}

/// Takes the next batch, oldest first: items of the oldest one's tenant, but for those whose key it
/// has already.
fn next_batch<J: BatchJob>(pending: &mut Vec<Pending<J>>) -> impl Iterator<Item = Pending<J>> {
    let tenant = pending.first().map(|oldest| J::tenant(&oldest.item));
    let mut keys = HashSet::new();
    pending.extract_if(.., move |pending| {
        Some(J::tenant(&pending.item)) == tenant
            && J::exclusive_key(&pending.item).is_none_or(|key| keys.insert(key))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use crate::platform::clock::Clock;
    use crate::platform::db::Session;
    use crate::platform::settings::Database;
    use futures::future::join_all;
    use sqlx::postgres::PgConnectOptions;
    use tokio::sync::Semaphore;

    use super::*;

    /// Doubles numbers as soon as it is let, and panics on 99. Those above 1000 exclude each other,
    /// every 10000 are a tenant's.
    struct Doubling {
        gate: Arc<Semaphore>,
        batches: Arc<Mutex<Vec<Vec<usize>>>>,
    }

    impl BatchJob for Doubling {
        type Item = usize;
        type Output = usize;
        const BATCH_MAX: usize = 8;
        const WORKERS: usize = 2;
        const NAME: &'static str = "double";

        fn tenant(number: &usize) -> ClientId {
            Uuid::from_u128((*number / 10_000) as u128).into()
        }

        fn exclusive_key(number: &usize) -> Option<Uuid> {
            (*number > 1_000 && *number < 10_000).then(Uuid::nil)
        }

        async fn run(&self, _: &mut HeldConnection, numbers: Vec<usize>) -> Vec<usize> {
            self.batches.lock().unwrap().push(numbers.clone());
            assert!(!numbers.contains(&99), "unlucky");
            self.gate.acquire().await.unwrap().forget();
            numbers.into_iter().map(|number| 2 * number).collect()
        }
    }

    struct Bench {
        batcher: Arc<Batcher<Doubling>>,
        gate: Arc<Semaphore>,
        batches: Arc<Mutex<Vec<Vec<usize>>>>,
    }

    impl Bench {
        fn new(permits: usize) -> Self {
            let (gate, batches) = (Arc::new(Semaphore::new(permits)), Arc::default());
            let job = Doubling { gate: Arc::clone(&gate), batches: Arc::clone(&batches) };
            let db = Pool::new(&Database::default(), &Clock::system(), |_| {
                (PgConnectOptions::new(), Session::default())
            });
            Self { batcher: Arc::new(Batcher::start(&db, job)), gate, batches }
        }

        /// Submits numbers, in this order, and lets the workers look at them.
        async fn submit(
            &self,
            numbers: impl IntoIterator<Item = usize>,
        ) -> Vec<tokio::task::JoinHandle<Result<usize>>> {
            let mut submitted = Vec::new();
            for number in numbers {
                let batcher = Arc::clone(&self.batcher);
                submitted.push(tokio::spawn(async move { batcher.submit(number).await }));
                for _ in 0..8 {
                    tokio::task::yield_now().await;
                }
            }
            submitted
        }

        fn sizes(&self) -> Vec<usize> {
            self.batches.lock().unwrap().iter().map(Vec::len).collect()
        }
    }

    async fn outputs(submitted: Vec<tokio::task::JoinHandle<Result<usize>>>) -> Vec<usize> {
        join_all(submitted).await.into_iter().map(|joined| joined.unwrap().unwrap()).collect()
    }

    #[tokio::test]
    async fn items_that_come_meanwhile_share_a_batch_and_get_their_own_outputs() {
        let bench = Bench::new(0);
        let submitted = bench.submit(0..17).await;
        assert_eq!(bench.sizes(), [1, 1], "each worker took what there was");
        bench.gate.add_permits(17);
        let doubled: Vec<_> = (0..17).map(|number| 2 * number).collect();
        assert_eq!(outputs(submitted).await, doubled);
        assert_eq!(bench.sizes(), [1, 1, 8, 7]);
    }

    #[tokio::test]
    async fn items_of_one_key_never_share_a_batch() {
        let bench = Bench::new(0);
        let submitted = bench.submit([0, 1, 1_001, 2, 1_002, 3, 1_003]).await;
        bench.gate.add_permits(17);
        assert_eq!(outputs(submitted).await, [0, 2, 2_002, 4, 2_004, 6, 2_006]);
        let batches = bench.batches.lock().unwrap();
        assert_eq!(batches[2..], [vec![1_001, 2, 3], vec![1_002], vec![1_003]]);
    }

    #[tokio::test]
    async fn items_of_two_tenants_never_share_a_batch() {
        let bench = Bench::new(0);
        let submitted = bench.submit([0, 1, 2, 10_001, 3, 20_001, 10_002]).await;
        bench.gate.add_permits(17);
        assert_eq!(outputs(submitted).await, [0, 2, 4, 20_002, 6, 40_002, 20_004]);
        let batches = bench.batches.lock().unwrap();
        assert_eq!(batches[2..], [vec![2, 3], vec![10_001, 10_002], vec![20_001]]);
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_loses_nothing() {
        let bench = Bench::new(0);
        let taken = bench.submit([1, 2]).await;
        let waiting = bench.submit([5; QUEUE_MAX]).await;
        let refused = bench.batcher.submit(7).await.unwrap_err();
        assert!(matches!(refused, Error::Failed(failure) if failure.unavailable));
        bench.gate.add_permits(QUEUE_MAX);
        assert_eq!(outputs(taken).await, [2, 4]);
        assert_eq!(outputs(waiting).await.len(), QUEUE_MAX);
    }

    #[tokio::test]
    async fn a_panic_fails_its_own_batch_and_the_worker_goes_on() {
        let bench = Bench::new(17);
        for _ in 0..=Doubling::WORKERS {
            assert!(matches!(bench.batcher.submit(99).await, Err(Error::Failed(_))));
        }
        assert_eq!(bench.batcher.submit(4).await.unwrap(), 8);
    }

    #[tokio::test]
    async fn a_caller_that_leaves_takes_nobody_along() {
        let bench = Bench::new(0);
        let gone = bench.submit([1]).await;
        gone[0].abort();
        let stays = bench.submit([2]).await;
        bench.gate.add_permits(2);
        assert_eq!(outputs(stays).await, [4]);
    }

    #[tokio::test]
    async fn workers_end_with_their_batcher() {
        let bench = Bench::new(0);
        let submitted = bench.submit([1, 2, 3]).await;
        let job = Arc::downgrade(&bench.batches);
        let Bench { batcher, gate, batches } = bench;
        drop((batcher, batches));
        gate.add_permits(3);
        assert_eq!(outputs(submitted).await, [2, 4, 6], "what was queued is still run");
        while job.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    }
}
