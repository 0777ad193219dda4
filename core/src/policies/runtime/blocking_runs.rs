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

    /// Runs `work` on each item and its index, one after the other, each with a permit of its own: other
    /// work takes turns with a long list.
    pub(crate) async fn run_each<I: Send + 'static, T: Send + 'static>(
        &self,
        items: Vec<I>,
        work: impl Fn(usize, I) -> T + Send + Sync + 'static,
    ) -> Result<Vec<T>> {
        let work = Arc::new(work);
        let mut done = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let work = Arc::clone(&work);
            done.push(self.run(move || work(index, item)).await?);
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use futures::FutureExt;
    use futures::future::join;

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

    #[tokio::test]
    async fn other_work_takes_turns_with_a_long_list() {
        let runs = BlockingRuns::new(1);
        let order = Arc::new(Mutex::new(Vec::new()));
        let (end, ended) = mpsc::sync_channel::<()>(1);
        let (done, ended) = (Arc::clone(&order), Mutex::new(ended));
        let mut list = Box::pin(runs.run_each(vec!["first", "second"], move |index, name| {
            if index == 0 {
                ended.lock().unwrap().recv().unwrap();
            }
            done.lock().unwrap().push(name);
        }));
        assert!(list.as_mut().now_or_never().is_none());
        let done = Arc::clone(&order);
        let mut other = Box::pin(runs.run(move || done.lock().unwrap().push("other")));
        assert!(other.as_mut().now_or_never().is_none());
        end.send(()).unwrap();
        let (list, other) = join(list, other).await;
        assert!(list.is_ok() && other.is_ok());
        assert_eq!(*order.lock().unwrap(), ["first", "other", "second"]);
    }
}
