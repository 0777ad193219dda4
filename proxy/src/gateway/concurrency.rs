//! The core's work on one request: bounded in number and in time.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use rampart_core::http::reply::Reply;
use tokio::time::timeout;

use super::context::Context;
use super::{Gateway, PublicListener};

/// Why the core gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkFailure {
    Panicked,
    TimedOut,
}

/// Gives what `work` gives, and nothing else gets out: no panic, no endless wait.
pub(super) async fn contain(
    work: impl Future<Output = Reply>,
    bound: Duration,
) -> Result<Reply, WorkFailure> {
    match timeout(bound, AssertUnwindSafe(work).catch_unwind()).await {
        Ok(reply) => reply.map_err(|_| WorkFailure::Panicked),
        Err(_) => Err(WorkFailure::TimedOut),
    }
}

/// Gives what `work` gives; `None` when nobody waits for it any more. A client whose `reset` comes
/// stops what is `safe` because it only reads; what writes goes on.
pub(super) async fn unless_reset<T>(
    reset: impl Future,
    safe: bool,
    work: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        _ = reset, if safe => None,
    }
}

impl Gateway {
    /// Takes one of the permits for requests in flight.
    ///
    /// # Errors
    /// The finished answer.
    pub(super) fn acquire_permit(
        &self,
        public: &PublicListener,
        context: &mut Context,
    ) -> Result<(), Box<Reply>> {
        match Arc::clone(&public.permits).try_acquire_owned() {
            Ok(permit) => {
                context.permit = Some(permit);
                Ok(())
            }
            Err(_) => {
                let doing = "take a request: too many are in flight";
                Err(Box::new(self.unavailable(context, doing)))
            }
        }
    }
}
