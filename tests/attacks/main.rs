//! The attack suite: what somebody without rights, or with the rights of one partner, can send.
//! Nothing of it may be accepted, and a partner that behaves well beside it, from another address,
//! must not notice.
//!
//! `make attack` runs it in full, `make test` in short; `campaign` in the harness knows the words
//! of the command line.

#![expect(clippy::unwrap_used, reason = "what a test cannot do must fail it")]

mod bombs;
mod floods;
mod guesses;
mod hoarding;
mod keys;
mod policies;
mod quotes;
mod rebinding;
mod slow;
mod smuggling;
mod ssrf;
mod target;
mod tenants;
mod tokens;
mod verdict;

use std::process::ExitCode;

use rampart_tests::campaign::{self, Family, Total};
use rampart_tests::family;

/// Columns of the table.
const COLUMNS: [&str; 8] =
    ["attack", "attempts", "accepted", "neighbour", "failed", "p99 alone", "p99 beside", "ratio"];

/// Attempts of all families in full.
const ATTEMPTS: Total = Total { column: "attempts", least: 1_500 };

/// Attacks, from the bytes of a connection up to what operators install.
const FAMILIES: [Family; 16] = [
    family!("smuggling", smuggling::ambiguous),
    family!("split-messages", smuggling::split),
    family!(waits "slow-senders", slow::senders),
    family!(waits "slow-readers", slow::readers),
    family!("http2-floods", floods::frames),
    family!(waits "hoarded-connections", hoarding::connections),
    family!("forged-tokens", tokens::forged),
    family!("forged-keys", keys::forged),
    family!("forged-quotes", quotes::forged),
    family!("other-tenants", tenants::matrix),
    family!("ssrf", ssrf::callbacks),
    family!(waits "redirects", rebinding::redirects),
    family!(waits "rebinding", rebinding::names),
    family!("guesses", guesses::secrets),
    family!("hostile-policies", policies::hostile),
    family!("compile-bombs", bombs::compiled),
];

fn main() -> ExitCode {
    campaign::run(&COLUMNS, &ATTEMPTS, &FAMILIES)
}
