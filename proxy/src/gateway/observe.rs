//! The metrics and the access log of a request that is over: the one place of accounting.

use std::time::Duration;

use chrono::SecondsFormat;
use pingora_core::protocols::http::ServerSession;
use rampart_core::platform::metrics::requests::FinishedRequest;
use rampart_core::platform::telemetry::Span;

use super::access_log::Line;
use super::context::Context;
use super::private_listener::PrivateListener;
use super::respond::answered;
use super::{Gateway, ListenerKind};
use crate::server::{ConnectionInfo, METHOD_BYTES_MAX};

impl Gateway {
    /// Counts and logs a request that is over, however it ended. Private listeners have neither.
    pub(super) fn observe(&self, session: &ServerSession, context: &Context) {
        let Some(public) = self.public_listener() else { return };
        let core = &self.core;
        let status = answered(session).map_or(0, |status| status.as_u16());
        let ended = context.ended_ns.unwrap_or_else(|| core.clock.monotonic_ns());
        let took = ended.saturating_sub(context.began_ns);
        // A client that sends its body or takes its answer slowly makes no edge slow.
        let answered = context.answered_ns.unwrap_or(ended).saturating_sub(context.began_ns);
        core.metrics.request(&FinishedRequest {
            route: context.labels.route,
            partner: &context.labels.partner,
            partner_class: context.labels.partner_class,
            status,
            by_sender: context.by_sender,
            took: Duration::from_nanos(answered.saturating_sub(context.body_ns)),
            codes: &context.codes,
        });
        let Some(log) = &public.log else { return };
        let connection = ConnectionInfo::for_session(session);
        let method = sent_method(session);
        let line = Line {
            time: core.clock.now().to_rfc3339_opts(SecondsFormat::Micros, true),
            request_id: &context.request_id,
            trace_id: context.trace_id(),
            // In HTTP/2 a refused one may be as long as a head.
            method: method.get(..METHOD_BYTES_MAX).unwrap_or(method),
            route: context.labels.route,
            status,
            codes: context.codes.iter().map(|code| code.as_str()).collect(),
            duration_us: took / 1_000,
            bytes_in: session.body_bytes_read(),
            bytes_out: session.body_bytes_sent(),
            client: &context.labels.partner,
            peer: connection.is_some().then_some(context.client_address),
            protocol: format!("{:?}", session.req_header().version),
            tls: connection.map_or("", |connection| &connection.tls),
        };
        log.write(&line, &core.metrics);
    }

    /// Ends the request's span, on every listener that has one.
    pub(super) fn end_span(&self, session: &ServerSession, context: &mut Context) {
        let Some(mut span) = context.span.take().filter(Span::is_recorded) else { return };
        let method = known_method(sent_method(session));
        let route = match self.listener {
            ListenerKind::Public(_) => context.labels.route,
            ListenerKind::Private(PrivateListener::Connectors) => "connectors",
            ListenerKind::Private(_) => "operators",
        };
        span.rename(|| format!("{method} {route}"));
        span.set("rampart.request_id", &context.request_id);
        span.set("http.request.method", method);
        span.set("http.route", route);
        span.set("network.protocol.name", "http");
        if !context.labels.partner.is_empty() {
            span.set("rampart.partner", &context.labels.partner);
        }
        if !context.codes.is_empty() {
            let codes: Vec<_> = context.codes.iter().map(|code| code.as_str()).collect();
            span.set("rampart.error_codes", &codes.join(","));
        }
        match answered(session) {
            Some(status) => {
                span.set_number("http.response.status_code", status.as_u16());
                if status.is_server_error() {
                    span.fail("the answer is an error of the server");
                }
            }
            None => span.fail("the client did not wait for the answer"),
        }
    }
}

/// The method as the client sent it; empty if its head was refused and had none.
fn sent_method(session: &ServerSession) -> &str {
    // A connection of HTTP/1 ends with the head that is refused.
    let connection = ConnectionInfo::for_session(session);
    let refused = connection.and_then(|connection| connection.refused_method.get());
    refused.map_or_else(|| session.req_header().method.as_str(), |method| &**method)
}

/// The method of a request in its span: of others a caller could make any text.
fn known_method(method: &str) -> &str {
    match method {
        known @ ("GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS") => known,
        _ => "_OTHER",
    }
}
