//! The verification of the audit as background work: a round goes over the whole chain, piece by piece,
//! by whichever edge has claimed it.

use chrono::{DateTime, Utc};

use super::chain::{Anchor, Break, verify};
use crate::Core;
use crate::platform::error::Result;
use crate::platform::metrics::Measurement;

/// Time from the end of a round to the begin of the next, in seconds.
const ROUND_SECONDS: i32 = 60 * 60;
/// Time for which one edge has the round, in seconds: more than a piece takes.
const CLAIM_SECONDS: i32 = 120;
const PIECE_ROWS: i64 = 20_000;

impl Core {
    /// Verifies the next piece of the audit's chain, if a round is due and no other edge has it, and
    /// shows what the last round has found.
    ///
    /// # Errors
    /// When the database cannot be used; the next run goes on where this one began.
    pub async fn check_audit(&self) -> Result<()> {
        let claimed = sqlx::query!(
            "update audit_check set claimed_until = now() + make_interval(secs => $1::int) \
             where claimed_until <= now() and due_at <= now() \
             returning claimed_until, position, mac",
            CLAIM_SECONDS,
        )
        .fetch_optional(&self.db)
        .await?;
        if let Some(round) = claimed {
            let start = Anchor { position: round.position, mac: round.mac };
            let verified = verify(self, start, PIECE_ROWS).await?;
            if verified.complete || verified.broken.is_some() {
                self.end_audit_round(round.claimed_until, verified.broken).await?;
            } else {
                self.keep_audit_place(round.claimed_until, &verified.end).await?;
            }
        }
        self.show_audit_check().await
    }

    /// Keeps the place that the round goes on behind. After the claim has ended the round may be
    /// another edge's.
    async fn keep_audit_place(&self, claim: DateTime<Utc>, end: &Anchor) -> Result<()> {
        sqlx::query!(
            "update audit_check set claimed_until = now(), position = $2, mac = $3 \
             where claimed_until = $1",
            claim,
            end.position,
            end.mac,
        )
        .execute(&self.db)
        .await?;
        Ok(())
    }

    /// Ends the round, as [`Core::keep_audit_place`] does a piece.
    async fn end_audit_round(&self, claim: DateTime<Utc>, broken: Option<Break>) -> Result<()> {
        if let Some(Break { position, reason }) = &broken {
            tracing::error!(position, reason, "the audit's chain is broken");
        }
        let (position, reason) = broken.map(|found| (found.position, found.reason)).unzip();
        sqlx::query!(
            "update audit_check set claimed_until = now(), \
                 due_at = now() + make_interval(secs => $2::int), position = 0, mac = '', \
                 finished_at = now(), broken_position = $3, broken_reason = $4 \
             where claimed_until = $1",
            claim,
            ROUND_SECONDS,
            position,
            reason,
        )
        .execute(&self.db)
        .await?;
        Ok(())
    }

    /// Shows what the last round has found.
    pub(crate) async fn show_audit_check(&self) -> Result<()> {
        let last = sqlx::query!(
            r#"
            select broken_position is not null as "is_broken!",
                greatest(extract(epoch from now() - coalesce(finished_at, created_at)), 0)::bigint
                    as "age!"
            from audit_check
            "#,
        )
        .fetch_one(&self.db)
        .await?;
        let broken = last.is_broken.then(|| "degraded: the audit's chain is broken".to_owned());
        self.found(Measurement::Audit, broken);
        self.metrics.audit_broken.with_label_values::<&str>(&[]).set(last.is_broken.into());
        self.metrics.audit_check_age.with_label_values::<&str>(&[]).set(last.age);
        Ok(())
    }
}
