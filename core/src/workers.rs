//! Background workers of an edge: each is a loop with an interval that ends when the edge stops.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::Core;
use crate::platform::db::PoolKind;
use crate::platform::error::Result;
use crate::platform::heartbeats::SNAPSHOT;
use crate::platform::telemetry::Span;
use crate::trading::orders::expiry::expire_due;

/// Polling interval of the revisions of tenants and catalogue. Changes must reach every edge within
/// 1 s.
const SNAPSHOT_POLL: Duration = Duration::from_millis(250);
/// Interval of writing last uses of API keys.
const API_KEY_USES: Duration = Duration::from_secs(10);
/// Interval of looking whether deposit addresses run out.
const DEPOSIT_ADDRESSES: Duration = Duration::from_secs(1);
/// Interval of commanding payouts and transfers that nothing holds back any more.
const PAYOUTS: Duration = Duration::from_secs(1);
/// Interval of cancelling orders that can no longer be paid.
const ORDER_EXPIRY: Duration = Duration::from_secs(1);
/// Interval of reading the orders that pages follow.
const WATCHED_ORDERS: Duration = Duration::from_secs(1);
/// Interval of the sandbox's settlements.
const SANDBOX_SETTLEMENT: Duration = Duration::from_millis(250);
/// Interval of settling sell orders that expire or are paid out automatically.
const SALES: Duration = Duration::from_millis(500);
/// Interval of compiling policies that a reload could not compile, and of deleting used replay
/// tokens.
const POLICY_MAINTENANCE: Duration = Duration::from_secs(5);
/// Interval of running queued shadow runs and samples of policies.
const POLICY_SHADOWS: Duration = Duration::from_millis(200);
/// Interval of looking for payment methods whose performance is to be read.
const METHOD_PERFORMANCE: Duration = Duration::from_secs(1);
/// Interval of updating the metrics of prices.
const PRICE_METRICS: Duration = Duration::from_secs(5);
/// Interval of deleting expired refresh tokens.
const EXPIRED_TOKENS: Duration = Duration::from_secs(10 * 60);
/// Interval of deleting old deliveries and attempts.
const OLD_DELIVERIES: Duration = Duration::from_secs(10);
/// Interval of deleting expired idempotency keys.
const IDEMPOTENCY_KEYS: Duration = Duration::from_secs(60);

/// Interval of looking for tenants without keys of their own.
const TENANT_KEYS: Duration = Duration::from_secs(30);
/// Interval of looking whether a rotation of the master key goes on.
const KEY_ROTATION: Duration = Duration::from_secs(1);
/// Interval of removing deleted documents from the object store.
const DOCUMENT_REMOVAL: Duration = Duration::from_secs(60);
/// Interval of destroying retained records whose time is over.
const RETENTION: Duration = Duration::from_secs(10 * 60);
/// Interval of looking for users' keys that older edges stored beside the personal data.
const PERSONAL_KEYS: Duration = Duration::from_secs(60);
/// Interval of indexing users of before there was a search for them.
const USER_SEARCH: Duration = Duration::from_secs(60);
/// Interval of making partitions of the months to come, and of archiving those that are old.
const PARTITIONS: Duration = Duration::from_secs(60 * 60);
/// Polling interval of the mail outbox.
const MAIL: Duration = Duration::from_secs(1);
/// Longest pause after a run that failed.
const RETRY: Duration = Duration::from_secs(1);
/// Longest run; one that takes longer is given up and begun again.
const RUN_MAX: Duration = Duration::from_secs(5 * 60);
/// Interval of reading the certificate that edges share and its challenges.
const ACME_STATE: Duration = Duration::from_secs(1);
/// Interval of looking whether it is to be renewed.
const ACME: Duration = Duration::from_secs(5);
/// Interval of looking whether a piece of the books is to be checked.
const LEDGER_CHECK: Duration = Duration::from_secs(10);
/// Interval of looking whether a piece of the audit is to be verified.
const AUDIT_CHECK: Duration = Duration::from_secs(10);
/// Interval of comparing the configuration with what was applied last.
const DRIFT: Duration = Duration::from_secs(60);
/// Interval of measuring what waits in the database.
const BACKLOGS: Duration = Duration::from_secs(10);

impl Core {
    /// Runs all workers until `stop` is true.
    pub async fn work(self: Arc<Self>, stop: watch::Receiver<bool>) {
        // A task of its own: an exchange is due within milliseconds, whatever other workers do.
        let (rates, stopped) = (Arc::clone(&self.shared_rates), stop.clone());
        let sharing = tokio::spawn(async move { rates.run(stopped).await });
        // Another: a bucket that hangs must hold up nothing else.
        let (documents, stopped) = (self.documents.clone(), stop.clone());
        let storing = tokio::spawn(async move { documents.run(stopped).await });
        // On the heap: unoptimised, the state of all workers does not fit on a thread's stack.
        PoolKind::Workers.run(Box::pin(self.run_workers(stop))).await;
        if sharing.await.is_err() {
            tracing::error!("the worker that shares rates panicked");
        }
        if storing.await.is_err() {
            tracing::error!("the worker that watches the bucket of documents panicked");
        }
    }

    async fn run_workers(self: &Arc<Self>, stop: watch::Receiver<bool>) {
        let every = |name, pause| Worker { core: self, name, pause, stop: stop.clone() };
        tokio::join!(
            self.db.watch(stop.clone()),
            self.telemetry.export(stop.clone()),
            every(SNAPSHOT, SNAPSHOT_POLL).run(|| self.refresh()),
            every("policies", POLICY_MAINTENANCE).run(|| self.maintain_compiled_policies()),
            every("policy shadows", POLICY_SHADOWS).run(|| self.run_policy_shadows()),
            every("method performance", METHOD_PERFORMANCE)
                .run(|| self.refresh_method_performance()),
            every("API key uses", API_KEY_USES).run(|| self.write_api_key_uses()),
            every("price metrics", PRICE_METRICS).run(async || {
                self.show_prices();
                Ok(())
            }),
            every("backlogs", BACKLOGS).run(|| self.measure_backlogs()),
            every("money metrics", BACKLOGS).run(|| self.measure_money()),
            every("configuration drift", DRIFT).run(|| self.measure_drift()),
            every("ACME state", ACME_STATE).run(|| self.read_acme_state()),
            every("ACME", ACME).run(|| self.obtain_certificate()),
            every("ledger check", LEDGER_CHECK).run(|| self.check_books()),
            every("audit check", AUDIT_CHECK).run(|| self.check_audit()),
            self.read_prices(stop.clone()),
            every("deposit addresses", DEPOSIT_ADDRESSES).run(|| self.fill_deposit_pools()),
            every("transfers", PAYOUTS).run(|| self.command_transfers()),
            every("payouts", PAYOUTS).run(|| self.command_payouts()),
            every("order expiry", ORDER_EXPIRY).run(|| expire_due(self)),
            every("watched orders", WATCHED_ORDERS).run(|| self.read_watched_orders()),
            every("sales", SALES).run(|| self.settle_sales()),
            every("sandbox", SANDBOX_SETTLEMENT).run(|| self.settle_sandbox_orders()),
            every("expired tokens", EXPIRED_TOKENS).run(|| self.delete_expired_tokens()),
            every("old deliveries", OLD_DELIVERIES).run(|| self.delete_old_deliveries()),
            every("idempotency keys", IDEMPOTENCY_KEYS).run(|| self.forget_idempotency_keys()),
            every("tenant keys", TENANT_KEYS).run(|| self.make_tenant_keys()),
            every("key rotation", KEY_ROTATION).run(|| self.rotate_keys()),
            every("documents", DOCUMENT_REMOVAL).run(|| self.remove_documents()),
            every("partitions", PARTITIONS).run(|| self.maintain_partitions()),
            every("retention", RETENTION).run(|| self.destroy_retained_records()),
            every("personal keys", PERSONAL_KEYS).run(|| self.move_personal_keys()),
            every("user search", USER_SEARCH).run(|| self.index_users()),
            every("mail", MAIL).run(|| self.send_mail()),
            Arc::clone(self).deliver(stop.clone()),
        );
    }

    async fn maintain_compiled_policies(&self) -> Result<()> {
        self.compile_replacing_policies().await?;
        self.delete_expired_replay_tokens().await
    }

    async fn delete_expired_tokens(&self) -> Result<()> {
        let (refresh_tokens, codes, sessions) = tokio::join!(
            self.delete_expired_refresh_tokens(),
            self.delete_expired_codes(),
            self.delete_expired_sessions_of_staff(),
        );
        refresh_tokens?;
        codes?;
        sessions?;
        Ok(())
    }

    async fn read_prices(self: &Arc<Self>, stop: watch::Receiver<bool>) {
        let Some(feed) = &self.price_feed else { return };
        let worker = Worker { core: self, name: "prices", pause: feed.interval(), stop };
        worker.run(|| feed.refresh(self)).await;
    }
}

/// A loop with an interval.
struct Worker<'a> {
    core: &'a Core,
    /// Its name in logs, metrics and `/readyz`.
    name: &'static str,
    pause: Duration,
    stop: watch::Receiver<bool>,
}

impl Worker<'_> {
    /// Runs `work` at every tick until `stop` is true. A run that takes longer than the interval
    /// delays the next one; runs never overlap. A run that fails, panics or never ends is logged and
    /// counted, and another one follows soon.
    async fn run<T, F, Fut>(self, mut work: F)
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T>>,
    {
        let Self { core, name, pause, mut stop } = self;
        let runs = |outcome| core.metrics.worker_runs.with_label_values(&[name, outcome]);
        let beat = || core.heartbeats.beat(name, pause, core.clock.monotonic_ns());
        let mut ticks = interval(pause);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beat();
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = stopped(&mut stop) => return,
            }
            let mut span = core.telemetry.begin_work(format!("worker {name}"));
            let scope = span.as_ref().map(Span::scope).unwrap_or_default();
            let run = scope.run(timeout(RUN_MAX, async { Box::pin(work()).await.map(drop) }));
            let failure = match AssertUnwindSafe(run).catch_unwind().await {
                Ok(Ok(Ok(()))) => {
                    beat();
                    runs("ok").inc();
                    continue;
                }
                Ok(Ok(Err(error))) => error.to_string(),
                Ok(Err(_)) => "it was given up because it did not end".to_owned(),
                // The panic hook has logged the cause.
                Err(_) => "it panicked".to_owned(),
            };
            runs("failed").inc();
            if let Some(span) = &mut span {
                span.fail("the run failed");
            }
            tracing::warn!(worker = name, error = failure, "a worker's run failed");
            ticks.reset_after(pause.min(RETRY));
        }
    }
}

/// Returns when `stop` is true, or its sender is dropped.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
