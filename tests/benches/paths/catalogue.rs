//! Paths a, a2, a3 and a4: a cached read of the catalogue with credential, limits and settings, without
//! and with a policy that orders the methods; the prices, a shorter body of the same kind; the catalogue
//! of a live partner, who is offered what routes lead to.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use super::{CATALOGUE, PRICES, Run};
use crate::comparison::{Better, Combine, Comparison, Row};
use crate::generators::Target;
use crate::load_client::{paced_awake, request};
use crate::peers::{self, Peer};
use crate::side::{Side, cpu_per_answer};

/// Connections of requests that come at a pace, and the time between two, all connections together:
/// half of what one core answers.
const CONNECTIONS: usize = 16;
const PACE: Duration = Duration::from_micros(125);

const NGINX: Row = Row {
    path: "a",
    what: "catalogue",
    peer: "nginx, fixed body",
    unit: "CPU per request, HTTP/1.1",
    better: Better::Lower,
    combine: Combine::Ratio,
    reach: 1.35,
    aim: 1.0,
    left_out: false,
    rounds_max: usize::MAX,
};
const NGINX_HTTP2: Row = Row { unit: "CPU per request, HTTP/2", reach: 1.5, aim: 1.3, ..NGINX };
const ENVOY: Row = Row { peer: "Envoy, JWT and rate limit", reach: 0.3, aim: 0.25, ..NGINX };
const HAPROXY: Row = Row { peer: "HAProxy, fixed body", left_out: true, ..NGINX };
const HYPER: Row = Row { peer: "hyper and rustls, fixed body", left_out: true, ..NGINX };
const POLICY: Row = Row {
    path: "a2",
    what: "catalogue with a policy",
    peer: "a",
    unit: "µs of CPU more",
    combine: Combine::Difference,
    reach: 10.0,
    aim: 6.0,
    ..NGINX
};

const PRICES_READ: Row =
    Row { path: "a3", what: "prices", peer: "a", reach: 1.0, aim: 0.9, ..NGINX };

const LIVE: Row =
    Row { path: "a4", what: "catalogue of a live partner", reach: 1.1, ..PRICES_READ };

/// The rows.
pub(super) const ROWS: [Row; 8] =
    [NGINX, NGINX_HTTP2, ENVOY, HAPROXY, HYPER, POLICY, PRICES_READ, LIVE];

/// Measures them.
pub(super) fn compare(run: &mut Run<'_>, side: &Side<'_>) {
    let environment = side.environment;
    let body = side.body(CATALOGUE);
    let plain = side.get(CATALOGUE, &side.plain);
    if run.wants(&[NGINX, NGINX_HTTP2]) {
        let (nginx, _) = peers::nginx(environment, &body);
        run.compare(http1(NGINX, side, &plain, &nginx, nginx.get()));
        run.compare(Comparison {
            row: NGINX_HTTP2,
            ours: Box::new(|time| http2_cpu(side, &plain, time)),
            peer: Box::new(|time| {
                cpu_per_answer(&[nginx.process()], time, |time| nginx.get().http2(time).0)
            }),
        });
    }
    if run.wants(&[ENVOY]) {
        let (envoy, token) = peers::envoy(environment, &body, &run.arguments.envoy);
        let asked = Target { credential: Some(token), ..envoy.get() };
        let ours = side.get(CATALOGUE, &side.token);
        run.compare(http1(ENVOY, side, &ours, &envoy, asked));
    }
    if run.wants(&[HAPROXY]) {
        let haproxy = peers::haproxy(environment, &body);
        run.compare(http1(HAPROXY, side, &plain, &haproxy, haproxy.get()));
    }
    if run.wants(&[HYPER]) {
        let hyper = peers::hyper(environment, &body);
        run.compare(http1(HYPER, side, &plain, &hyper, hyper.get()));
    }
    if run.wants(&[POLICY]) {
        let read = |key: &str| request(&format!("GET {CATALOGUE}"), &[key], "");
        run.compare(more(POLICY, side, read(&side.ruled), read(&side.plain)));
    }
    run.compare(Comparison {
        row: PRICES_READ,
        ours: Box::new(|time| http1_cpu(side, &side.get(PRICES, &side.plain), time)),
        peer: Box::new(|time| http1_cpu(side, &plain, time)),
    });
    if run.wants(&[LIVE]) {
        let live = side.get(CATALOGUE, &side.live_partner("live-reader").key);
        run.compare(Comparison {
            row: LIVE,
            ours: Box::new(move |time| http1_cpu(side, &live, time)),
            peer: Box::new(|time| http1_cpu(side, &plain, time)),
        });
        side.delete_routes();
    }
}

/// CPU of both over HTTP/1.1.
pub(super) fn http1<'a>(
    row: Row,
    side: &'a Side<'_>,
    ours: &Target,
    peer: &'a Peer,
    asked: Target,
) -> Comparison<'a> {
    let ours = ours.clone();
    Comparison {
        row,
        ours: Box::new(move |time| http1_cpu(side, &ours, time)),
        peer: Box::new(move |time| {
            cpu_per_answer(&[peer.process()], time, |time| asked.http1(time).0)
        }),
    }
}

/// CPU of an edge for each answer to these requests over HTTP/1.1.
pub(super) fn http1_cpu(side: &Side<'_>, asked: &Target, time: Duration) -> f64 {
    cpu_per_answer(&[side.process()], time, |time| asked.http1(time).0)
}

/// The same over HTTP/2.
pub(super) fn http2_cpu(side: &Side<'_>, asked: &Target, time: Duration) -> f64 {
    cpu_per_answer(&[side.process()], time, |time| asked.http2(time).0)
}

/// Extra cost of requests of one kind over those of another, at the same edge. Both come at the
/// same pace from a thread that never sleeps: as fast as each can be answered, the slower ones would
/// wake the load generator more often, and the edge would pay for that.
pub(super) fn more<'a>(
    row: Row,
    side: &'a Side<'_>,
    with: Bytes,
    without: Bytes,
) -> Comparison<'a> {
    let cpu = |request| cpu_at_pace(side.process(), side.address(), request);
    Comparison { row, ours: Box::new(cpu(with)), peer: Box::new(cpu(without)) }
}

/// CPU time of a process for each of the requests that come at the [`PACE`].
pub(super) fn cpu_at_pace(
    process: u32,
    address: SocketAddr,
    request: Bytes,
) -> impl Fn(Duration) -> f64 {
    move |time| {
        let load = |time| paced_awake(address, CONNECTIONS, request.clone(), PACE, time);
        cpu_per_answer(&[process], time, load)
    }
}
