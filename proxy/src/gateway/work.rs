//! The core's work on one request: as much at once as there are places, and bounded in time.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use http::StatusCode;
use rampart_core::endpoint::admission::Admission;
use rampart_core::http::reply::Reply;
use rampart_core::http::request::{Entity, Head};
use rampart_core::platform::error::Code;
use tokio::time::timeout;

use super::Gateway;
use crate::context::Context;
use crate::exchange::Received;

impl Gateway {
    /// One of the requests that may be in flight at once.
    ///
    /// # Errors
    /// The finished answer.
    pub(super) fn take_place(&self, context: &mut Context) -> Result<(), Box<Reply>> {
        match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => {
                context.place = Some(place);
                Ok(())
            }
            Err(_) => {
                let doing = "take a request: too many are in flight";
                Err(Box::new(self.unavailable(context, doing)))
            }
        }
    }

    /// Runs the core, and nothing it does gets out but a reply: no panic, no endless wait.
    pub(super) async fn run(
        &self,
        context: &Context,
        admission: Admission,
        head: Head,
        received: Received<Entity>,
    ) -> Reply {
        let Received { body, share: _share } = received;
        let work = self.core.answer(admission, head, body);
        match timeout(self.answer_max, AssertUnwindSafe(work).catch_unwind()).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) => {
                tracing::error!(request_id = context.request_id, "an endpoint panicked");
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                self.core.refuse(&context.request_id, status, Code::GeneralError, "")
            }
            Err(_) => self.unavailable(context, "answer in time"),
        }
    }
}

/// What `work` gives; `None` when nobody waits for it any more. A client whose `reset` comes stops
/// what is `safe` because it only reads; what writes goes on.
pub(super) async fn unless_reset(
    reset: impl Future,
    safe: bool,
    work: impl Future<Output = Reply>,
) -> Option<Reply> {
    tokio::select! {
        biased;
        reply = work => Some(reply),
        _ = reset, if safe => None,
    }
}
