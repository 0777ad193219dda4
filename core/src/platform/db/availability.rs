//! The availability of Postgres, as a probe on a connection of its own sees it.
//!
//! A server that hangs accepts statements and never answers. Without the probe every request would
//! find that out by itself, after its whole deadline.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection, Row as _};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::platform::clock::Clock;
use crate::platform::error::sqlstate::is_unavailable;

/// Interval at which a statement that runs looks whether Postgres is still there.
const LOOK: Duration = Duration::from_millis(100);

/// The state that the probe keeps and every statement reads.
#[derive(Debug)]
pub(super) struct Availability {
    clock: Clock,
    /// Longest time from the begin of an outage for which anybody waits for its end.
    patience_max: Duration,
    /// Monotonic nanoseconds at which Postgres went away; `None` while it answers.
    away_since: watch::Sender<Option<u64>>,
    /// Monotonic nanoseconds at which it last came back; 0 if it never was away.
    back_since: AtomicU64,
}

/// The reason a future was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenUp {
    /// Its own time is over.
    Deadline,
    /// Postgres is away.
    Away,
}

impl Availability {
    /// Available until the probe says otherwise.
    pub(super) fn new(clock: Clock, patience_max: Duration) -> Self {
        let (away_since, back_since) = (watch::Sender::new(None), AtomicU64::new(0));
        Self { clock, patience_max, away_since, back_since }
    }

    /// True while Postgres does not answer.
    pub(super) fn is_away(&self) -> bool {
        self.away_since.borrow().is_some()
    }

    /// Waits until Postgres answers; `false` when it has not within `patience`, or the longest one,
    /// from the moment it went away. An outage that is older costs no request any time.
    pub(super) async fn wait(&self, patience: Duration) -> bool {
        let Some(since) = *self.away_since.borrow() else { return true };
        let away = Duration::from_nanos(self.clock.monotonic_ns().saturating_sub(since));
        let patience = patience.min(self.patience_max);
        let mut state = self.away_since.subscribe();
        let back = timeout(patience.saturating_sub(away), state.wait_for(Option::is_none)).await;
        back.is_ok()
    }

    /// The time by which a test has moved the clock.
    pub(super) fn time_offset(&self) -> TimeDelta {
        self.clock.offset()
    }

    /// Monotonic nanoseconds.
    pub(super) fn now_ns(&self) -> u64 {
        self.clock.monotonic_ns()
    }

    /// The time since [`Availability::now_ns`] was `began`.
    pub(super) fn since(&self, began: u64) -> Duration {
        Duration::from_nanos(self.now_ns().saturating_sub(began))
    }

    /// The future's output, unless `deadline` passes or Postgres goes away before.
    ///
    /// # Errors
    /// The reason it was given up.
    pub(super) async fn limit<T>(
        &self,
        deadline: Duration,
        future: impl Future<Output = T>,
    ) -> Result<T, GivenUp> {
        let mut future = std::pin::pin!(future);
        let mut left = deadline;
        loop {
            let step = left.min(LOOK);
            if let Ok(output) = timeout(step, future.as_mut()).await {
                return Ok(output);
            }
            left -= step;
            if left.is_zero() {
                return Err(GivenUp::Deadline);
            }
            if self.is_away() {
                return Err(GivenUp::Away);
            }
        }
    }

    /// True if a connection of this age saw the last outage: it may be half open.
    pub(super) fn has_outlived_outage(&self, age: Duration) -> bool {
        let back = self.back_since.load(Ordering::Acquire);
        let since = self.clock.monotonic_ns().saturating_sub(back);
        back > 0 && age >= Duration::from_nanos(since)
    }

    /// Records what the probe saw.
    pub(super) fn record(&self, answers: bool) {
        let now = self.clock.monotonic_ns();
        self.away_since.send_if_modified(|away_since| {
            let changed = away_since.is_some() == answers;
            if changed && answers {
                // Before the state: who sees that it is back drops connections from before.
                self.back_since.store(now.max(1), Ordering::Release);
                tracing::info!("Postgres answers again");
            } else if changed {
                tracing::error!("Postgres does not answer");
            }
            if changed {
                *away_since = (!answers).then_some(now);
            }
            changed
        });
    }
}

/// A connection of its own that asks Postgres for the time.
#[derive(Debug)]
pub(super) struct Probe {
    options: PgConnectOptions,
    clock: Clock,
    /// Longest time for an answer.
    patience: Duration,
    connection: Option<PgConnection>,
}

impl Probe {
    /// A probe that gives an answer this much time.
    pub(super) fn new(options: PgConnectOptions, clock: Clock, patience: Duration) -> Self {
        Self { options, clock, patience, connection: None }
    }

    /// True if Postgres answers. A connection that was ended is replaced at once; one that does not
    /// answer is dropped.
    pub(super) async fn answers(&mut self) -> bool {
        let Ok(answer) = timeout(self.patience, self.ask()).await else {
            self.connection = None;
            return false;
        };
        match answer {
            Ok(()) => true,
            Err(error) => {
                self.connection = None;
                tracing::debug!(%error, "the database's probe failed");
                // A server that refuses this connection for want of room serves the others.
                !is_unavailable(&error) || is_full(&error)
            }
        }
    }

    async fn ask(&mut self) -> Result<(), sqlx::Error> {
        if let Some(connection) = &mut self.connection
            && ask(connection, &self.clock).await.is_ok()
        {
            return Ok(());
        }
        let connection = PgConnection::connect_with(&self.options).await?;
        ask(self.connection.insert(connection), &self.clock).await
    }
}

/// Asks for the database's time and brings the clock into line with it.
pub(super) async fn ask(connection: &mut PgConnection, clock: &Clock) -> Result<(), sqlx::Error> {
    let sent = clock.system_now();
    // Not prepared: a pooler may not keep it.
    let row = sqlx::raw_sql("select clock_timestamp()").fetch_one(connection).await?;
    let time: DateTime<Utc> = row.try_get(0)?;
    clock.follow(time, sent, clock.system_now());
    Ok(())
}

/// True if the server has no room for another connection.
fn is_full(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| code.starts_with("53"))
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    fn availability() -> Availability {
        Availability::new(Clock::system(), Duration::from_secs(60))
    }

    #[tokio::test]
    async fn what_is_done_in_time_is_not_given_up() {
        let done = availability().limit(Duration::from_secs(60), async { 7 }).await;
        assert_eq!(done, Ok(7));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_ends_what_would_never_end() {
        let ended = availability().limit(Duration::from_millis(250), pending::<()>()).await;
        assert_eq!(ended, Err(GivenUp::Deadline));
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_ends_what_runs_and_lets_nothing_wait_for_long() {
        let availability = availability();
        let running = availability.limit(Duration::from_secs(600), pending::<()>());
        let (ended, ()) = tokio::join!(running, async { availability.record(false) });
        assert_eq!(ended, Err(GivenUp::Away));
        assert!(!availability.wait(Duration::from_secs(1)).await);
        availability.record(true);
        assert!(availability.wait(Duration::ZERO).await);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_than_the_longest_patience() {
        let availability = Availability::new(Clock::system(), Duration::from_millis(1));
        availability.record(false);
        let waited = timeout(Duration::from_secs(1), availability.wait(Duration::MAX)).await;
        assert_eq!(waited, Ok(false));
    }

    #[tokio::test]
    async fn connections_from_before_an_outage_are_told_from_later_ones() {
        let availability = availability();
        assert!(!availability.has_outlived_outage(Duration::from_secs(600)));
        availability.record(false);
        availability.record(true);
        assert!(availability.has_outlived_outage(Duration::from_secs(600)));
        assert!(!availability.has_outlived_outage(Duration::ZERO));
    }
}
