//! Paths c, c2 and c3: a quote, under the built-in fees, under a fee policy, and of a live partner. Every
//! answer is a new quote, sealed for its client.

use super::catalogue::{cpu_at_pace, http1, http1_cpu, more};
use super::{CATALOGUE, QUOTE, Run};
use crate::comparison::{Better, Combine, Comparison, Row};
use crate::generators::Target;
use crate::load_client::request;
use crate::peers;
use crate::side::Side;

const PATH: &str = "/api/v1/buy/quote";

const NGINX: Row = Row {
    path: "c",
    what: "quote",
    peer: "nginx, fixed body",
    unit: "CPU per request, HTTP/1.1",
    better: Better::Lower,
    combine: Combine::Ratio,
    reach: 1.8,
    aim: 1.4,
    left_out: false,
    rounds_max: usize::MAX,
};
const POLICY: Row = Row {
    path: "c2",
    what: "quote with a policy",
    peer: "c",
    unit: "µs of CPU more",
    combine: Combine::Difference,
    reach: 10.0,
    aim: 6.0,
    ..NGINX
};

/// The same at one pace for both: asked as fast as it answers, the slower side finds the load
/// generator asleep more often, and pays for waking it.
const NGINX_PACED: Row = Row { unit: "CPU per request, 8,000 a second", left_out: true, ..NGINX };

const LIVE: Row =
    Row { path: "c3", what: "quote of a live partner", peer: "c", reach: 1.1, aim: 1.0, ..NGINX };

/// The rows.
pub(super) const ROWS: [Row; 4] = [NGINX, NGINX_PACED, POLICY, LIVE];

/// Quotes of the partner without policies.
pub(super) fn quotes(side: &Side<'_>) -> Target {
    quotes_of(side, &side.plain)
}

fn quotes_of(side: &Side<'_>, credential: &str) -> Target {
    let script = include_str!("../peers/quote.lua");
    let script = side.environment.write("quote.lua", script, &[("body", QUOTE)]);
    side.get(PATH, credential).scripted(&script)
}

/// Measures them.
pub(super) fn compare(run: &mut Run<'_>, side: &Side<'_>) {
    let plain = quotes(side);
    let ask = |key: &str| request(&format!("POST {PATH}"), &[key], QUOTE);
    if run.wants(&[NGINX, NGINX_PACED]) {
        // The answer of path a, so that the peer is the same.
        let (nginx, _) = peers::nginx(side.environment, &side.body(CATALOGUE));
        run.compare(http1(NGINX, side, &plain, &nginx, nginx.get()));
        let read = request("GET /", &[], "");
        run.compare(Comparison {
            row: NGINX_PACED,
            ours: Box::new(cpu_at_pace(side.process(), side.address(), ask(&side.plain))),
            peer: Box::new(cpu_at_pace(nginx.process(), nginx.address, read)),
        });
    }
    if run.wants(&[POLICY]) {
        run.compare(more(POLICY, side, ask(&side.ruled), ask(&side.plain)));
    }
    if run.wants(&[LIVE]) {
        let live = quotes_of(side, &side.live_partner("live-quoter").key);
        run.compare(Comparison {
            row: LIVE,
            ours: Box::new(move |time| http1_cpu(side, &live, time)),
            peer: Box::new(|time| http1_cpu(side, &plain, time)),
        });
        side.delete_routes();
    }
}
