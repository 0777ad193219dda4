//! Readers of the catalogue, who must never notice anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use rampart_tests::caller::Caller;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// Reads that edges answer from memory.
const PATHS: [&str; 3] = [
    "/api/v1/prices",
    "/api/v1/system/currency-pairs",
    "/api/v2/buy/payment-methods?countryCode=nl",
];
/// Pause of a reader between two reads.
const PAUSE: Duration = Duration::from_millis(50);

/// A reader at each edge. Dropping them ends them.
pub(crate) struct Readers {
    counts: Arc<Counts>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Counts {
    answers: AtomicUsize,
    others: AtomicUsize,
}

impl Readers {
    /// Begins to read, as this partner at each of its places.
    pub(crate) fn start(places: impl Iterator<Item = Caller>) -> Self {
        let counts = Arc::<Counts>::default();
        let tasks = places.map(|place| tokio::spawn(read(place, Arc::clone(&counts)))).collect();
        Self { counts, tasks }
    }

    /// Answers so far.
    pub(crate) fn answers(&self) -> usize {
        self.counts.answers.load(Ordering::Relaxed)
    }

    /// Answers other than 200 so far, and requests without any.
    pub(crate) fn others(&self) -> usize {
        self.counts.others.load(Ordering::Relaxed)
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn read(place: Caller, counts: Arc<Counts>) {
    let mut ticks = interval(PAUSE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for path in PATHS.into_iter().cycle() {
        ticks.tick().await;
        let answer = place.request(Method::GET, path).try_send().await;
        counts.answers.fetch_add(1, Ordering::Relaxed);
        if !answer.as_ref().is_ok_and(|answer| answer.status() == 200) {
            counts.others.fetch_add(1, Ordering::Relaxed);
            println!("{path} was answered {answer:?}");
        }
    }
}
