//! The way of a request through the APIs of the private listeners, operators' and connectors', once
//! its caller is known. Their errors are `{"error":"…"}`.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use http::{Extensions, StatusCode};
use serde_json::Value;

use super::Route;
use super::router::{Found, ServedApi, allow};
use crate::Core;
use crate::http::fields::exceeds_memory;
use crate::http::plain_error;
use crate::http::reply::Reply;
use crate::http::request::{Head, Input};
use crate::platform::db::PoolKind;
use crate::platform::error::{Denial, Result};

/// An endpoint that a request has found.
pub struct FoundRoute {
    /// Its row of the table.
    pub route: &'static Route,
    /// The decoded segments of its path.
    pub params: Vec<(&'static str, String)>,
}

/// Finishes what a listener has begun to answer on connections of this kind, with the headers of every
/// answer.
pub async fn reply(
    core: &Core,
    connections: PoolKind,
    request_id: &str,
    answering: impl Future<Output = Result<Reply>> + Send,
) -> Reply {
    // On the heap: unoptimised, its state would not fit on the stack beside the listener's.
    let result = connections.run(Box::pin(answering)).await;
    let mut reply = result.unwrap_or_else(|error| plain_error::reply(core, &error, request_id));
    reply.set("x-request-id", request_id);
    reply.set("cache-control", "no-store");
    // Operators open files that users have sent: what such a file is, its sender does not decide.
    reply.set("x-content-type-options", "nosniff");
    reply
}

/// Finds the endpoint of a request whose body is within this bound, and its document within that of
/// its memory.
///
/// # Errors
/// 413, 404, and 405 with the methods that the path has.
pub fn find(
    api: &ServedApi,
    head: &Head,
    body: &Bytes,
    body_bytes_max: usize,
) -> Result<FoundRoute> {
    if body.len() > body_bytes_max || exceeds_memory(body) {
        return Err(Denial::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large").into());
    }
    match api.find(&head.method, &head.path) {
        Found::Endpoint(route, params) => Ok(FoundRoute { route, params }),
        Found::OtherMethods(methods) => Err(Denial::method_not_allowed(allow(&methods)).into()),
        Found::Nothing => Err(Denial::not_found("call").into()),
    }
}

/// Runs the endpoint for this caller.
pub async fn run<C: Any + Clone + Send + Sync>(
    core: &Arc<Core>,
    found: FoundRoute,
    head: Head,
    body: Bytes,
    caller: C,
) -> Reply {
    let FoundRoute { route, params } = found;
    let (mut proven, now) = (Extensions::new(), core.clock.now());
    let request_id = head.request_id.clone();
    proven.insert(caller);
    let input = Input { head, body, upload: None, document: Value::Null, params, now, proven };
    let result = route.run(Arc::clone(core), None, input).await;
    let reply = result.unwrap_or_else(|error| plain_error::reply(core, &error, &request_id));
    if !route.declares_status(reply.status) {
        tracing::error!(?route, status = reply.status.as_u16(), "undeclared status");
    }
    reply
}
