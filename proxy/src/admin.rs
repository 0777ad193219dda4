//! The operators' listener: a bounded request in, the core's answer out. The core checks the
//! bearer token.

use std::sync::Arc;

use bytes::Bytes;
use rampart_core::Core;
use rampart_core::http::reply::Reply;
use rampart_core::http::request::Head;

use crate::local::Answer;

/// Passes calls on to the core.
pub(crate) struct Admin {
    /// Who answers.
    pub(crate) core: Arc<Core>,
}

impl Answer for Admin {
    /// A policy component may have 4 MiB.
    const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

    async fn answer(&self, head: Head, body: Bytes) -> Reply {
        self.core.admin(head, body).await
    }
}
