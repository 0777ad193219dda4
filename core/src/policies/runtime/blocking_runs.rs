//! Work on policies that blocks: off the serving threads, few runs at once.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::platform::error::{Error, Result};

/// Permits for one sort of such work.
#[derive(Debug)]
pub(crate) struct BlockingRuns(Arc<Semaphore>);

impl BlockingRuns {
    /// At most so many at once.
    pub(super) fn new(runs_max: usize) -> Self {
        Self(Arc::new(Semaphore::new(runs_max)))
    }

    /// Runs `work` once there is a permit. It goes on when nobody waits for it any more, and keeps its
    /// permit until it ends.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let permit = Arc::clone(&self.0).acquire_owned().await;
        let permit = permit.map_err(|error| Error::internal("run a policy", error))?;
        let run = move || {
            let _permit = permit;
            work()
        };
        let done = tokio::task::spawn_blocking(run).await;
        done.map_err(|error| Error::internal("run a policy", error))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn work_that_nobody_waits_for_keeps_its_permit_until_it_ends() {
        let runs = BlockingRuns::new(1);
        let (end, ended) = mpsc::sync_channel::<()>(1);
        let mut given_up = Box::pin(runs.run(move || ended.recv().is_ok()));
        assert!(given_up.as_mut().now_or_never().is_none());
        drop(given_up);
        assert_eq!(runs.0.available_permits(), 0);
        end.send(()).unwrap();
        runs.run(|| ()).await.unwrap();
    }
}
