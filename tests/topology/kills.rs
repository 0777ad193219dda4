//! The leader is killed again and again while a partner confirms, reads and buys.

use std::time::Duration;

use rampart_core::platform::clock::Clock;
use rampart_tests::campaign::table;
use rampart_tests::deadline::after;
use rampart_tests::journal::{Differences, Fault};
use rampart_tests::load::{Load, Pace};
use tokio::sync::watch;

use crate::catalogue::Readers;
use crate::purchase::Purchase;
use crate::stack::Stack;

/// Confirms in flight, and the pause before one is sent again.
const PACE: Pace = Pace { workers: 8, pause: Duration::from_millis(100) };
/// Acknowledged confirms between two kills.
const CONFIRMS_APART: usize = 100;
/// Milliseconds below which a random pause follows them.
const APART_MS_MAX: u64 = 3_000;
/// Longest time from a kill to the next acknowledged confirm.
const WRITES_WITHIN: Duration = Duration::from_secs(30);

/// Columns of the table.
const COLUMNS: [&str; 9] = [
    "kill",
    "killed",
    "new leader",
    "writes after s",
    "member after s",
    "acknowledged",
    "lost",
    "doubled",
    "catalogue not 200",
];

/// Findings of a run.
#[derive(Default)]
struct Findings {
    rows: Vec<Vec<String>>,
    longest: Duration,
    wrong: Vec<String>,
}

/// Kills the leader so many times, prints the table, and gives everything that must not be, a sentence
/// each.
pub(crate) async fn kill_leaders(stack: &mut Stack, kills: usize) -> Vec<String> {
    let addresses = stack.edges.iter().map(|edge| edge.address).collect();
    let load = Load::start(&stack.partner, &watch::Sender::new(addresses), PACE);
    let readers = Readers::start(stack.edges.iter().map(|edge| stack.partner.at(edge.address)));
    let mut findings = Findings::default();
    for kill in 1..=kills {
        let row = kill_leader(stack, &load, &readers, &mut findings, kill).await;
        println!("{}", row.join("  "));
        findings.rows.push(row);
    }
    let Findings { rows, longest, mut wrong } = findings;
    println!("\n{}", table(&COLUMNS.map(str::to_owned), &rows));
    println!(
        "{} confirms acknowledged, {} reads of the catalogue, writes back after {} at most",
        load.acknowledged(),
        readers.answers(),
        seconds(longest),
    );
    let fault = Fault { injected: kills, recovery: longest };
    let report = load.finish().await.reconcile(&stack.look().await, &fault).await;
    wrong.extend(report.wrong);
    if readers.others() > 0 {
        wrong.push(format!("{} reads of the catalogue were not answered 200", readers.others()));
    }
    stack.ready().await;
    wrong.extend(stack.unseen(kills).await);
    wrong
}

/// Kills the leader once, with a purchase in the middle, and has the member come back; a row.
async fn kill_leader(
    stack: &mut Stack,
    load: &Load,
    readers: &Readers,
    findings: &mut Findings,
    kill: usize,
) -> Vec<String> {
    let clock = Clock::system();
    load.reach(load.acknowledged() + CONFIRMS_APART).await;
    let (first, second) = (&stack.edges[kill % 2], &stack.edges[(kill + 1) % 2]);
    let purchase = Purchase::begin(&stack.partner, first).await;
    load.acknowledge(&purchase.quote, purchase.order);
    let leader = stack.patroni.leader(None).await;
    after(Duration::from_millis(clock.random_u64().unwrap() % APART_MS_MAX)).await;

    let (began, others) = (clock.monotonic_ns(), readers.others());
    stack.patroni.kill(leader);
    let next = stack.patroni.leader(Some(leader)).await;
    // Whatever is acknowledged from here on was written by the new leader.
    load.reach(load.acknowledged() + 1).await;
    let writes = Duration::from_nanos(clock.monotonic_ns() - began);
    purchase.complete(&stack.partner, second).await;

    let Differences { lost, doubled, .. } = load.differences(&stack.look().await).await;
    let began = clock.monotonic_ns();
    stack.patroni.restart(&stack.site, leader).await;
    let member = Duration::from_nanos(clock.monotonic_ns() - began);

    findings.longest = findings.longest.max(writes);
    let mut require = |holds: bool, wrong: String| {
        if !holds {
            findings.wrong.push(format!("kill {kill}: {wrong}"));
        }
    };
    require(writes <= WRITES_WITHIN, format!("writes were back after {}", seconds(writes)));
    require(lost == 0 && doubled == 0, format!("{lost} orders were lost, {doubled} doubled"));
    let name = |place: usize| stack.patroni.members()[place].name.clone();
    vec![
        kill.to_string(),
        name(leader),
        name(next),
        seconds(writes),
        seconds(member),
        load.acknowledged().to_string(),
        lost.to_string(),
        doubled.to_string(),
        (readers.others() - others).to_string(),
    ]
}

/// Seconds with one digit.
fn seconds(time: Duration) -> String {
    let tenths = time.as_millis() / 100;
    format!("{}.{}", tenths / 10, tenths % 10)
}
