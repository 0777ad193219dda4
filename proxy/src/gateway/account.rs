//! What is counted and logged of a request that is over.

use std::time::Duration;

use chrono::SecondsFormat;
use http::Version;
use pingora_core::protocols::http::ServerSession;

use super::Gateway;
use crate::access_log::Line;
use crate::context::Context;

/// What is known of the request beside its context.
#[derive(Debug, Default)]
pub(super) struct Seen<'a> {
    /// Status of the answer; 0 when there was none.
    pub(super) status: u16,
    /// Bytes of the request's body.
    pub(super) bytes_in: usize,
    /// Bytes of the answer's body.
    pub(super) bytes_out: usize,
    /// Version of HTTP.
    pub(super) version: Version,
    /// Version of TLS.
    pub(super) tls: &'a str,
}

impl<'a> Seen<'a> {
    /// As `session` has it.
    pub(super) fn of(session: &'a ServerSession) -> Self {
        let tls = session.digest().and_then(|digest| digest.ssl_digest.as_ref());
        Self {
            status: session.response_written().map_or(0, |head| head.status.as_u16()),
            bytes_in: session.body_bytes_read(),
            bytes_out: session.body_bytes_sent(),
            version: session.req_header().version,
            tls: tls.map_or("", |tls| tls.version.as_ref()),
        }
    }
}

impl Gateway {
    /// Counts the request and writes its line.
    pub(super) fn account(&self, context: &Context, seen: &Seen<'_>) {
        let Self { core, log, .. } = self;
        let ended = context.ended_ns.unwrap_or_else(|| core.clock.monotonic_ns());
        let took = ended.saturating_sub(context.began_ns);
        core.metrics.request(
            context.route,
            &context.client,
            seen.status,
            Duration::from_nanos(took),
            &context.codes,
        );
        if !log.is_on() {
            return;
        }
        log.write(&Line {
            time: core.clock.now().to_rfc3339_opts(SecondsFormat::Micros, true),
            request_id: &context.request_id,
            method: context.method.as_str(),
            route: context.route,
            status: seen.status,
            codes: context.codes.iter().map(|code| code.as_str()).collect(),
            duration_us: took / 1_000,
            bytes_in: seen.bytes_in,
            bytes_out: seen.bytes_out,
            client: &context.client,
            peer: context.peer,
            protocol: protocol(seen.version),
            tls: seen.tls,
        });
    }
}

fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        _ => "HTTP/1.1",
    }
}
