//! What an edge does besides answering: each worker is a loop with a named pause that ends when
//! it is told to stop.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::Core;
use crate::platform::error::Result;
use crate::trading::orders::expiry::expire_due;

/// How often an edge asks whether tenants or catalogue have changed. Changes must reach every edge
/// within 1 s.
const SNAPSHOT_POLL: Duration = Duration::from_millis(250);
/// How often last uses of API keys are written.
const API_KEY_USES: Duration = Duration::from_secs(10);
/// How often orders that can no longer be paid are looked for.
const ORDER_EXPIRY: Duration = Duration::from_secs(1);
/// How often the sandbox's settlements go on.
const SANDBOX_STEPS: Duration = Duration::from_millis(250);
/// How often sales are looked for that end or are paid out by themselves.
const SALES: Duration = Duration::from_millis(500);
/// How often policies are compiled that a reload had to leave behind, and used replay tokens are
/// forgotten.
const POLICY_CARE: Duration = Duration::from_secs(5);
/// How often shadow runs and samples of policies are taken care of.
const POLICY_ASIDES: Duration = Duration::from_millis(200);
/// How often the ages of prices are shown in the metrics.
const PRICE_AGES: Duration = Duration::from_secs(5);
/// How often refresh tokens that have ended are forgotten.
const ENDED_REFRESH_TOKENS: Duration = Duration::from_secs(10 * 60);
/// How often idempotency keys that are over are forgotten.
const IDEMPOTENCY_KEYS: Duration = Duration::from_secs(60);

/// How often images are removed from the store that nothing names any more.
const DOCUMENT_REMOVAL: Duration = Duration::from_secs(60);
/// How often mail is looked for that is to be sent.
const MAIL: Duration = Duration::from_secs(1);

impl Core {
    /// Runs all workers until `stop` turns true.
    pub async fn work(self: Arc<Self>, stop: watch::Receiver<bool>) {
        let snapshots = every(SNAPSHOT_POLL, stop.clone(), || async {
            if let Err(error) = self.refresh().await {
                tracing::warn!(%error, "the snapshot could not be brought up to date");
            }
        });
        let policies = self.keep_policies(stop.clone());
        let api_key_uses = every(API_KEY_USES, stop.clone(), || async {
            if let Err(error) = self.write_api_key_uses().await {
                tracing::warn!(%error, "last uses of API keys could not be written");
            }
        });
        let price_ages = every(PRICE_AGES, stop.clone(), || async { self.show_price_ages() });
        let prices = self.read_prices(stop.clone());
        let order_expiry = every(ORDER_EXPIRY, stop.clone(), || async {
            if let Err(error) = expire_due(&self).await {
                tracing::warn!(%error, "overdue orders could not be cancelled");
            }
        });
        let sales = every(SALES, stop.clone(), || async {
            if let Err(error) = self.settle_sales().await {
                tracing::warn!(%error, "sales could not go on");
            }
        });
        let sandbox = every(SANDBOX_STEPS, stop.clone(), || async {
            if let Err(error) = self.settle_sandbox_orders().await {
                tracing::warn!(%error, "orders of the sandbox could not go on");
            }
        });
        let refresh_tokens = every(ENDED_REFRESH_TOKENS, stop.clone(), || async {
            if let Err(error) = self.forget_ended_refresh_tokens().await {
                tracing::warn!(%error, "ended refresh tokens could not be forgotten");
            }
            if let Err(error) = self.forget_ended_codes().await {
                tracing::warn!(%error, "ended codes and old mail could not be forgotten");
            }
        });
        let idempotency_keys = every(IDEMPOTENCY_KEYS, stop.clone(), || async {
            if let Err(error) = self.forget_idempotency_keys().await {
                tracing::warn!(%error, "idempotency keys could not be forgotten");
            }
        });
        let afterwards = self.finish_outside(stop.clone());
        let deliveries = Arc::clone(&self).deliver(stop);
        tokio::join!(
            snapshots,
            policies,
            api_key_uses,
            price_ages,
            prices,
            order_expiry,
            sales,
            sandbox,
            refresh_tokens,
            idempotency_keys,
            afterwards,
            deliveries
        );
    }

    /// What partners' policies need beside the requests that ask them.
    async fn keep_policies(&self, stop: watch::Receiver<bool>) {
        let care = every(POLICY_CARE, stop.clone(), || async {
            if let Err(error) = self.care_for_policies().await {
                tracing::warn!(%error, "policies could not be cared for");
            }
        });
        let asides = every(POLICY_ASIDES, stop, || async {
            if let Err(error) = self.run_policy_shadows().await {
                tracing::warn!(%error, "shadow runs of policies could not be written");
            }
        });
        tokio::join!(care, asides);
    }

    /// What transactions have asked to be done outside the database.
    async fn finish_outside(&self, stop: watch::Receiver<bool>) {
        let documents = every(DOCUMENT_REMOVAL, stop.clone(), || async {
            if let Err(error) = self.remove_documents().await {
                tracing::warn!(%error, "documents could not be removed");
            }
        });
        let mail = every(MAIL, stop, || async {
            if let Err(error) = self.send_mail().await {
                tracing::warn!(%error, "mail could not be sent");
            }
        });
        tokio::join!(documents, mail);
    }

    async fn care_for_policies(&self) -> Result<()> {
        self.compile_policies().await?;
        self.delete_expired_replay_tokens().await
    }

    async fn read_prices(&self, stop: watch::Receiver<bool>) {
        let Some(feed) = &self.price_feed else { return };
        let refresh = || async {
            if let Err(error) = feed.refresh(self).await {
                tracing::warn!(%error, "prices could not be written");
            }
        };
        every(feed.interval(), stop, refresh).await;
    }
}

/// Runs `work` at every tick until `stop` turns true. A run that takes longer than the pause delays
/// the next one; runs never overlap.
pub(crate) async fn every<F, Fut>(pause: Duration, mut stop: watch::Receiver<bool>, mut work: F)
where
    F: FnMut() -> Fut,
    Fut: Future<Output = ()>,
{
    let mut ticks = tokio::time::interval(pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => work().await,
            () = stopped(&mut stop) => return,
        }
    }
}

/// Returns when `stop` turns true, or whoever could turn it is gone.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
