use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Mutex;

use crate::platform::clock::Clock;
use crate::platform::db::Session;
use crate::platform::interleavings::{Task, TaskSet, in_every_order};
use crate::platform::settings::Database;
use futures::future::join_all;
use sqlx::postgres::PgConnectOptions;
use tokio::sync::Semaphore;
use tokio::task::yield_now;

use super::*;

/// Tenants that keep all workers busy until the gate lets them go.
const BUSY: [usize; Doubling::WORKERS] = [30_001, 40_001, 50_001];

/// Doubles numbers as soon as it is let, panics on 99, and falls apart when it is given 10013
/// with others. Those above 1000 exclude each other, every 10000 are a tenant's.
struct Doubling {
    gate: Arc<Semaphore>,
    batches: Arc<Mutex<Vec<Vec<usize>>>>,
}

impl BatchJob for Doubling {
    type Item = usize;
    type Output = usize;
    const BATCH_MAX: usize = 8;
    const WORKERS: usize = 3;
    const TENANT_BATCHES_MAX: usize = 2;
    const NAME: &'static str = "double";

    fn tenant(number: &usize) -> ClientId {
        Uuid::from_u128((*number / 10_000) as u128).into()
    }

    fn exclusive_key(number: &usize) -> Option<Uuid> {
        (*number > 1_000 && *number < 10_000).then(Uuid::nil)
    }

    async fn run(
        &self,
        _: &mut HeldConnection,
        numbers: &[usize],
    ) -> Result<Vec<usize>, RunSingly> {
        self.batches.lock().unwrap().push(numbers.to_vec());
        assert!(!numbers.contains(&99), "unlucky");
        if numbers.len() > 1 && numbers.contains(&10_013) {
            return Err(RunSingly);
        }
        self.gate.acquire().await.unwrap().forget();
        Ok(numbers.iter().map(|number| 2 * number).collect())
    }
}

/// The same, with one batch of a tenant at a time.
struct InTurns(Doubling);

impl BatchJob for InTurns {
    type Item = usize;
    type Output = usize;
    const BATCH_MAX: usize = Doubling::BATCH_MAX;
    const WORKERS: usize = Doubling::WORKERS;
    const TENANT_BATCHES_MAX: usize = 1;
    const NAME: &'static str = Doubling::NAME;

    fn tenant(number: &usize) -> ClientId {
        Doubling::tenant(number)
    }

    async fn run(
        &self,
        connection: &mut HeldConnection,
        numbers: &[usize],
    ) -> Result<Vec<usize>, RunSingly> {
        self.0.run(connection, numbers).await
    }
}

struct Bench<J: BatchJob = Doubling> {
    batcher: Arc<Batcher<J>>,
    gate: Arc<Semaphore>,
    batches: Arc<Mutex<Vec<Vec<usize>>>>,
}

impl Bench {
    fn new(permits: usize) -> Self {
        Self::with(permits, |job| job)
    }
}

impl<J: BatchJob<Item = usize, Output = usize>> Bench<J> {
    fn with(permits: usize, job: impl FnOnce(Doubling) -> J) -> Self {
        let (gate, batches) = (Arc::new(Semaphore::new(permits)), Arc::default());
        let job = job(Doubling { gate: Arc::clone(&gate), batches: Arc::clone(&batches) });
        let connect = |_| (PgConnectOptions::new(), Session::default());
        let db = Pool::new(&Database::default(), &Clock::system(), connect, Vec::new());
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
            self.settle().await;
        }
        submitted
    }

    /// Lets the workers get as far as they can.
    async fn settle(&self) {
        for _ in 0..8 {
            yield_now().await;
        }
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
    assert_eq!(bench.sizes(), [1, 4], "the second worker waited for half a batch");
    bench.gate.add_permits(17);
    let doubled: Vec<_> = (0..17).map(|number| 2 * number).collect();
    assert_eq!(outputs(submitted).await, doubled);
    assert_eq!(bench.sizes(), [1, 4, 8, 4]);
}

#[tokio::test]
async fn a_tenant_with_full_batches_leaves_a_worker_to_others() {
    let bench = Bench::new(0);
    let submitted = bench.submit(0..17).await;
    let other = bench.submit([10_001]).await;
    assert_eq!(bench.sizes(), [1, 4, 1], "it waited for a batch of the first tenant");
    bench.gate.add_permits(17);
    assert_eq!(outputs(other).await, [20_002]);
    assert_eq!(outputs(submitted).await.len(), 17);
}

#[tokio::test]
async fn items_of_one_key_never_share_a_batch() {
    let bench = Bench::new(0);
    let busy = bench.submit(BUSY).await;
    let submitted = bench.submit([1_001, 2, 1_002, 3, 1_003]).await;
    bench.gate.add_permits(17);
    assert_eq!(outputs(submitted).await, [2_002, 4, 2_004, 6, 2_006]);
    assert_eq!(outputs(busy).await, BUSY.map(|number| 2 * number));
    let batches = bench.batches.lock().unwrap();
    assert_eq!(batches[BUSY.len()..], [vec![1_001, 2, 3], vec![1_002], vec![1_003]]);
}

#[tokio::test]
async fn items_of_two_tenants_never_share_a_batch() {
    let bench = Bench::new(0);
    let busy = bench.submit(BUSY).await;
    let submitted = bench.submit([2, 10_001, 3, 20_001, 10_002]).await;
    bench.gate.add_permits(17);
    assert_eq!(outputs(submitted).await, [4, 20_002, 6, 40_002, 20_004]);
    assert_eq!(outputs(busy).await, BUSY.map(|number| 2 * number));
    let batches = bench.batches.lock().unwrap();
    assert_eq!(batches[BUSY.len()..], [vec![2, 3], vec![10_001, 10_002], vec![20_001]]);
}

#[tokio::test]
async fn a_tenant_with_a_batch_under_way_leaves_the_other_worker_to_others() {
    let bench = Bench::new(0);
    let submitted = bench.submit([1, 2]).await;
    assert_eq!(bench.sizes(), [1], "the second one waits for the first");
    let other = bench.submit([10_001]).await;
    assert_eq!(*bench.batches.lock().unwrap(), [vec![1], vec![10_001]]);
    bench.gate.add_permits(3);
    assert_eq!(outputs(submitted).await, [2, 4]);
    assert_eq!(outputs(other).await, [20_002]);
    // Its end lets the next one go.
    let bench = Bench::new(0);
    let submitted = bench.submit([1, 2, 3]).await;
    bench.gate.add_permits(1);
    while bench.sizes().len() < 2 {
        yield_now().await;
    }
    assert_eq!(bench.sizes(), [1, 2]);
    bench.gate.add_permits(1);
    assert_eq!(outputs(submitted).await, [2, 4, 6]);
}

#[tokio::test]
async fn an_idle_worker_takes_what_a_busy_one_has_received() {
    let bench = Bench::new(0);
    let busy = bench.submit(BUSY).await;
    let submitted = bench.submit([2, 10_001]).await;
    bench.gate.add_permits(1);
    bench.settle().await;
    assert_eq!(bench.batches.lock().unwrap()[3..], [vec![2]], "one batch is as slow as the others");
    bench.gate.add_permits(1);
    bench.settle().await;
    assert_eq!(bench.batches.lock().unwrap()[4..], [vec![10_001]], "it waits for no other tenant");
    bench.gate.add_permits(3);
    assert_eq!(outputs(submitted).await, [4, 20_002]);
    assert_eq!(outputs(busy).await, BUSY.map(|number| 2 * number));
}

#[tokio::test]
async fn a_tenant_in_turns_leaves_a_worker_to_others_however_much_it_sends() {
    let bench = Bench::with(0, InTurns);
    let submitted = bench.submit(0..20).await;
    assert_eq!(bench.sizes(), [1], "the others wait for the first, and fill two batches");
    assert_eq!(bench.batcher.waiting(), 19);
    let other = bench.submit([10_001]).await;
    assert_eq!(*bench.batches.lock().unwrap(), [vec![0], vec![10_001]]);
    bench.gate.add_permits(5);
    let doubled: Vec<_> = (0..20).map(|number| 2 * number).collect();
    assert_eq!(outputs(submitted).await, doubled);
    assert_eq!(outputs(other).await, [20_002]);
    assert_eq!(bench.sizes()[2..], [8, 8, 3]);
    assert_eq!(bench.batcher.waiting(), 0);
}

#[tokio::test]
async fn items_of_a_batch_that_falls_apart_run_alone_and_hold_up_nobody() {
    let bench = Bench::new(0);
    // All workers are busy, and the rest of each tenant waits for them.
    let busy = bench.submit(BUSY).await;
    let submitted = bench.submit([10_013, 10_014, 10_015, 20_001, 20_002]).await;
    bench.gate.add_permits(2);
    while bench.sizes().len() < 8 {
        yield_now().await;
    }
    let batches = bench.batches.lock().unwrap().clone();
    assert_eq!(batches[3], [10_013, 10_014, 10_015], "it fell apart");
    assert!(batches[4..].contains(&vec![20_001, 20_002]), "{batches:?}");
    for alone in [10_013, 10_014, 10_015] {
        assert!(batches[4..].contains(&vec![alone]), "{batches:?}");
    }
    // From now on its items are alone at once.
    let later = bench.submit([10_016, 10_017]).await;
    while bench.sizes().len() < 10 {
        yield_now().await;
    }
    assert_eq!(bench.sizes()[8..], [1, 1]);
    bench.gate.add_permits(100);
    assert_eq!(outputs(submitted).await, [20_026, 20_028, 20_030, 40_002, 40_004]);
    assert_eq!(outputs(later).await, [20_032, 20_034]);
    assert_eq!(outputs(busy).await, BUSY.map(|number| 2 * number));
}

fn is_by_sender(error: &Error) -> bool {
    matches!(error, Error::Failed(failure) if failure.refusal().by_sender())
}

#[tokio::test]
async fn a_full_queue_refuses_and_loses_nothing() {
    let bench = Bench::new(0);
    let taken = bench.submit(BUSY).await;
    let waiting = bench.submit([5; TENANT_QUEUE_MAX]).await;
    let refused = bench.batcher.submit(7).await.unwrap_err();
    assert!(refused.is_unavailable() && is_by_sender(&refused));
    // One tenant leaves room for others.
    let of_other = bench.submit([10_005; QUEUE_MAX - TENANT_QUEUE_MAX]).await;
    let refused = bench.batcher.submit(20_005).await.unwrap_err();
    assert!(refused.is_unavailable() && !is_by_sender(&refused));
    bench.gate.add_permits(QUEUE_MAX);
    assert_eq!(outputs(taken).await, BUSY.map(|number| 2 * number));
    assert_eq!(outputs(waiting).await.len(), TENANT_QUEUE_MAX);
    assert_eq!(outputs(of_other).await.len(), QUEUE_MAX - TENANT_QUEUE_MAX);
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
        yield_now().await;
    }
}

/// The queue's end that two workers share, and the batches that they began.
struct SharedQueue {
    receiver: tokio::sync::Mutex<SharedReceiver<Doubling>>,
    running: Arc<Running>,
    begun: RefCell<Vec<Vec<usize>>>,
}

impl SharedQueue {
    /// The next batch. Who is impatient gives up the first wait for it, as an idle worker does.
    async fn next(&self, is_impatient: bool) -> Option<(RunningBatch, Vec<Pending<Doubling>>)> {
        if is_impatient {
            let next = pin!(next_batch(&self.receiver, &self.running));
            let patience = pin!(yield_now());
            if let Either::Left((next, _)) = select(next, patience).await {
                return next;
            }
        }
        next_batch(&self.receiver, &self.running).await
    }

    /// A worker whose batches take a while.
    async fn work(self: Rc<Self>, is_impatient: bool) {
        while let Some((running, batch)) = self.next(is_impatient).await {
            self.begun.borrow_mut().push(batch.iter().map(|pending| pending.item).collect());
            yield_now().await;
            drop(running);
        }
    }
}

/// Queues numbers, further ones later, and no more.
async fn queue_twice(queue: mpsc::Sender<Pending<Doubling>>, [first, later]: [&[usize]; 2]) {
    let add = |numbers: &[usize]| {
        for &item in numbers {
            let (scope, (reply, _)) = (TraceScope::current(), oneshot::channel());
            assert!(queue.try_send(Pending { item, scope, reply, _permit: None }).is_ok());
        }
    };
    add(first);
    yield_now().await;
    add(later);
}

fn two_workers(numbers: [&'static [usize]; 2]) -> TaskSet {
    let (queue, receiver) = mpsc::channel(QUEUE_MAX);
    let receiver = tokio::sync::Mutex::new(SharedReceiver { receiver, pending: Vec::new() });
    let (running, begun) = (Arc::default(), RefCell::default());
    let shared = Rc::new(SharedQueue { receiver, running, begun });
    let tasks: Vec<Task> = vec![
        Box::pin(Rc::clone(&shared).work(true)),
        Box::pin(Rc::clone(&shared).work(false)),
        Box::pin(queue_twice(queue, numbers)),
    ];
    let check = Box::new(move || {
        let begun = shared.begun.borrow();
        let is_of_one = |batch: &Vec<usize>| {
            batch.iter().all(|number| Doubling::tenant(number) == Doubling::tenant(&batch[0]))
        };
        assert!(begun.iter().all(is_of_one), "{begun:?}");
        let mut taken = begun.concat();
        taken.sort_by_key(|number| number / 10_000);
        assert_eq!(taken, numbers.concat(), "each once, the oldest of a tenant first");
    });
    TaskSet { tasks, check }
}

#[test]
fn in_every_order_of_workers_and_callers_each_item_is_taken_once() {
    const ITEMS: [[&[usize]; 2]; 2] = [[&[1], &[2, 10_001]], [&[1], &[2, 3, 4, 5, 6]]];
    for numbers in ITEMS {
        assert!(in_every_order(|| two_workers(numbers)) > 1_000);
    }
}
