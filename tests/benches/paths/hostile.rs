//! Path p, first part: what a partner feels of others whose policies loop, trap and grow.

use std::time::Duration;

use futures::future::join_all;
use http::Method;
use rampart_tests::guests::component;
use serde_json::json;

use super::Run;
use super::reader::Reader;
use crate::comparison::{Better, Combine, Comparison, Row};
use crate::load_client::{paced, request};
use crate::side::{Side, credential};

/// Misbehaviour of the policies, as settings of the hostile guest: a partner each.
const MODES: [&str; 3] = ["loop", "panic", "allocate"];
/// The country in which they do it: an admission asks about others.
const COUNTRY: &str = "NL";
/// Another one.
const ELSEWHERE: &str = "AT";
/// The time between two requests of each of these partners: as many as the default rate grants.
const PACE: Duration = Duration::from_millis(20);
/// Failures in a row after which an edge stops asking, for seconds (`Breaker::FAILURES_MAX`),
/// and how many are enough that ran into a bound.
const FAILURES: usize = 5;
const COSTLY: usize = 3;

const BESIDE: Row = Row {
    path: "p",
    what: "beside policies that always fail",
    peer: "beside the same policies when they behave",
    unit: "p99 latency at 1,000 requests a second",
    better: Better::Lower,
    combine: Combine::Ratio,
    reach: 1.1,
    aim: 1.0,
    left_out: false,
    rounds_max: usize::MAX,
};
const CUNNING: Row = Row { what: "beside policies that fail 4 of 5", left_out: true, ..BESIDE };

/// The rows.
pub(super) const ROWS: [Row; 2] = [BESIDE, CUNNING];

/// Measures them. Both sides are the same partners with the same component, sending the same quotes
/// at the same pace; only its setting says whether it misbehaves. It is set anew before each
/// measurement, outside the time that counts: a new version has a breaker of its own, so that every
/// measurement has its loops, traps and growths, and what follows them.
///
/// A breaker stops a policy that fails whenever it is asked. In the second row every fifth quote is
/// for another country, where the policy behaves: no five fail in a row.
pub(super) fn compare(run: &mut Run<'_>, side: &Side<'_>) {
    if !run.wants(&ROWS) {
        return;
    }
    let (reader, hostile) = (Reader::of(side), Hostile::make(side));
    for (row, behaving) in [(BESIDE, 0), (CUNNING, 1)] {
        let quotes =
            [vec![quote(COUNTRY); FAILURES - 1], vec![quote(ELSEWHERE); behaving]].concat();
        run.compare(Comparison {
            row,
            ours: Box::new(|time| {
                hostile.set(true);
                let (p99, failed) = hostile.beside(&reader, &quotes, time);
                for (mode, failed) in MODES.iter().zip(failed) {
                    assert!(failed >= COSTLY, "{mode}: {failed} failures");
                }
                p99
            }),
            peer: Box::new(|time| {
                hostile.set(false);
                let (p99, failed) = hostile.beside(&reader, &quotes, time);
                assert_eq!(failed, [0; MODES.len()], "policies that behave do not fail");
                p99
            }),
        });
    }
}

/// The body of a quote in a country.
fn quote(country: &str) -> String {
    let asked = json!({
        "currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 250,
        "countryCode": country,
    });
    asked.to_string()
}

/// Partners with the hostile guest as their fee policy, one for each mode.
struct Hostile<'a> {
    side: &'a Side<'a>,
    /// Headers with their API keys.
    keys: Vec<String>,
}

impl<'a> Hostile<'a> {
    fn make(side: &'a Side<'a>) -> Self {
        let keys = side.environment.runtime.block_on(async {
            let mut keys = Vec::new();
            for mode in MODES {
                let partner = side.edge.partner(mode).await;
                let path = format!("/admin/v1/partners/{mode}/policies/fee");
                let pushed = side.edge.admin_bytes(Method::PUT, &path, component("hostile")).await;
                pushed.assert_status(200);
                keys.push(credential(&partner));
            }
            keys
        });
        Self { side, keys }
    }

    /// Has the policies misbehave in [`COUNTRY`], or nowhere.
    fn set(&self, misbehaving: bool) {
        self.side.environment.runtime.block_on(async {
            for mode in MODES {
                let path = format!("/admin/v1/partners/{mode}/policies/fee/config");
                let chosen = if misbehaving { format!("{mode}@{COUNTRY}") } else { String::new() };
                let config = json!({"config": {"mode": chosen}});
                self.side.edge.admin(Method::PUT, &path, config).await.assert_status(200);
            }
        });
    }

    /// The reader's p99 while these partners ask for quotes, and how often their policies failed.
    fn beside(
        &self,
        reader: &Reader<'_>,
        quotes: &[String],
        time: Duration,
    ) -> (f64, [usize; MODES.len()]) {
        let before = self.failures();
        let p99 = reader.p99(time, |time| {
            join_all(self.keys.iter().map(|key| {
                let quote = |body: &String| request("POST /api/v1/buy/quote", &[key], body);
                paced(self.side.address(), 1, quotes.iter().map(quote).collect(), PACE, time)
            }))
        });
        let after = self.failures();
        (p99, std::array::from_fn(|mode| after[mode] - before[mode]))
    }

    /// Failures of each partner's policy so far.
    fn failures(&self) -> [usize; MODES.len()] {
        let text = self.side.metrics();
        MODES.map(|mode| {
            let called = "rampart_policy_calls_total{kind=\"fee\",outcome=\"";
            let of = |line: &str| {
                let (outcome, rest) = line.strip_prefix(called)?.split_once('"')?;
                let count = rest.strip_prefix(&format!(",partner=\"{mode}\"}} "))?;
                (outcome != "ok" && outcome != "breaker").then(|| count.parse::<usize>().unwrap())
            };
            text.lines().filter_map(of).sum()
        })
    }
}
