//! The fault campaign: a partner confirms quotes and keeps a journal while edges, Postgres and the
//! network between them break. Afterwards nothing that was acknowledged is lost or doubled.
//!
//! `make chaos` runs it in full, `make test` in short; `campaign` in the harness knows the words of
//! the command line.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "what a test cannot do must fail it")]

mod clocks;
mod commits;
mod descriptors;
mod disk;
mod fleet;
mod hangs;
mod kills;
mod network;
mod receivers;
mod rows;
mod stops;
mod syncs;
mod upgrades;

use std::process::ExitCode;

use rampart_tests::campaign::{self, Family, Total};
use rampart_tests::family;

/// Columns of the table.
const COLUMNS: [&str; 9] =
    ["fault", "injected", "confirms", "answers", "lost", "doubled", "p99", "worst", "recovery"];

/// Confirms of all families in full.
const CONFIRMS: Total = Total { column: "confirms", least: 100_000 };

/// Faults, from those that end a process to those that only delay.
const FAMILIES: [Family; 16] = [
    family!("edges-killed", kills::edges),
    family!("postgres-killed", kills::postgres),
    family!("commit-answers-lost", commits::answers_lost),
    family!("connections-cut", network::cut),
    family!("network-slow", network::slow),
    family!("postgres-stopped", hangs::stopped),
    family!("network-silent", hangs::silent),
    family!("network-garbled", hangs::garbled),
    family!("disk-full", disk::full),
    family!("syncs-failed", syncs::failed),
    family!("descriptors-exhausted", descriptors::exhausted),
    family!(waits "clocks-wrong", clocks::wrong),
    family!("receivers-dead", receivers::dead),
    family!("edges-stopped", stops::drained),
    family!("upgrades", upgrades::upgrades),
    family!("broken-rows", rows::broken),
];

fn main() -> ExitCode {
    campaign::run(&COLUMNS, &CONFIRMS, &FAMILIES)
}
