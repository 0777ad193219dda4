//! The metrics and the access log of a request that is over: the one place of accounting.

use std::time::Duration;

use chrono::SecondsFormat;
use http::Version;
use pingora_core::protocols::http::ServerSession;
use rampart_core::platform::metrics::FinishedRequest;

use super::access_log::Line;
use super::context::Context;
use super::{Gateway, Listener};
use crate::server::{ConnectionInfo, METHOD_BYTES_MAX};

impl Gateway {
    /// Counts and logs a request that is over, however it ended. Private listeners have neither.
    pub(super) fn observe(&self, session: &ServerSession, context: &Context) {
        let Listener::Public(public) = &self.listener else { return };
        let core = &self.core;
        let status = session.response_written().map_or(0, |head| head.status.as_u16());
        let ended = context.ended_ns.unwrap_or_else(|| core.clock.monotonic_ns());
        let took = ended.saturating_sub(context.began_ns);
        core.metrics.request(&FinishedRequest {
            route: context.route,
            partner: &context.client,
            partner_class: context.partner_class,
            status,
            took: Duration::from_nanos(took),
            codes: &context.codes,
        });
        if !public.log.is_on() {
            return;
        }
        let connection = ConnectionInfo::for_session(session);
        let written = public.log.write(&Line {
            time: core.clock.now().to_rfc3339_opts(SecondsFormat::Micros, true),
            request_id: &context.request_id,
            // In HTTP/2 a refused one may be as long as a head.
            method: context
                .method
                .as_str()
                .get(..METHOD_BYTES_MAX)
                .unwrap_or(context.method.as_str()),
            route: context.route,
            status,
            codes: context.codes.iter().map(|code| code.as_str()).collect(),
            duration_us: took / 1_000,
            bytes_in: session.body_bytes_read(),
            bytes_out: session.body_bytes_sent(),
            client: &context.client,
            peer: connection.is_some().then_some(context.client_address),
            protocol: protocol(session.req_header().version),
            tls: connection.map_or("", |connection| &connection.tls),
        });
        if !written {
            core.metrics.log_lines_dropped.with_label_values::<&str>(&[]).inc();
        }
    }
}

fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        _ => "HTTP/1.1",
    }
}
