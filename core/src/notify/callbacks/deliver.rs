//! The worker that delivers: claims what is due, attempts it, settles it. The three overlap, so
//! that attempts wait neither for the queue nor for its disk, and one statement claims or settles
//! many.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::Message;
use super::lane::{CLIENT_IN_FLIGHT_MAX, Lane};
use super::outbound::{Failure, Outcome};
use super::queue::{Claimed, Room, Settled, claim, settle};
use super::target::{Reach, judge};
use crate::Core;
use crate::platform::crypto::Secret;
use crate::platform::error::Result;
use crate::tenancy::tenants::Tenant;
use rampart_types::ClientId;

/// How often the queue is looked at; a first attempt must start within 1 s of its event.
const POLL: Duration = Duration::from_millis(250);
/// Most deliveries that one edge holds at once: under way, claimed ahead for hosts that answer
/// quickly, or waiting to be settled.
const CLAIMED_MAX: usize = 512;
/// Most attempts that are settled in one statement.
const SETTLED_TOGETHER_MAX: usize = 256;
/// Statements that settle at once: while one waits for the disk another one gathers.
const SETTLING_MAX: usize = 2;
/// How long a stopping edge waits for attempts under way. What is cut off is repeated when its
/// lease ends.
const STOP_MAX: Duration = Duration::from_secs(5);

impl Core {
    /// One turn of the worker: attempts what is due now, for each client as much as it has room
    /// for, and waits for all of it. Returns the number of attempts.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn deliver_due(self: &Arc<Self>) -> Result<usize> {
        let mut dispatcher = Dispatcher::new(Arc::clone(self));
        let room = dispatcher.room();
        let claimed = claim(self, &room).await?;
        let count = claimed.len();
        dispatcher.take(claimed, &room);
        while dispatcher.step().await {}
        Ok(count)
    }

    /// Delivers until `stop` turns true.
    pub(crate) async fn deliver(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut dispatcher = Dispatcher::new(self);
        let mut ticks = interval(POLL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let look = tokio::select! {
                _ = ticks.tick() => true,
                true = dispatcher.step() => dispatcher.is_hungry,
                _ = stop.wait_for(|stop| *stop) => break,
            };
            if look {
                dispatcher.look();
            }
        }
        let _ = timeout(STOP_MAX, async { while dispatcher.step().await {} }).await;
    }
}

/// What one edge holds of the queue.
struct Dispatcher {
    core: Arc<Core>,
    lanes: HashMap<ClientId, Lane>,
    running: JoinSet<Attempted>,
    /// Whose attempt a task is, so that one that panics leaves its lane too.
    owners: HashMap<Id, ClientId>,
    /// What has ended and is not being written yet.
    ended: Vec<Settled>,
    settling: JoinSet<()>,
    /// The look at the queue; one at most.
    looking: JoinSet<(Result<Vec<Claimed>>, Room)>,
    /// Whether the queue may hold more for somebody who could take it.
    is_hungry: bool,
    /// Whether the last look took as much as there was room for in all.
    is_cut: bool,
}

/// An attempt that has ended.
struct Attempted {
    outcome: Outcome,
    took: Duration,
    /// `None` when it could not be told what to write: the lease ends by itself.
    settled: Option<Settled>,
}

impl Dispatcher {
    fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            lanes: HashMap::new(),
            running: JoinSet::new(),
            owners: HashMap::new(),
            ended: Vec::new(),
            settling: JoinSet::new(),
            looking: JoinSet::new(),
            is_hungry: false,
            is_cut: false,
        }
    }

    /// How much may be claimed now.
    fn room(&mut self) -> Room {
        let ahead: usize = self.lanes.values().map(Lane::ahead).sum();
        let held = ahead + self.running.len() + self.ended.len();
        Room {
            total: CLAIMED_MAX.saturating_sub(held),
            each: CLIENT_IN_FLIGHT_MAX,
            clients: self.lanes.iter_mut().map(|(client, lane)| (*client, lane.ask())).collect(),
        }
    }

    /// Starts a look at the queue, unless one is under way or nothing could be taken.
    fn look(&mut self) {
        if !self.looking.is_empty() {
            return;
        }
        self.is_hungry = false;
        let room = self.room();
        self.is_cut = room.total == 0;
        if !self.is_cut {
            let core = Arc::clone(&self.core);
            self.looking.spawn(async move { (claim(&core, &room).await, room) });
        }
    }

    /// Waits for one thing to end and does what follows from it; false when nothing is under way.
    /// May be dropped half way.
    async fn step(&mut self) -> bool {
        tokio::select! {
            Some(ended) = self.running.join_next_with_id() => match ended {
                Ok((task, attempted)) => self.leave(task, Some(attempted)),
                Err(error) => {
                    // Its lease ends by itself; the attempt is then repeated.
                    tracing::error!(%error, "a delivery attempt broke off");
                    self.leave(error.id(), None);
                }
            },
            Some(looked) = self.looking.join_next() => match looked {
                Ok((Ok(claimed), room)) => self.take(claimed, &room),
                Ok((Err(error), _)) => {
                    tracing::warn!(%error, "the delivery queue could not be read");
                }
                Err(error) => tracing::error!(%error, "a look at the delivery queue broke off"),
            },
            Some(_) = self.settling.join_next() => {}
            else => return false,
        }
        self.settle();
        true
    }

    /// Takes what was claimed and starts as much of it as has a place.
    fn take(&mut self, claimed: Vec<Claimed>, room: &Room) {
        self.is_cut = claimed.len() >= room.total;
        let clients: Vec<ClientId> = claimed.iter().map(|claimed| claimed.client).collect();
        for claimed in claimed {
            self.lanes.entry(claimed.client).or_default().take(claimed);
        }
        for client in clients {
            self.start(client);
        }
    }

    /// Starts what a client has places for.
    fn start(&mut self, client: ClientId) {
        let Some(lane) = self.lanes.get_mut(&client) else { return };
        while let Some(claimed) = lane.start(self.core.clock.now()) {
            let core = Arc::clone(&self.core);
            let task = self.running.spawn(async move { attempt(&core, &claimed).await });
            self.owners.insert(task.id(), client);
        }
    }

    fn leave(&mut self, task: Id, attempted: Option<Attempted>) {
        let ended = attempted.as_ref().map(|attempted| (attempted.outcome, attempted.took));
        self.ended.extend(attempted.and_then(|attempted| attempted.settled));
        let Some(client) = self.owners.remove(&task) else { return };
        let Some(lane) = self.lanes.get_mut(&client) else { return };
        lane.leave(ended);
        self.is_hungry |= lane.runs_low() && (lane.may_have_more() || self.is_cut);
        if lane.is_idle() {
            self.lanes.remove(&client);
        } else {
            self.start(client);
        }
    }

    /// Writes what has ended, if nothing else is being written that it could wait for.
    fn settle(&mut self) {
        while !self.ended.is_empty() && self.settling.len() < SETTLING_MAX {
            let count = self.ended.len().min(SETTLED_TOGETHER_MAX);
            let settled: Vec<Settled> = self.ended.drain(..count).collect();
            let core = Arc::clone(&self.core);
            self.settling.spawn(async move {
                if let Err(error) = settle(&core, settled).await {
                    tracing::warn!(%error, count, "attempts could not be written");
                }
            });
        }
    }
}

/// Makes one attempt.
async fn attempt(core: &Core, claimed: &Claimed) -> Attempted {
    let lag = core.clock.now() - claimed.due_at;
    let began = core.clock.monotonic_ns();
    let outcome = send(core, claimed).await.unwrap_or_else(|error| {
        tracing::error!(%error, delivery = %claimed.delivery, "a callback was not sent");
        Outcome::Failed(Failure::Unsigned)
    });
    let took = Duration::from_nanos(core.clock.monotonic_ns().saturating_sub(began));
    let first = (claimed.attempts == 0).then(|| lag.to_std().unwrap_or_default());
    core.metrics.callback(outcome.name(), first);
    let settled = Settled::of(core, claimed, outcome)
        .inspect_err(|error| tracing::warn!(%error, "an attempt could not be written"));
    Attempted { outcome, took, settled: settled.ok() }
}

async fn send(core: &Core, claimed: &Claimed) -> Result<Outcome> {
    if !claimed.wanted {
        return Ok(Outcome::Unwanted);
    }
    let Some(tenant) = tenant(core, claimed.client).await? else {
        return Ok(Outcome::Failed(Failure::Unsigned));
    };
    let reach = if tenant.is_test() { Reach::PublicOrLoopback } else { Reach::Public };
    let Ok(url) = judge(&claimed.url, reach) else {
        return Ok(Outcome::Failed(Failure::Forbidden));
    };
    let now = core.clock.now();
    let message =
        Message::new(claimed.event, &claimed.kind, claimed.happened_at, &claimed.data, now)?;
    let live = tenant.webhook_secrets.iter().filter(|secret| secret.is_live(now));
    let secrets = live.map(|timed| &timed.secret).collect::<Vec<&Secret>>();
    let Some(signatures) = message.signatures(secrets)? else {
        return Ok(Outcome::Failed(Failure::Unsigned));
    };
    Ok(core.outbound.post(url, reach, message, &signatures, now).await)
}

/// The client as of now; one that is newer than the snapshot is looked for in the database.
async fn tenant(core: &Core, client: ClientId) -> Result<Option<Arc<Tenant>>> {
    if let Some(tenant) = core.snapshots.current().tenants.get(&client) {
        return Ok(Some(Arc::clone(tenant)));
    }
    core.refresh().await?;
    Ok(core.snapshots.current().tenants.get(&client).map(Arc::clone))
}
