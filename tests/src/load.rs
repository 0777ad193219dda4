//! The partner at work: it quotes, confirms, and asks again with the same quote for as long as it
//! does not know the outcome.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rampart_core::platform::clock::Clock;
use sqlx::PgPool;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::answer::Answer;
use crate::buyer::{ask_quote, confirm, order_of};
use crate::caller::{Caller, Request};
use crate::deadline::until;
use crate::journal::{Differences, Journal};

/// Longest wait for progress: with every fault over, there is always some.
const PROGRESS_MAX: Duration = Duration::from_secs(60);

/// The size of a load.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Confirms in flight.
    pub workers: usize,
    /// Pause before the same request is made again.
    pub pause: Duration,
}

impl Pace {
    /// As much as an edge answers.
    pub const FULL: Self = Self { workers: 16, pause: Duration::from_millis(20) };
}

/// Workers, and the journal that they share.
pub struct Load {
    journal: Arc<Mutex<Journal>>,
    stop: watch::Sender<bool>,
    workers: Vec<JoinHandle<()>>,
}

impl Load {
    /// Begins. Each worker goes on at the next address when one fails.
    pub fn start(partner: &Caller, edges: &watch::Sender<Vec<SocketAddr>>, pace: Pace) -> Self {
        let (journal, stop) = (Arc::<Mutex<Journal>>::default(), watch::Sender::new(false));
        let worker = |number| Worker {
            partner: partner.clone(),
            edges: edges.subscribe(),
            turn: number,
            caller: None,
            journal: Arc::clone(&journal),
            stop: stop.subscribe(),
            pause: ticks(pace.pause),
            clock: Clock::system(),
        };
        let workers = (0..pace.workers).map(|number| tokio::spawn(worker(number).work())).collect();
        Self { journal, stop, workers }
    }

    /// Confirms acknowledged so far.
    pub fn acknowledged(&self) -> usize {
        lock(&self.journal).acknowledged
    }

    /// Notes an order of the same partner that was acknowledged to somebody else.
    pub fn acknowledge(&self, quote: &str, order: u64) {
        lock(&self.journal).acknowledge(quote, order);
    }

    /// Compares what is acknowledged so far with the database, while the load goes on.
    pub async fn differences(&self, db: &PgPool) -> Differences {
        let acknowledged = lock(&self.journal).acknowledged_orders();
        Differences::between(&acknowledged, db).await
    }

    /// Requests refused for now, so far.
    pub fn refused(&self) -> usize {
        lock(&self.journal).refused
    }

    /// Waits until so many confirms are acknowledged.
    pub async fn reach(&self, count: usize) {
        while self.acknowledged() < count {
            let before = self.acknowledged();
            until("a confirm is acknowledged", PROGRESS_MAX, async || {
                (self.acknowledged() > before).then_some(())
            })
            .await;
        }
    }

    /// Stops once every quote that was sent is settled; the journal.
    pub async fn finish(self) -> Journal {
        self.stop.send_replace(true);
        for worker in self.workers {
            worker.await.unwrap();
        }
        std::mem::take(&mut *lock(&self.journal))
    }
}

fn lock(journal: &Mutex<Journal>) -> MutexGuard<'_, Journal> {
    journal.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ticks(pause: Duration) -> Interval {
    let mut ticks = interval(pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// One line of confirms, one at a time.
struct Worker {
    partner: Caller,
    edges: watch::Receiver<Vec<SocketAddr>>,
    turn: usize,
    caller: Option<Caller>,
    journal: Arc<Mutex<Journal>>,
    stop: watch::Receiver<bool>,
    pause: Interval,
    clock: Clock,
}

impl Worker {
    async fn work(mut self) {
        while !*self.stop.borrow() {
            let Some(quote) = self.quote().await else { return };
            lock(&self.journal).send(&quote);
            while !self.confirm(&quote).await {
                self.pause.tick().await;
            }
        }
    }

    /// A quote; `None` when it is told to stop before there is one.
    async fn quote(&mut self) -> Option<String> {
        while !*self.stop.borrow() {
            match self.send(ask_quote).await {
                Some((answer, _)) if answer.status() == 200 => {
                    return Some(answer.json()["quote"].as_str()?.to_owned());
                }
                Some((answer, _)) => self.judge("quote", &answer),
                None => {}
            }
            self.pause.tick().await;
        }
        None
    }

    /// Asks once; `true` when the order is acknowledged.
    async fn confirm(&mut self, quote: &str) -> bool {
        let Some((answer, micros)) = self.send(|caller| confirm(caller, quote)).await else {
            lock(&self.journal).unanswered += 1;
            return false;
        };
        lock(&self.journal).answer(micros);
        if answer.status() != 200 {
            self.judge("confirm", &answer);
            return false;
        }
        lock(&self.journal).acknowledge(quote, order_of(&answer));
        true
    }

    /// An answer with its time in microseconds; `None` when the connection failed. The next
    /// request goes to the next edge then.
    async fn send(&mut self, request: impl FnOnce(&Caller) -> Request) -> Option<(Answer, u64)> {
        if self.caller.is_none() {
            let edges = self.edges.borrow_and_update();
            self.caller = Some(self.partner.at(edges[self.turn % edges.len()]));
        }
        let caller = self.caller.as_ref()?;
        let began = self.clock.monotonic_ns();
        match request(caller).try_send().await {
            Ok(answer) => Some((answer, (self.clock.monotonic_ns() - began) / 1_000)),
            Err(error) => {
                lock(&self.journal).cut += usize::from(!error.is_connect());
                self.caller = None;
                self.turn += 1;
                None
            }
        }
    }

    /// The one refusal that a fault may cause is 503, with the time to wait.
    fn judge(&self, request: &str, answer: &Answer) {
        if answer.status() != 503 || answer.header("retry-after").is_none() {
            let (status, text) = (answer.status(), answer.text());
            lock(&self.journal).complain(format!("a {request} was answered {status}: {text}"));
        } else {
            lock(&self.journal).refuse();
        }
    }
}
