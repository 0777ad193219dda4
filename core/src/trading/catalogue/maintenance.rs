//! Maintenance windows: times in which the catalogue has the enabled sides of a pair in maintenance,
//! or a payment method as not offered.

use std::collections::HashSet;

use sqlx::PgExecutor;

use super::PairStatus;
use crate::Core;
use crate::platform::error::Result;
use crate::platform::revision::catalogue_changed;

/// Pairs and payment methods of which a window runs.
#[derive(Debug)]
pub(super) struct InMaintenance {
    pairs: HashSet<String>,
    methods: HashSet<String>,
}

impl InMaintenance {
    /// Those of now, by the database's time.
    pub(super) async fn load(executor: impl PgExecutor<'_>) -> Result<Self> {
        let rows = sqlx::query!(
            "select pair, payment_method from maintenance_window \
             where not has_ended and (has_begun or starts_at <= rampart_now()) \
                 and rampart_now() < ends_at"
        )
        .fetch_all(executor)
        .await?;
        let (mut pairs, mut methods) = (HashSet::new(), HashSet::new());
        for row in rows {
            pairs.extend(row.pair);
            methods.extend(row.payment_method);
        }
        Ok(Self { pairs, methods })
    }

    /// The status of a side of a pair whose own status this is.
    pub(super) fn status(&self, pair: &str, own: PairStatus) -> PairStatus {
        match own {
            PairStatus::Enabled if self.pairs.contains(pair) => PairStatus::Maintenance,
            own => own,
        }
    }

    /// True for a payment method that is not offered meanwhile.
    pub(super) fn has_method(&self, code: &str) -> bool {
        self.methods.contains(code)
    }
}

impl Core {
    /// Raises the catalogue's revision if a window has begun or ended since an edge looked last, so
    /// that all of them load the catalogue anew: one run of a worker. Of edges that look at once,
    /// the second one waits for the rows and finds them marked.
    ///
    /// # Errors
    /// When the database cannot be written; the next run does it.
    pub async fn follow_maintenance_windows(&self) -> Result<()> {
        let mut tx = self.db.begin().await?;
        let turned = sqlx::query!(
            "update maintenance_window \
             set has_begun = true, has_ended = ends_at <= rampart_now() \
             where not has_ended and (ends_at <= rampart_now() \
                 or (not has_begun and starts_at <= rampart_now()))"
        )
        .execute(&mut *tx)
        .await?;
        if turned.rows_affected() > 0 {
            catalogue_changed(&mut tx).await?;
        }
        tx.commit().await?;
        Ok(())
    }
}
