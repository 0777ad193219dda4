//! Background workers of an edge: each is a task with a loop and an interval, and ends when the edge
//! stops.

mod restart;

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

pub use self::restart::keep;
use self::restart::{restarted, stopped};
use crate::Core;
use crate::operate::admin::approvals;
use crate::operate::admin::configuration::drift;
use crate::operate::key_rotation;
use crate::platform::db::PoolKind;
use crate::platform::error::Result;
use crate::platform::heartbeats::SNAPSHOT;
use crate::platform::mail::{CLAIMED_MAX, SENDING_MAX};
use crate::platform::telemetry::Span;
use crate::trading::market::feed::PriceFeed;
use crate::trading::orders::expiry::expire_due;

/// Polling interval of the revisions of tenants and catalogue. Changes must reach every edge within
/// 1 s.
const SNAPSHOT_POLL: Duration = Duration::from_millis(250);
/// Interval of looking whether a maintenance window has begun or ended. The edges' polling comes on
/// top.
const MAINTENANCE_WINDOWS: Duration = Duration::from_millis(500);
/// Interval of writing last uses of API keys.
const API_KEY_USES: Duration = Duration::from_secs(10);
/// Interval of adding quotes to their hour.
const QUOTE_COUNTS: Duration = Duration::from_secs(10);
/// Interval of looking whether deposit addresses run out.
const DEPOSIT_ADDRESSES: Duration = Duration::from_secs(1);
/// Interval of looking for commands that a replacement of the routes has not seen.
const ROUTED_COMMANDS: Duration = Duration::from_secs(5);
/// Interval of commanding payouts and transfers that nothing holds back any more.
const PAYOUTS: Duration = Duration::from_secs(1);
/// Interval of cancelling orders that can no longer be paid.
const ORDER_EXPIRY: Duration = Duration::from_secs(1);
/// Interval of reading the orders that pages follow.
const WATCHED_ORDERS: Duration = Duration::from_secs(1);
/// Interval of marking transactions, for the cursor of the event log.
const TRANSACTION_MARKS: Duration = Duration::from_secs(5);
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
/// Interval of deleting expired tokens and codes, and old numbers of quotes.
const EXPIRED_TOKENS: Duration = Duration::from_secs(10 * 60);
/// Interval of deleting old deliveries and attempts, offers, and reports of connectors.
const OLD_DELIVERIES: Duration = Duration::from_secs(10);
/// Interval of deleting expired idempotency keys.
const IDEMPOTENCY_KEYS: Duration = Duration::from_secs(60);
/// Interval of looking for tenants without keys of their own.
const TENANT_KEYS: Duration = Duration::from_secs(30);
/// Interval of looking whether a rotation of the master key goes on.
const KEY_ROTATION: Duration = Duration::from_secs(1);
/// Interval of removing deleted documents from the object store.
const DOCUMENT_REMOVAL: Duration = Duration::from_secs(60);
/// Interval of destroying retained records whose time is over, approvals that ended long ago, and
/// policies that never served.
const RETENTION: Duration = Duration::from_secs(10 * 60);
/// Interval of looking for users' keys that older edges stored beside the personal data.
const PERSONAL_KEYS: Duration = Duration::from_secs(60);
/// Interval of indexing users from before there was a search for them.
const USER_SEARCH: Duration = Duration::from_secs(60);
/// Interval of making partitions of the months to come, and of archiving those that are old.
const PARTITIONS: Duration = Duration::from_secs(60 * 60);
/// Polling interval of the mail outbox.
const MAIL: Duration = Duration::from_secs(1);
/// Pause after a run that has done as much as one may, so that any number of rows is dealt with.
const NEXT_BATCH: Duration = Duration::from_millis(100);
/// Longest pause after a run that failed, but for those that may take long.
const RETRY: Duration = Duration::from_secs(1);
/// Longest run; one that takes longer is given up and begun again.
const RUN_MAX: Duration = Duration::from_secs(5 * 60);
// Mails whose outcome is not recorded are sent again.
const _: () = assert!(SENDING_MAX.as_secs() < RUN_MAX.as_secs());
/// Longest run of making and archiving partitions: a month is written to its file as a whole.
const ARCHIVE_MAX: Duration = Duration::from_secs(12 * 60 * 60);
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

/// Every worker, in metrics.
const ALL: &str = "all";

/// Runs a method of the core that has no parameters, or a function of the core.
macro_rules! run {
    (Core::$work:ident) => {
        |core: Arc<Core>| async move { core.$work().await }
    };
    ($work:path) => {
        |core: Arc<Core>| async move { $work(&core).await }
    };
}

/// Runs all workers until `stop` is true. Each is a task of its own: one that takes long, or blocks
/// its thread, holds up no other. After a panic that ends one of them all start again.
pub async fn work(core: Arc<Core>, stop: watch::Receiver<bool>) {
    let failed = core.metrics.worker_runs.with_label_values(&[ALL, "failed"]);
    let start = || work_until_a_panic(Arc::clone(&core), stop.clone());
    restarted(stop.clone(), start, || {
        failed.inc();
        tracing::error!("a panic has ended a worker: all of them start again");
    })
    .await;
}

/// Runs all workers until `stop` is true. A panic of one is the caller's, and ends the others.
async fn work_until_a_panic(core: Arc<Core>, stop: watch::Receiver<bool>) {
    let mut stopping = stop.clone();
    let mut workers = Workers { core: Arc::clone(&core), stop, tasks: Tasks::default() };
    workers.start_essential();
    workers.start_others();
    let write_last_quotes = async {
        stopped(&mut stopping).await;
        // No request is under way any more, and the process waits for no worker that takes long.
        if let Err(error) = PoolKind::Workers.run(core.write_quote_counts()).await {
            tracing::warn!(%error, "the last quotes are not counted");
        }
    };
    tokio::join!(workers.tasks.ended(), write_last_quotes);
}

async fn maintain_compiled_policies(core: &Core) -> Result<bool> {
    core.compile_replacing_policies().await?;
    core.delete_expired_replay_tokens().await
}

async fn delete_expired_tokens(core: &Core) -> Result<bool> {
    let (refresh_tokens, codes, sessions, challenges, quote_counts) = tokio::join!(
        core.delete_expired_refresh_tokens(),
        core.delete_expired_codes(),
        core.delete_expired_sessions_of_staff(),
        core.delete_expired_wallet_challenges(),
        core.delete_old_quote_counts(),
    );
    quote_counts?;
    Ok([refresh_tokens?, codes?, sessions?, challenges?].contains(&true))
}

async fn refresh_prices(core: &Core) -> Result<()> {
    match &core.price_feed {
        Some(feed) => feed.refresh(core).await,
        None => Ok(()),
    }
}

/// The workers of an edge.
struct Workers {
    core: Arc<Core>,
    stop: watch::Receiver<bool>,
    tasks: Tasks,
}

impl Workers {
    /// Starts those that requests depend on.
    fn start_essential(&mut self) {
        self.keep("database", |core, stop| async move { core.db.watch(stop).await });
        self.keep("spans", |core, stop| async move { core.telemetry.export(stop).await });
        self.keep("shared rates", |core, stop| async move { core.shared_rates.run(stop).await });
        self.keep("document store", |core, stop| async move { core.documents.run(stop).await });
        self.keep("deliveries", Core::deliver);
        self.every(SNAPSHOT, SNAPSHOT_POLL, run!(Core::refresh));
        let follow = run!(Core::follow_maintenance_windows);
        self.every("maintenance windows", MAINTENANCE_WINDOWS, follow);
        let prices = self.core.price_feed.as_ref().map(PriceFeed::interval);
        if let Some(interval) = prices {
            self.every("prices", interval, run!(refresh_prices));
        }
    }

    fn start_others(&mut self) {
        self.every_batch("policies", POLICY_MAINTENANCE, run!(maintain_compiled_policies));
        self.every("policy shadows", POLICY_SHADOWS, run!(Core::run_policy_shadows));
        self.every(
            "method performance",
            METHOD_PERFORMANCE,
            run!(Core::refresh_method_performance),
        );
        self.every("API key uses", API_KEY_USES, run!(Core::write_api_key_uses));
        self.every("quote counts", QUOTE_COUNTS, run!(Core::write_quote_counts));
        self.every("backlogs", BACKLOGS, run!(Core::measure_backlogs));
        self.every("money metrics", BACKLOGS, run!(Core::measure_money));
        self.every("configuration drift", DRIFT, run!(drift::measure_drift));
        self.every("ACME state", ACME_STATE, run!(Core::read_acme_state));
        self.every("ACME", ACME, run!(Core::obtain_certificate));
        self.every("ledger check", LEDGER_CHECK, run!(Core::check_books));
        self.every("audit check", AUDIT_CHECK, run!(Core::check_audit));
        self.every("deposit addresses", DEPOSIT_ADDRESSES, run!(Core::fill_deposit_pools));
        self.every_batch("routed commands", ROUTED_COMMANDS, run!(Core::follow_routes));
        self.every("transfers", PAYOUTS, run!(Core::command_transfers));
        self.every("payouts", PAYOUTS, run!(Core::command_payouts));
        self.every("order expiry", ORDER_EXPIRY, run!(expire_due));
        self.every("watched orders", WATCHED_ORDERS, run!(Core::read_watched_orders));
        self.every("transaction marks", TRANSACTION_MARKS, run!(Core::mark_transactions));
        self.every("sales", SALES, run!(Core::settle_sales));
        self.every("sandbox", SANDBOX_SETTLEMENT, run!(Core::settle_sandbox_orders));
        self.every_batch("expired tokens", EXPIRED_TOKENS, run!(delete_expired_tokens));
        self.every_batch("old deliveries", OLD_DELIVERIES, run!(Core::delete_old_deliveries));
        self.every_batch("old offers", OLD_DELIVERIES, run!(Core::delete_old_offers));
        self.every_batch("old reports", OLD_DELIVERIES, run!(Core::delete_old_reports));
        self.every_batch("idempotency keys", IDEMPOTENCY_KEYS, run!(Core::forget_idempotency_keys));
        self.every("tenant keys", TENANT_KEYS, run!(Core::make_tenant_keys));
        self.every("key rotation", KEY_ROTATION, run!(key_rotation::rotate_keys));
        self.every_batch("documents", DOCUMENT_REMOVAL, run!(Core::remove_documents));
        let partitions = Worker { run_max: ARCHIVE_MAX, ..self.worker("partitions", PARTITIONS) };
        self.tasks.spawn(partitions.run(run!(Core::maintain_partitions), |_| false));
        self.every("retention", RETENTION, run!(Core::destroy_retained_records));
        self.every("old approvals", RETENTION, run!(approvals::delete_old_approvals));
        self.every("policy versions", RETENTION, run!(Core::delete_unused_policy_versions));
        self.every("personal keys", PERSONAL_KEYS, run!(Core::move_personal_keys));
        self.every("user search", USER_SEARCH, run!(Core::index_users));
        let mail = self.worker("mail", MAIL);
        self.tasks.spawn(mail.run(run!(Core::send_mail), |mails| mails >= CLAIMED_MAX));
    }

    /// Starts a worker.
    fn every<T, F, Fut>(&mut self, name: &'static str, pause: Duration, work: F)
    where
        T: Send + 'static,
        F: FnMut(Arc<Core>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T>> + Send + 'static,
    {
        let worker = self.worker(name, pause);
        self.tasks.spawn(worker.run(work, |_| false));
    }

    /// Starts a worker whose next run follows soon where one says that it may have left something.
    fn every_batch<F, Fut>(&mut self, name: &'static str, pause: Duration, work: F)
    where
        F: FnMut(Arc<Core>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<bool>> + Send + 'static,
    {
        let worker = self.worker(name, pause);
        self.tasks.spawn(worker.run(work, |has_more| has_more));
    }

    /// Starts a task that goes on until it is stopped, as [`keep`] does.
    fn keep<Fut>(
        &mut self,
        name: &'static str,
        start: impl Fn(Arc<Core>, watch::Receiver<bool>) -> Fut + Send + 'static,
    ) where
        Fut: Future<Output = ()> + Send + 'static,
    {
        let (core, stop) = (Arc::clone(&self.core), self.stop.clone());
        let (started, stopping) = (Arc::clone(&core), stop.clone());
        let start = move || start(Arc::clone(&started), stopping.clone());
        self.tasks.spawn(async move { keep(&core, name, stop, start).await });
    }

    fn worker(&self, name: &'static str, pause: Duration) -> Worker {
        let (core, stop) = (Arc::clone(&self.core), self.stop.clone());
        Worker { core, name, pause, run_max: RUN_MAX, stop }
    }
}

/// Tasks on the connections of workers.
#[derive(Default)]
struct Tasks(JoinSet<()>);

impl Tasks {
    fn spawn(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(PoolKind::Workers.run(work));
    }

    /// Returns when all have ended. A panic of one is the caller's, and ends the others.
    async fn ended(&mut self) {
        while let Some(ended) = self.0.join_next().await {
            if let Err(error) = ended
                && let Ok(panic) = error.try_into_panic()
            {
                resume_unwind(panic);
            }
        }
    }
}

/// A loop with an interval.
struct Worker {
    core: Arc<Core>,
    /// Its name in logs, metrics and `/readyz`.
    name: &'static str,
    pause: Duration,
    /// Longest run. One that may take longer than others is given up when the edge stops, and what it
    /// failed at is tried again at its interval.
    run_max: Duration,
    stop: watch::Receiver<bool>,
}

impl Worker {
    /// Runs `work` at every tick until `stop` is true. A run that takes longer than the interval
    /// delays the next one; runs never overlap. A run that fails, panics or never ends is logged and
    /// counted, and another one follows soon, as after one whose result says that it may have left
    /// something.
    async fn run<T, F, Fut>(self, mut work: F, has_more: fn(T) -> bool)
    where
        F: FnMut(Arc<Core>) -> Fut,
        Fut: Future<Output = Result<T>>,
    {
        let Self { core, name, pause, run_max, mut stop } = self;
        // So much longer it may be silent.
        let silence = pause + run_max.saturating_sub(RUN_MAX);
        let retry = if run_max > RUN_MAX { pause } else { pause.min(RETRY) };
        let runs = |outcome| core.metrics.worker_runs.with_label_values(&[name, outcome]);
        for outcome in ["ok", "failed"] {
            runs(outcome).inc_by(0);
        }
        let beat = || core.heartbeats.beat(name, silence, core.clock.monotonic_ns());
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
            let run = async { Box::pin(work(Arc::clone(&core))).await.map(has_more) };
            let run = scope.run(timeout(run_max, run));
            let ended = tokio::select! {
                ended = AssertUnwindSafe(run).catch_unwind() => ended,
                () = stopped(&mut stop), if run_max > RUN_MAX => return,
            };
            let failure = match ended {
                Ok(Ok(Ok(more))) => {
                    beat();
                    runs("ok").inc();
                    if more {
                        ticks.reset_after(pause.min(NEXT_BATCH));
                    }
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
            ticks.reset_after(retry);
        }
    }
}

#[cfg(test)]
mod tests;
