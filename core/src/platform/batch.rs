//! Batches: items that arrive while a statement runs go together in the next one. They share one
//! round trip, one plan and, for a write, one commit; none waits for company while its tenant has no
//! other batch under way. A tenant that sends more has larger batches, and leaves the other workers to
//! other tenants. What no batch has taken yet is open to every worker.
//!
//! A batch that meets a lock is given up soon, and its items run alone, each on a connection of its
//! partner's share: the batches of other partners do not wait for it.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{Either, select};
use tokio::sync::{Mutex, Notify, mpsc, oneshot};
use tokio::time::timeout;
use uuid::Uuid;

use crate::platform::db::{HeldConnection, Pool, tenant};
use crate::platform::error::{Error, Result};
use crate::platform::keyed_budget::{BudgetLimit, BudgetShare, KeyedBudget};
use crate::platform::telemetry::TraceScope;
use rampart_types::ClientId;

/// Most items that wait for a worker; further ones are refused.
const QUEUE_MAX: usize = 4_096;
/// Most of them of one tenant: three quarters. An item waits on when its request is given up, so that the
/// bound on a partner's requests is none on these.
const TENANT_QUEUE_MAX: usize = QUEUE_MAX - QUEUE_MAX / 4;
/// Time that an idle worker keeps its connection.
const CONNECTION_IDLE_MAX: Duration = Duration::from_millis(5);
/// Most batches that a worker runs on one connection, so that the pool's bound on a connection's
/// life is kept under any load.
const CONNECTION_BATCHES_MAX: usize = 4_096;

/// Items that run alone at once; further ones are refused.
const ALONE_MAX: usize = 1_024;
/// Most of them of one tenant: three quarters.
const TENANT_ALONE_MAX: usize = ALONE_MAX - ALONE_MAX / 4;
/// Time for which the items of a tenant run alone after one of its batches met a lock.
const CONTAINED_NS: u64 = 10_000_000_000;

/// Nothing of a batch happened, and each of its items must run alone.
pub(crate) struct RunSingly;

/// Items of one kind, and the statement that takes many of them.
pub(crate) trait BatchJob: Send + Sync + 'static {
    /// One item.
    type Item: Send + Sync + 'static;
    /// Its result.
    type Output: Send + 'static;

    /// Most items of one batch.
    const BATCH_MAX: usize;
    /// Batches that run at once.
    const WORKERS: usize;
    /// Batches of one tenant among them. They are fewer, which leaves a worker to other tenants, however
    /// long the statements of this one take.
    const TENANT_BATCHES_MAX: usize;
    /// The job in words, for errors.
    const NAME: &'static str;

    /// The tenant of an item. A batch is one tenant's: its statements see no other's rows.
    fn tenant(item: &Self::Item) -> ClientId;

    /// Items with the same key never share a batch.
    fn exclusive_key(_: &Self::Item) -> Option<Uuid> {
        None
    }

    /// Runs one batch. The outputs are those of the items, in their order.
    ///
    /// # Errors
    /// When nothing happened and each item may do better alone; never for a single one that has not
    /// waited for a lock on a connection of batches.
    fn run(
        &self,
        connection: &mut HeldConnection,
        items: &[Self::Item],
    ) -> impl Future<Output = Result<Vec<Self::Output>, RunSingly>> + Send;
}

/// A bounded queue of items, and the workers that empty it. They end when it is dropped.
pub(crate) struct Batcher<J: BatchJob> {
    queue: mpsc::Sender<Pending<J>>,
    /// Permits for items that wait.
    permits: KeyedBudget<ClientId>,
}

/// An item in the queue, the span it belongs to, and the sender of its reply.
struct Pending<J: BatchJob> {
    item: J::Item,
    scope: TraceScope,
    reply: oneshot::Sender<Result<J::Output>>,
    /// Its permit to wait; `None` once a batch has taken it.
    _permit: Option<BudgetShare<ClientId>>,
}

impl<J: BatchJob> std::fmt::Debug for Batcher<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Batcher")
    }
}

impl<J: BatchJob> Batcher<J> {
    /// Starts the workers on the runtime that calls this.
    pub(crate) fn start(db: &Pool, job: J) -> Self {
        const { assert!(J::TENANT_BATCHES_MAX < J::WORKERS) };
        let (queue, receiver) = mpsc::channel(QUEUE_MAX);
        let receiver = Arc::new(Mutex::new(SharedReceiver { receiver, pending: Vec::new() }));
        let (job, permits) = (Arc::new(job), KeyedBudget::new(QUEUE_MAX, TENANT_QUEUE_MAX));
        let alone = Arc::new(KeyedBudget::new(ALONE_MAX, TENANT_ALONE_MAX));
        let (contained, running) = (Arc::<ContainedTenants>::default(), Arc::<Running>::default());
        for _ in 0..J::WORKERS {
            let worker = Worker {
                job: Arc::clone(&job),
                receiver: Arc::clone(&receiver),
                connection: HeldConnection::of_batches(db.clone()),
                alone: Arc::clone(&alone),
                contained: Arc::clone(&contained),
                running: Arc::clone(&running),
            };
            // Tasks of their own: a request may be given up before others of its batch.
            tokio::spawn(worker.serve());
        }
        Self { queue, permits }
    }

    /// Items that wait.
    pub(crate) fn waiting(&self) -> usize {
        QUEUE_MAX.saturating_sub(self.permits.available())
    }

    /// The output of one item. It is run even if the caller is gone by then.
    ///
    /// # Errors
    /// 503 when the queue is full, or too many items run alone, in all or of the tenant; 500 when the batch
    /// panicked.
    pub(crate) async fn submit(&self, item: J::Item) -> Result<J::Output> {
        let (reply, output) = oneshot::channel();
        let scope = TraceScope::current();
        let permit = permit::<J>(&self.permits, J::tenant(&item))?;
        let queued = self.queue.try_send(Pending { item, scope, reply, _permit: permit });
        queued.map_err(|_| Error::unavailable(J::NAME))?;
        output.await.map_err(|error| Error::internal(J::NAME, error))?
    }
}

/// A permit of this tenant's.
///
/// # Errors
/// 503 when there is none left, in all or to the tenant.
fn permit<J: BatchJob>(
    permits: &KeyedBudget<ClientId>,
    tenant: ClientId,
) -> Result<Option<BudgetShare<ClientId>>> {
    let mut permit = None;
    match permits.extend(&tenant, &mut permit, 1) {
        Ok(()) => Ok(permit),
        Err(BudgetLimit::Key) => Err(Error::share_used_up(J::NAME)),
        Err(BudgetLimit::Total) => Err(Error::unavailable(J::NAME)),
    }
}

/// A task that runs one batch at a time.
struct Worker<J: BatchJob> {
    job: Arc<J>,
    receiver: Arc<Mutex<SharedReceiver<J>>>,
    connection: HeldConnection,
    /// Permits for items that run alone.
    alone: Arc<KeyedBudget<ClientId>>,
    /// Tenants whose items do.
    contained: Arc<ContainedTenants>,
    /// Batches under way, of all workers.
    running: Arc<Running>,
}

/// The queue's end that the workers share. One of them waits at it, the others for that one.
struct SharedReceiver<J: BatchJob> {
    receiver: mpsc::Receiver<Pending<J>>,
    /// Received and in no batch yet, oldest first.
    pending: Vec<Pending<J>>,
}

/// The batches under way, by tenant.
#[derive(Default)]
struct Running {
    tenants: std::sync::Mutex<Vec<ClientId>>,
    ended: Notify,
}

impl Running {
    fn begin(self: &Arc<Self>, tenant: ClientId) -> RunningBatch {
        self.all().push(tenant);
        RunningBatch { running: Arc::clone(self), tenant }
    }

    fn all(&self) -> std::sync::MutexGuard<'_, Vec<ClientId>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A batch under way, until it is dropped.
struct RunningBatch {
    running: Arc<Running>,
    tenant: ClientId,
}

impl Drop for RunningBatch {
    fn drop(&mut self) {
        let mut tenants = self.running.all();
        if let Some(at) = tenants.iter().position(|tenant| *tenant == self.tenant) {
            tenants.swap_remove(at);
        }
        drop(tenants);
        self.running.ended.notify_waiters();
    }
}

/// Tenants, each with the monotonic nanoseconds until which its items run alone.
#[derive(Default)]
struct ContainedTenants(std::sync::Mutex<HashMap<ClientId, u64>>);

impl ContainedTenants {
    fn add(&self, tenant: ClientId, now_ns: u64) {
        let mut tenants = self.all();
        tenants.retain(|_, until| now_ns < *until);
        tenants.insert(tenant, now_ns + CONTAINED_NS);
    }

    fn contain(&self, tenant: ClientId, now_ns: u64) -> bool {
        self.all().get(&tenant).is_some_and(|until| now_ns < *until)
    }

    fn all(&self) -> std::sync::MutexGuard<'_, HashMap<ClientId, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J: BatchJob> Worker<J> {
    async fn serve(mut self) {
        let mut batches = 0;
        while let Some((running, batch)) = self.receive().await {
            let tenant = running.tenant;
            if self.contained.contain(tenant, self.connection.pool().now_ns()) {
                self.run_singly(tenant, batch);
                continue;
            }
            self.run(tenant, batch).await;
            drop(running);
            batches += 1;
            if batches % CONNECTION_BATCHES_MAX == 0 {
                self.connection.release();
            }
        }
    }

    /// Runs one batch of this tenant.
    async fn run(&mut self, tenant: ClientId, batch: Vec<Pending<J>>) {
        // Their permits are given back: they do not wait any more.
        let taken =
            batch.into_iter().map(|Pending { item, scope, reply, .. }| (item, (scope, reply)));
        let (items, callers): (Vec<_>, Vec<_>) = taken.unzip();
        let scope = TraceScope::joined(callers.iter().map(|(scope, _)| scope));
        let run = Box::pin(self.job.run(&mut self.connection, &items));
        let run = AssertUnwindSafe(scope.run(tenant::run(Some(tenant), run)));
        match run.catch_unwind().await {
            Ok(Ok(outputs)) => {
                for (output, (_, reply)) in outputs.into_iter().zip(callers) {
                    // The caller may have disconnected.
                    let _ = reply.send(Ok(output));
                }
            }
            Ok(Err(RunSingly)) => {
                self.contained.add(tenant, self.connection.pool().now_ns());
                let batch = items.into_iter().zip(callers);
                let batch = batch.map(|(item, (scope, reply))| Pending::<J> {
                    item,
                    scope,
                    reply,
                    _permit: None,
                });
                self.run_singly(tenant, batch.collect());
            }
            // Dropping the replies fails the callers. The panic hook has logged the cause.
            Err(_) => self.connection.release(),
        }
    }

    /// Runs each item in a task and on a connection of its own, as far as there are permits.
    fn run_singly(&self, tenant: ClientId, batch: Vec<Pending<J>>) {
        for Pending { item, scope, reply, .. } in batch {
            let permit = match permit::<J>(&self.alone, tenant) {
                Ok(permit) => permit,
                Err(error) => {
                    let _ = reply.send(Err(error));
                    continue;
                }
            };
            let job = Arc::clone(&self.job);
            let mut connection = HeldConnection::of_partner(self.connection.pool().clone());
            tokio::spawn(scope.run(tenant::run(Some(tenant), async move {
                let _permit = permit;
                // Where it panics, dropping the reply fails the caller.
                let run = Box::pin(job.run(&mut connection, std::slice::from_ref(&item))).await;
                let output = run.ok().and_then(|outputs| outputs.into_iter().next());
                let _ = reply.send(output.ok_or_else(|| Error::invariant(J::NAME)));
            })));
        }
    }

    /// The next batch; `None` when there will be none. An idle worker's connection goes back to the
    /// pool.
    async fn receive(&mut self) -> Option<(RunningBatch, Vec<Pending<J>>)> {
        let next = next_batch(&self.receiver, &self.running);
        match timeout(CONNECTION_IDLE_MAX, next).await {
            Ok(next) => next,
            Err(_) => {
                self.connection.release();
                next_batch(&self.receiver, &self.running).await
            }
        }
    }
}

/// Waits for the next batch, and begins it; `None` when there will be none. Nothing is lost where
/// this is given up.
async fn next_batch<J: BatchJob>(
    receiver: &Mutex<SharedReceiver<J>>,
    running: &Arc<Running>,
) -> Option<(RunningBatch, Vec<Pending<J>>)> {
    let mut shared = receiver.lock().await;
    let SharedReceiver { receiver, pending } = &mut *shared;
    if pending.is_empty() {
        receiver.recv_many(pending, QUEUE_MAX).await;
        // Requests that this thread has ready come as far as the queue: a statement costs as much as
        // several of its rows.
        tokio::task::yield_now().await;
    }
    pending.extend(std::iter::from_fn(|| receiver.try_recv().ok()));
    let mut is_closed = false;
    loop {
        let ended = pin!(running.ended.notified());
        let mut tenant = due_tenant(pending, running);
        if is_closed {
            // Nobody comes whom a free worker would be for.
            tenant = tenant.or_else(|| Some(J::tenant(&pending.first()?.item)));
        }
        if let Some(tenant) = tenant {
            // Before another worker looks.
            let running = running.begin(tenant);
            return Some((running, take_batch(pending, tenant)));
        }
        if is_closed {
            return None;
        }
        let received = pin!(receiver.recv_many(pending, QUEUE_MAX));
        is_closed = matches!(select(ended, received).await, Either::Right((0, _)));
    }
}

/// The tenant of the next batch: that of the oldest item whose tenant has no batch under way, or else
/// one that may have another and fills half of it.
fn due_tenant<J: BatchJob>(pending: &[Pending<J>], running: &Running) -> Option<ClientId> {
    let running = running.all();
    let under_way = |tenant: &ClientId| running.iter().filter(|other| *other == tenant).count();
    let tenants = || pending.iter().map(|pending| J::tenant(&pending.item));
    let fills_half =
        |tenant: &ClientId| tenants().filter(|other| other == tenant).count() >= J::BATCH_MAX / 2;
    tenants().find(|tenant| under_way(tenant) == 0).or_else(|| {
        let mut tenants = tenants();
        tenants.find(|tenant| under_way(tenant) < J::TENANT_BATCHES_MAX && fills_half(tenant))
    })
}

/// Takes the tenant's next batch, oldest first, but for items whose key it has already.
fn take_batch<J: BatchJob>(pending: &mut Vec<Pending<J>>, tenant: ClientId) -> Vec<Pending<J>> {
    let mut keys = HashSet::new();
    let batch = pending.extract_if(.., |pending| {
        J::tenant(&pending.item) == tenant
            && J::exclusive_key(&pending.item).is_none_or(|key| keys.insert(key))
    });
    batch.take(J::BATCH_MAX).collect()
}

#[cfg(test)]
mod tests;
