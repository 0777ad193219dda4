//! The check of the books as background work: a round goes over all of them, piece by piece, by
//! whichever edge has claimed it.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::check::{Page, check};
use super::settled;
use crate::Core;
use crate::platform::error::Result;

/// Time from the end of a round to the begin of the next, in seconds.
const ROUND_SECONDS: i32 = 60 * 60;
/// Time for which one edge has the round, in seconds: more than a piece takes.
const CLAIM_SECONDS: i32 = 120;
/// Time after which a piece ends with the page at hand.
const PIECE: Duration = Duration::from_secs(5);

/// A round that this edge has claimed.
struct Round {
    /// End of the claim, after which the round may be another edge's.
    claimed_until: DateTime<Utc>,
    place: Option<String>,
    checked: i64,
    problems: i64,
    first_problem: Option<String>,
}

impl Core {
    /// Checks the next piece of the books, if a round is due and no other edge has it.
    ///
    /// # Errors
    /// When the database cannot be used; the next run goes on where this one began.
    pub async fn check_books(&self) -> Result<()> {
        let claimed = sqlx::query_as!(
            Round,
            "update ledger_check set claimed_until = now() + make_interval(secs => $1::int) \
             where claimed_until <= now() and due_at <= now() \
             returning claimed_until, place, checked, problems, first_problem",
            CLAIM_SECONDS,
        )
        .fetch_optional(&self.db)
        .await?;
        let Some(mut round) = claimed else { return Ok(()) };
        let began = self.clock.monotonic_ns();
        let is_over = || {
            let took = self.clock.monotonic_ns().saturating_sub(began);
            Duration::from_nanos(took) >= PIECE
        };
        loop {
            match settled::settle(self).await {
                Ok(true) if is_over() => return self.keep_place(&round).await,
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    // The books are checked all the same.
                    tracing::warn!(%error, "the books could not be settled");
                    break;
                }
            }
        }
        loop {
            let page = check(self, round.place.as_deref()).await?;
            round.add(page);
            if round.place.is_none() {
                return self.end_round(&round).await;
            }
            if is_over() {
                return self.keep_place(&round).await;
            }
        }
    }

    async fn keep_place(&self, round: &Round) -> Result<()> {
        sqlx::query!(
            "update ledger_check set claimed_until = now(), place = $2, checked = $3, \
                 problems = $4, first_problem = $5 where claimed_until = $1",
            round.claimed_until,
            round.place,
            round.checked,
            round.problems,
            round.first_problem,
        )
        .execute(&self.db)
        .await?;
        Ok(())
    }

    async fn end_round(&self, round: &Round) -> Result<()> {
        let treasury = settled::treasury(self).await?;
        sqlx::query!(
            "update ledger_check set claimed_until = now(), \
                 due_at = now() + make_interval(secs => $2::int), place = null, checked = 0, \
                 problems = 0, first_problem = null, finished_at = now(), finished_checked = $3, \
                 finished_problems = $4, finished_first_problem = $5, treasury = $6 \
             where claimed_until = $1",
            round.claimed_until,
            ROUND_SECONDS,
            round.checked,
            round.problems,
            round.first_problem,
            treasury,
        )
        .execute(&self.db)
        .await?;
        if let Some(problem) = &round.first_problem {
            tracing::error!(problems = round.problems, problem, "the books are off");
        }
        Ok(())
    }
}

impl Round {
    fn add(&mut self, page: Page) {
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.checked = self.checked.saturating_add(count(page.checked));
        self.problems = self.problems.saturating_add(count(page.problems.len()));
        if self.first_problem.is_none() {
            let first = page.problems.into_iter().next();
            self.first_problem = first.map(|found| format!("{}: {}", found.subject, found.problem));
        }
        self.place = page.next;
    }
}
