//! Tasks that begin again after a panic.

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use tokio::sync::watch;
use tokio::time::timeout;

use super::RETRY;
use crate::Core;

/// Runs what `start` makes until it ends. A panic is counted as a failed run of the worker of this
/// name, and it starts again, unless `stop` is true or its sender is dropped.
pub async fn keep<Fut: Future<Output = ()>>(
    core: &Core,
    name: &'static str,
    stop: watch::Receiver<bool>,
    start: impl Fn() -> Fut,
) {
    let failed = core.metrics.worker_runs.with_label_values(&[name, "failed"]);
    restarted(stop, start, || {
        failed.inc();
        tracing::warn!(worker = name, error = "it panicked", "a worker's run failed");
    })
    .await;
}

/// Runs what `start` makes until it ends. After a panic, which `failed` is told of, it starts again.
pub(super) async fn restarted<Fut: Future<Output = ()>>(
    mut stop: watch::Receiver<bool>,
    start: impl Fn() -> Fut,
    failed: impl Fn(),
) {
    // The panic hook has logged the cause.
    while AssertUnwindSafe(start()).catch_unwind().await.is_err() {
        failed();
        if timeout(RETRY, stopped(&mut stop)).await.is_ok() {
            return;
        }
    }
}

/// Returns when `stop` is true, or its sender is dropped.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
