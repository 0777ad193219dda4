//! Path p, second part: partners with a policy of their own each, what one takes of memory, whether a
//! call knows how many there are, and how long an edge takes to start over many.

use std::time::Duration;

use rampart_core::platform::clock::Clock;

use super::{CATALOGUE, Run};
use crate::comparison::{Better, Combine, Comparison, Measure, Row};
use crate::environment::{CROWDED, Database, Environment};
use crate::generators::Target;
use crate::load_client::{each, request};
use crate::processes::memory_of;
use crate::side::{Cores, Side};

/// Connections over which each partner asks once.
const CONNECTIONS: usize = 8;

const MEMORY: Row = Row {
    path: "p",
    what: "a policy of its own, 1,000 partners",
    peer: "the same partners without",
    unit: "KiB of memory more per partner",
    better: Better::Lower,
    combine: Combine::Difference,
    reach: 200.0,
    aim: 100.0,
    left_out: true,
    rounds_max: 3,
};
const ONE: Row = Row {
    what: "policy call, one of 1,000 partners",
    peer: "one of 10",
    unit: "time of a call",
    combine: Combine::Ratio,
    reach: 1.1,
    aim: 1.03,
    rounds_max: usize::MAX,
    ..MEMORY
};
const ALL: Row =
    Row { what: "policy call, 1,000 partners in turn", peer: "10 partners in turn", ..ONE };

const START: Row = Row {
    what: "start, 10,000 partners with a policy",
    peer: "10 partners with one",
    unit: "seconds more until it answers",
    reach: 5.0,
    aim: 1.0,
    ..MEMORY
};

/// The rows.
pub(super) const ROWS: [Row; 4] = [MEMORY, ONE, ALL, START];

/// Measures them: in one database ten clients have a policy, in the other one a thousand, each a
/// component of its own. The time of a call is what the edge says of it: an instance is made, asked
/// and thrown away. In turn, so many partners' code and memory are cold to the processor: what the
/// machine costs is in that row too.
pub(super) fn compare(
    run: &mut Run<'_>,
    environment: &Environment,
    few: &Database,
    many: &Database,
) {
    if run.wants(&[MEMORY]) {
        let many = Partners::of(environment, many);
        run.compare(Comparison {
            row: MEMORY,
            ours: Box::new(|_| many.memory_of_each(true)),
            peer: Box::new(|_| many.memory_of_each(false)),
        });
        many.activate(true);
    }
    if run.wants(&[ONE, ALL]) {
        let partners = [many, few].map(|database| Partners::of(environment, database));
        let [many, few] = partners.each_ref().map(|partners| (partners, partners.edge()));
        for (row, count) in [(ONE, 1), (ALL, usize::MAX)] {
            run.compare(Comparison {
                row,
                ours: many.0.calls(&many.1, count),
                peer: few.0.calls(&few.1, count),
            });
        }
    }
    if run.wants(&[START]) {
        let crowded = Database::open(environment, CROWDED);
        run.compare(Comparison {
            row: START,
            ours: starts(environment, &crowded),
            peer: starts(environment, few),
        });
    }
}

/// Seconds from the start of an edge until it has answered a partner.
fn starts<'a>(environment: &'a Environment, database: &'a Database) -> Measure<'a> {
    Box::new(move |_| {
        let clock = Clock::system();
        let side = Side::start(environment, database, Cores::Any);
        let took = Duration::from_nanos(clock.monotonic_ns());
        drop(side);
        took.as_secs_f64()
    })
}

/// Clients of a database that have a policy of their own.
struct Partners<'a> {
    environment: &'a Environment,
    database: &'a Database,
    /// Their API keys.
    keys: Vec<String>,
}

impl<'a> Partners<'a> {
    fn of(environment: &'a Environment, database: &'a Database) -> Self {
        let keys = "select 'rk_test_' || public_id || '_' || slug from api_key \
             join client using (client_id) join policy_version using (client_id) \
             where slug like 'client-%' order by slug";
        let keys = sqlx::query_scalar(keys).fetch_all(&database.pool);
        let keys = environment.runtime.block_on(keys).unwrap();
        Self { environment, database, keys }
    }

    /// An edge that serves them.
    fn edge(&self) -> Side<'a> {
        Side::start(self.environment, self.database, Cores::First)
    }

    /// Has edges that start from now on use their policies, or not.
    fn activate(&self, active: bool) {
        let switch = "update policy_version set active = $1 from client \
             where client.client_id = policy_version.client_id and slug like 'client-%'";
        let switch = sqlx::query(switch).bind(active).execute(&self.database.pool);
        self.environment.runtime.block_on(switch).unwrap();
    }

    /// KiB that a new edge has for each of them, once all have asked.
    fn memory_of_each(&self, active: bool) -> f64 {
        self.activate(active);
        let side = self.edge();
        let read = format!("GET {CATALOGUE}");
        let read = |key: &String| request(&read, &[&format!("x-api-key: {key}")], "");
        let reads = self.keys.iter().map(read).collect();
        let reading = each(side.address(), CONNECTIONS, reads);
        let (answers, _) = self.environment.runtime.block_on(reading);
        answers.into_iter().for_each(|answer| drop(answer.ok()));
        let expected = if active { float(self.keys.len()) } else { 0.0 };
        assert_eq!(Calls::of(&side).count, expected, "a call for each partner");
        float(usize::try_from(memory_of(side.process()) >> 10).unwrap()) / float(self.keys.len())
    }

    /// Seconds of a call while the first `count` of them read in turn.
    fn calls<'b>(&self, side: &'b Side<'_>, count: usize) -> Measure<'b> {
        let keys = &self.keys[..self.keys.len().min(count)];
        let name = format!("keys-{}", keys.len());
        let keys = self.environment.write(&name, &keys.join("\n"), &[]);
        let values = [("keys", keys.to_str().unwrap())];
        let script = include_str!("../peers/keys.lua");
        let script = self.environment.write(&format!("{name}.lua"), script, &values);
        let target = Target::get(side.address(), CATALOGUE, None).scripted(&script);
        Box::new(move |time| {
            let before = Calls::of(side);
            target.http1(time);
            let after = Calls::of(side);
            (after.seconds - before.seconds) / (after.count - before.count)
        })
    }
}

/// Calls of policies that order methods, of all partners of an edge so far.
struct Calls {
    seconds: f64,
    count: f64,
}

impl Calls {
    fn of(side: &Side<'_>) -> Self {
        let text = side.metrics();
        let sample = |name: &str| {
            let sample =
                format!("rampart_policy_duration_seconds_{name}{{kind=\"method-order\"}} ");
            let value = text.lines().find_map(|line| line.strip_prefix(&*sample));
            value.map_or(0.0, |value| value.parse().unwrap())
        };
        Self { seconds: sample("sum"), count: sample("count") }
    }
}

fn float(count: usize) -> f64 {
    u32::try_from(count).unwrap().into()
}
