//! What the head alone decides, in the order of section 1.5 of the contract.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::{Method, StatusCode, header};
use pingora_core::protocols::http::ServerSession;
use rampart_core::error::Code;
use rampart_core::exchange::{Head, Reply};

use super::Gateway;
use crate::connection;
use crate::context::{Context, request_id};
use crate::exchange::{self, NoBody};
use crate::framing::{self, Refused, TARGET_BYTES_MAX};
use crate::normal_form;

/// A body that every route takes; only above it the route's own bound is looked up.
const SMALLEST_BOUND: u64 = rampart_core::endpoint::BODY_BYTES_MAX as u64;
/// Largest body that is read and thrown away to keep the connection after a refusal.
const SKIPPED_BYTES_MAX: u64 = 64 * 1024;

impl Gateway {
    /// The head as the core takes it.
    ///
    /// # Errors
    /// The finished answer.
    pub(super) fn head(
        &self,
        session: &ServerSession,
        context: &mut Context,
    ) -> Result<Head, Box<Reply>> {
        let request = session.req_header();
        context.method.clone_from(&request.method);
        context.peer = peer(session);
        let sent = request.headers.get("x-request-id").map(|value| value.as_bytes());
        context.request_id = request_id(sent, &self.core.clock);
        self.check_size(session, context)?;
        self.check_address(session, context)?;
        let path = request.uri.path();
        if request.method == Method::CONNECT || !normal_form::is_normal(path) {
            return Err(Box::new(self.nowhere(context)));
        }
        Ok(Head {
            method: request.method.clone(),
            path: path.to_owned(),
            query: request.uri.query().map(str::to_owned),
            headers: request.headers.clone(),
            peer: context.peer.unwrap_or(UNKNOWN),
            request_id: context.request_id.clone(),
        })
    }

    fn check_size(&self, session: &ServerSession, context: &Context) -> Result<(), Box<Reply>> {
        let request = session.req_header();
        if request.raw_path().len() > TARGET_BYTES_MAX {
            return Err(Box::new(self.refused(context, Refused::TargetTooLong)));
        }
        if session.is_http2() {
            framing::check_headers(&request.headers)
                .map_err(|why| Box::new(self.refused(context, why)))?;
        }
        let declared = exchange::declared_length(&request.headers).unwrap_or(0);
        if declared > SMALLEST_BOUND {
            let (bound, code) = self.core.body_bound(&request.method, request.uri.path());
            if declared > bound as u64 {
                return Err(Box::new(self.no_body(context, NoBody::TooLarge, code)));
            }
        }
        Ok(())
    }

    /// The rate of an address, before anybody has proven who they are.
    fn check_address(&self, session: &ServerSession, context: &Context) -> Result<(), Box<Reply>> {
        let find = || self.addresses.bucket(network(context.peer.unwrap_or(UNKNOWN)));
        let now = self.core.clock.monotonic_ns();
        let bucket = match connection::of(session) {
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
            let mut reply = self.core.refuse(id, status, Code::ER998, "there are no tunnels");
            reply.set("allow", "");
            return reply;
        }
        let detail = "the path is not in normal form";
        self.core.refuse(id, StatusCode::NOT_FOUND, Code::ER998, detail)
    }
}

/// Stands for a peer that left so early that the operating system forgot its address.
const UNKNOWN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

fn peer(session: &ServerSession) -> Option<IpAddr> {
    let address = session.client_addr()?.as_inet()?;
    Some(address.ip().to_canonical())
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
