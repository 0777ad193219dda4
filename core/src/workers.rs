//! Background workers of an edge: each is a loop with an interval that ends when the edge stops.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::Core;
use crate::platform::error::Result;
use crate::trading::orders::expiry::expire_due;

/// Polling interval of the revisions of tenants and catalogue. Changes must reach every edge within
/// 1 s.
const SNAPSHOT_POLL: Duration = Duration::from_millis(250);
/// Interval of writing last uses of API keys.
const API_KEY_USES: Duration = Duration::from_secs(10);
/// Interval of cancelling orders that can no longer be paid.
const ORDER_EXPIRY: Duration = Duration::from_secs(1);
/// Interval of the sandbox's settlements.
const SANDBOX_SETTLEMENT: Duration = Duration::from_millis(250);
/// Interval of settling sell orders that expire or are paid out automatically.
const SALES: Duration = Duration::from_millis(500);
/// Interval of compiling policies that a reload could not compile, and of deleting used replay
/// tokens.
const POLICY_MAINTENANCE: Duration = Duration::from_secs(5);
/// Interval of running queued shadow runs and samples of policies.
const POLICY_SHADOWS: Duration = Duration::from_millis(200);
/// Interval of updating the metrics of price ages.
const PRICE_AGES: Duration = Duration::from_secs(5);
/// Interval of deleting expired refresh tokens.
const EXPIRED_TOKENS: Duration = Duration::from_secs(10 * 60);
/// Interval of deleting expired idempotency keys.
const IDEMPOTENCY_KEYS: Duration = Duration::from_secs(60);

/// Interval of removing deleted documents from the object store.
const DOCUMENT_REMOVAL: Duration = Duration::from_secs(60);
/// Polling interval of the mail outbox.
const MAIL: Duration = Duration::from_secs(1);

impl Core {
    /// Runs all workers until `stop` is true.
    pub async fn work(self: Arc<Self>, stop: watch::Receiver<bool>) {
        let snapshots = every(SNAPSHOT_POLL, stop.clone(), || async {
            if let Err(error) = self.refresh().await {
                tracing::warn!(%error, "the snapshot could not be brought up to date");
            }
        });
        let policies = self.maintain_policies(stop.clone());
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
        let sandbox = every(SANDBOX_SETTLEMENT, stop.clone(), || async {
            if let Err(error) = self.settle_sandbox_orders().await {
                tracing::warn!(%error, "orders of the sandbox could not go on");
            }
        });
        let refresh_tokens = every(EXPIRED_TOKENS, stop.clone(), || async {
            if let Err(error) = self.delete_expired_refresh_tokens().await {
                tracing::warn!(%error, "ended refresh tokens could not be forgotten");
            }
            if let Err(error) = self.delete_expired_codes().await {
                tracing::warn!(%error, "ended codes and old mail could not be forgotten");
            }
        });
        let idempotency_keys = every(IDEMPOTENCY_KEYS, stop.clone(), || async {
            if let Err(error) = self.forget_idempotency_keys().await {
                tracing::warn!(%error, "idempotency keys could not be forgotten");
            }
        });
        let outbox = self.process_outboxes(stop.clone());
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
            outbox,
            deliveries
        );
    }

    /// Maintains policies and runs their shadows.
    async fn maintain_policies(&self, stop: watch::Receiver<bool>) {
        let maintenance = every(POLICY_MAINTENANCE, stop.clone(), || async {
            if let Err(error) = self.maintain_compiled_policies().await {
                tracing::warn!(%error, "policies could not be compiled or cleaned up");
            }
        });
        let shadows = every(POLICY_SHADOWS, stop, || async {
            if let Err(error) = self.run_policy_shadows().await {
                tracing::warn!(%error, "shadow runs of policies could not be written");
            }
        });
        tokio::join!(maintenance, shadows);
    }

    /// Processes work that transactions have queued: document removals and mail.
    async fn process_outboxes(&self, stop: watch::Receiver<bool>) {
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

    async fn maintain_compiled_policies(&self) -> Result<()> {
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

/// Runs `work` at every tick until `stop` is true. A run that takes longer than the interval delays
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

/// Returns when `stop` is true, or its sender is dropped.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
