//! Connectors: programs of their own that each talk to one provider. They lease commands and report
//! events on a listener of their own, so that a provider's secrets never live in an edge.
//!
//! - [`commands`] is the queue of effects on the outside: [`commands::enqueue`] writes one in the
//!   transaction that wants it
//! - [`lease`], [`checkpoint`] and [`result`] are a command's way through a connector
//! - [`events`] takes what a provider says

pub mod caller;
pub mod checkpoint;
pub mod commands;
pub(crate) mod deposits;
mod effects;
pub mod events;
pub mod lease;
pub mod openapi;
pub(crate) mod payouts;
pub mod result;
mod settlement;
pub(crate) mod transfers;
pub mod waits;

use std::sync::Arc;

use bytes::Bytes;
use http::{Extensions, Method, StatusCode};
use serde_json::Value;

use self::caller::Connector;
use crate::Core;
use crate::endpoint::router::Found;
use crate::http::plain_error;
use crate::http::reply::Reply;
use crate::http::request::{Head, Input};
use crate::platform::db::Lane;
use crate::platform::error::{Denial, Result};

/// Largest body of the connectors' API in bytes: a provider's report, with room.
pub const BODY_BYTES_MAX: usize = 256 * 1024;

impl Core {
    /// Answers a request of the connectors' listener. Always answers.
    pub async fn connectors(self: &Arc<Self>, head: Head, body: Bytes) -> Reply {
        let request_id = head.request_id.clone();
        // On the heap: unoptimised, its state would not fit on the stack beside the listener's.
        let result = Lane::Operators.run(Box::pin(self.answer_connector(head, body))).await;
        let mut reply = result.unwrap_or_else(|error| plain_error::reply(&error));
        reply.set("x-request-id", &request_id);
        reply.set("cache-control", "no-store");
        reply
    }

    async fn answer_connector(self: &Arc<Self>, head: Head, body: Bytes) -> Result<Reply> {
        // Before the path is looked at: a stranger learns nothing of what exists.
        let connector = Connector::log_in(self, &head).await?;
        if body.len() > BODY_BYTES_MAX {
            return Err(Denial::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large").into());
        }
        let (route, params) = match self.connectors_api.find(&head.method, &head.path) {
            Found::Endpoint(route, params) => (route, params),
            Found::OtherMethods(methods) => return Err(not_allowed(&methods).into()),
            Found::Nothing => return Err(Denial::not_found("call").into()),
        };
        let (mut proven, now) = (Extensions::new(), self.clock.now());
        proven.insert(connector);
        let document = Value::Null;
        let input = Input { head, body, upload: None, document, params, now, proven };
        let result = route.run(Arc::clone(self), None, input).await;
        let reply = result.unwrap_or_else(|error| plain_error::reply(&error));
        if !route.declares_status(reply.status) {
            tracing::error!(?route, status = reply.status.as_u16(), "undeclared status");
        }
        Ok(reply)
    }
}

fn not_allowed(methods: &[&Method]) -> Denial {
    let methods: Vec<_> = methods.iter().map(|method| method.as_str()).collect();
    Denial::new(StatusCode::METHOD_NOT_ALLOWED, format!("use {}", methods.join(", ")))
}
