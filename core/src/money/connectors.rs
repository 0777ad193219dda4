//! Connectors: programs of their own that each talk to one provider. They lease commands and report
//! events on a listener of their own, so that a provider's secrets never live in an edge.
//!
//! - [`commands`] is the queue of effects on the outside: [`commands::enqueue`] writes one in the
//!   transaction that wants it
//! - [`lease`], [`checkpoint`] and [`result`] are a command's way through a connector
//! - [`events`] takes what a provider says
//! - [`sandbox`] is the connector of test clients, which runs inside

pub(crate) mod accounts;
pub(crate) mod answers;
pub(crate) mod bank_transfer;
pub mod caller;
pub(crate) mod cancellations;
pub mod card_element;
pub mod checkpoint;
pub mod commands;
pub(crate) mod deposits;
mod effects;
pub mod events;
mod finished;
pub(crate) mod identity;
pub mod lease;
mod log_label;
mod network_fee;
pub mod openapi;
pub mod payouts;
pub(crate) mod provider_page;
pub mod result;
pub mod routed_commands;
pub mod sandbox;
pub mod screening;
mod settlement;
mod sweep;
pub(crate) mod transfers;
pub mod waits;

use std::sync::Arc;

use self::caller::Connector;
use crate::Core;
use crate::endpoint::private_api;
use crate::http::reply::Reply;
use crate::http::request::{Head, UnreadBody};
use crate::platform::db::PoolKind;
use crate::platform::db::share_holder::run_for_connector;
use crate::platform::error::Result;

/// Largest body of the connectors' API in bytes: a provider's report, with room.
pub const BODY_BYTES_MAX: usize = 256 * 1024;

impl Core {
    /// Answers a request of the connectors' listener. Always answers.
    pub async fn connectors(self: &Arc<Self>, head: Head, body: impl UnreadBody) -> Reply {
        let request_id = head.request_id.clone();
        let answering = self.answer_connector(head, body);
        private_api::reply(self, PoolKind::Connectors, &request_id, answering).await
    }

    async fn answer_connector(
        self: &Arc<Self>,
        head: Head,
        body: impl UnreadBody,
    ) -> Result<Reply> {
        // Before the path is looked at: a stranger learns nothing of what exists, and takes no memory.
        let connector = Connector::log_in(self, &head).await?;
        let body = body.read(true).await?;
        let found = private_api::find(self.apis.connectors, &head, &body, BODY_BYTES_MAX)?;
        let name = Arc::clone(&connector.name);
        let running = private_api::run(self, found, head, body, connector);
        Ok(run_for_connector(name, Box::pin(running)).await)
    }
}
