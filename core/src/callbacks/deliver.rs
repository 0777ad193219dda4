//! The worker that delivers: claims what is due, attempts it, settles it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::Message;
use super::outbound::{Failure, Outcome};
use super::queue::{Claimed, Room, claim, settle};
use super::target::{Reach, judge};
use crate::Core;
use crate::error::Result;
use crate::secrets::Secret;
use crate::tenants::Tenant;
use crate::types::ClientId;

/// How often the queue is looked at; a first attempt must start within 1 s of its event.
const POLL: Duration = Duration::from_millis(250);
/// Most attempts of one edge at once.
const IN_FLIGHT_MAX: usize = 512;
/// Most attempts to one client at once, so that no client can take all of them.
const CLIENT_IN_FLIGHT_MAX: usize = 8;
/// The same for a client whose host did not answer last time: hundreds of them may hang for 15 s
/// an attempt before the others wait. The first answer gives it its places back.
const HANGING_IN_FLIGHT_MAX: usize = 1;
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
        let claimed = dispatcher.fill().await?;
        while dispatcher.finish_one().await {}
        Ok(claimed)
    }

    /// Delivers until `stop` turns true.
    pub(crate) async fn deliver(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut dispatcher = Dispatcher::new(self);
        let mut ticks = interval(POLL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut more = false;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                true = dispatcher.finish_one() => if !more { continue },
                _ = stop.wait_for(|stop| *stop) => break,
            }
            more = match dispatcher.fill().await {
                Ok(claimed) => claimed > 0,
                Err(error) => {
                    tracing::warn!(%error, "the delivery queue could not be read");
                    false
                }
            };
        }
        let _ = timeout(STOP_MAX, async { while dispatcher.finish_one().await {} }).await;
    }
}

/// What one edge has in flight.
struct Dispatcher {
    core: Arc<Core>,
    lanes: HashMap<ClientId, Lane>,
    running: JoinSet<Outcome>,
    /// Whose attempt a task is, so that one that panics leaves its lane too.
    owners: HashMap<Id, ClientId>,
}

/// One client's place in it. Only clients with something in flight, or hanging, have one.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    in_flight: usize,
    hangs: bool,
}

impl Lane {
    fn room(self) -> usize {
        let bound = if self.hangs { HANGING_IN_FLIGHT_MAX } else { CLIENT_IN_FLIGHT_MAX };
        bound.saturating_sub(self.in_flight)
    }
}

impl Dispatcher {
    fn new(core: Arc<Core>) -> Self {
        Self { core, lanes: HashMap::new(), running: JoinSet::new(), owners: HashMap::new() }
    }

    /// Claims as much as there is room for and starts it.
    async fn fill(&mut self) -> Result<usize> {
        let room = Room {
            total: IN_FLIGHT_MAX.saturating_sub(self.running.len()),
            each: CLIENT_IN_FLIGHT_MAX,
            clients: self.lanes.iter().map(|(client, lane)| (*client, lane.room())).collect(),
        };
        if room.total == 0 {
            return Ok(0);
        }
        let claimed = claim(&self.core, &room).await?;
        let count = claimed.len();
        for claimed in claimed {
            self.lanes.entry(claimed.client).or_default().in_flight += 1;
            let core = Arc::clone(&self.core);
            let client = claimed.client;
            let task = self.running.spawn(async move { attempt(&core, &claimed).await });
            self.owners.insert(task.id(), client);
        }
        Ok(count)
    }

    /// Waits for one attempt to end; false when none is under way. May be dropped half way.
    async fn finish_one(&mut self) -> bool {
        let Some(ended) = self.running.join_next_with_id().await else { return false };
        let (task, hung) = match ended {
            Ok((task, outcome)) => (task, outcome.hung()),
            Err(error) => {
                // Its lease ends by itself; the attempt is then repeated.
                tracing::error!(%error, "a delivery attempt broke off");
                (error.id(), false)
            }
        };
        if let Some(client) = self.owners.remove(&task) {
            self.leave(client, hung);
        }
        true
    }

    fn leave(&mut self, client: ClientId, hung: bool) {
        let Some(lane) = self.lanes.get_mut(&client) else { return };
        lane.in_flight = lane.in_flight.saturating_sub(1);
        lane.hangs = hung;
        if lane.in_flight == 0 && !hung {
            self.lanes.remove(&client);
        }
    }
}

/// Makes one attempt and settles it.
async fn attempt(core: &Core, claimed: &Claimed) -> Outcome {
    let lag = core.clock.now() - claimed.due_at;
    let outcome = send(core, claimed).await.unwrap_or_else(|error| {
        tracing::error!(%error, delivery = %claimed.delivery, "a callback was not sent");
        Outcome::Failed(Failure::Unsigned)
    });
    let first = (claimed.attempts == 0).then(|| lag.to_std().unwrap_or_default());
    core.metrics.callback(outcome.name(), first);
    if let Err(error) = settle(core, claimed, outcome).await {
        tracing::warn!(%error, delivery = %claimed.delivery, "an attempt could not be written");
    }
    outcome
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_narrows_while_its_host_hangs() {
        let lane = Lane { in_flight: 3, hangs: false };
        assert_eq!(lane.room(), 5);
        assert_eq!(Lane { hangs: true, ..lane }.room(), 0);
        assert_eq!(Lane { in_flight: 0, hangs: true }.room(), 1);
    }
}
