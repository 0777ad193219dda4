//! What the head alone decides, in the order of section 1.5 of the contract.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::{HeaderMap, Method, StatusCode, Uri, header};
use pingora_core::protocols::http::ServerSession;
use rampart_core::endpoint::admission::Admission;
use rampart_core::http::reply::Reply;
use rampart_core::http::request::Head;
use rampart_core::platform::error::Code;

use super::Gateway;
use crate::connection::{self, Connection};
use crate::context::{Context, request_id};
use crate::exchange::{self, NoBody};
use crate::framing::{self, Refused, TARGET_BYTES_MAX};
use crate::normal_form;

/// A body that every route takes; only above it the route's own bound is looked up.
const SMALLEST_BOUND: u64 = rampart_core::http::request::BODY_BYTES_MAX as u64;
/// Largest body that is read and thrown away to keep the connection after a refusal.
const SKIPPED_BYTES_MAX: u64 = 64 * 1024;

/// A request as it comes in, and where from.
pub(super) struct Asked<'a> {
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    pub(super) query: Option<&'a str>,
    /// Length of the target as sent.
    pub(super) target_bytes: usize,
    pub(super) headers: Cow<'a, HeaderMap>,
    pub(super) peer: Option<IpAddr>,
    /// What is remembered of its connection.
    pub(super) connection: Option<&'a Connection>,
    /// The whole target, if it came over HTTP/2.
    pub(super) http2: Option<&'a Uri>,
}

impl<'a> Asked<'a> {
    /// What has arrived in `session`.
    pub(super) fn of(session: &'a ServerSession) -> Self {
        let request = session.req_header();
        Self {
            method: &request.method,
            path: request.uri.path(),
            query: request.uri.query(),
            target_bytes: request.raw_path().len(),
            headers: Cow::Borrowed(&request.headers),
            peer: peer(session),
            connection: connection::of(session),
            http2: session.is_http2().then_some(&request.uri),
        }
    }
}

impl Gateway {
    /// The request as the core takes it, admitted: its size and its path are sound, its route is
    /// known, its address and its client are within their rates.
    ///
    /// # Errors
    /// The finished answer.
    pub(super) fn enter(
        &self,
        asked: Asked<'_>,
        context: &mut Context,
    ) -> Result<(Head, Admission), Box<Reply>> {
        context.method.clone_from(asked.method);
        context.peer = asked.peer;
        let sent = asked.headers.get("x-request-id").map(|value| value.as_bytes());
        context.request_id = request_id(sent, &self.core.clock);
        self.check_size(&asked, context)?;
        self.check_address(&asked, context)?;
        if asked.method == Method::CONNECT || !normal_form::is_normal(asked.path) {
            return Err(Box::new(self.nowhere(context)));
        }
        let head = Head {
            method: asked.method.clone(),
            path: asked.path.to_owned(),
            query: asked.query.map(str::to_owned),
            headers: asked.headers.into_owned(),
            peer: asked.peer.unwrap_or(UNKNOWN),
            request_id: context.request_id.clone(),
        };
        let admission = self.core.admit(&head)?;
        context.route = admission.route.path;
        context.client = admission.slug();
        Ok((head, admission))
    }

    fn check_size(&self, asked: &Asked<'_>, context: &Context) -> Result<(), Box<Reply>> {
        if asked.target_bytes > TARGET_BYTES_MAX {
            return Err(Box::new(self.refused(context, Refused::TargetTooLong)));
        }
        if let Some(target) = asked.http2 {
            framing::check_parsed(target, &asked.headers)
                .map_err(|why| Box::new(self.refused(context, why)))?;
        }
        let declared = exchange::declared_length(&asked.headers).unwrap_or(0);
        if declared > SMALLEST_BOUND {
            let (bound, code) = self.core.body_bound(asked.method, asked.path);
            if declared > bound as u64 {
                return Err(Box::new(self.no_body(context, NoBody::TooLarge, code)));
            }
        }
        Ok(())
    }

    /// The rate of an address, before anybody has proven who they are.
    fn check_address(&self, asked: &Asked<'_>, context: &Context) -> Result<(), Box<Reply>> {
        let find = || self.addresses.bucket(network(asked.peer.unwrap_or(UNKNOWN)));
        let now = self.core.clock.monotonic_ns();
        let bucket = match asked.connection {
            Some(connection) => connection.bucket(now, find),
            None => find(),
        };
        let decision = bucket.take(self.address_quota, now);
        if decision.allowed {
            return Ok(());
        }
        self.core.metrics.rate_limited.with_label_values(&["address", ""]).inc();
        Err(Box::new(self.core.refuse_rate(&context.request_id, &decision)))
    }

    fn nowhere(&self, context: &Context) -> Reply {
        let id = &context.request_id;
        if context.method == Method::CONNECT {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            let mut reply =
                self.core.refuse(id, status, Code::RouteNotFound, "there are no tunnels");
            reply.set("allow", "");
            return reply;
        }
        let detail = "the path is not in normal form";
        self.core.refuse(id, StatusCode::NOT_FOUND, Code::RouteNotFound, detail)
    }
}

/// Stands for a peer that left so early that the operating system forgot its address.
pub(super) const UNKNOWN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The other end of the connection of `session`.
pub(super) fn peer(session: &ServerSession) -> Option<IpAddr> {
    Some(session.client_addr()?.as_inet()?.ip().to_canonical())
}

/// What shares one rate: an IPv4 address, or the /64 network that one IPv6 customer gets.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

/// Whether what is left of the body may be read and thrown away after the answer, so that the
/// connection can go on. Not when the client waits for `100 Continue`: nobody knows whether the
/// body still comes (RFC 9110, section 10.1.1).
pub(super) fn can_skip_body(session: &ServerSession) -> bool {
    let headers = &session.req_header().headers;
    !session.is_http2()
        && !headers.contains_key(header::EXPECT)
        && exchange::declared_length(headers).is_some_and(|length| length <= SKIPPED_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_share_a_rate() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::3"), of("2001:db8:1:2:ffff::4"));
        assert_ne!(of("2001:db8:1:2::3"), of("2001:db8:1:3::3"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
