//! Rampart beside its peers on one machine: the same work in the same minute, and what one costs
//! in terms of the other. `make bench` runs it; the README says how to read what it prints.
//!
//! `environment` has the folder and the databases, `peers` the other servers, `paths` what is
//! compared, `comparison` the arithmetic from rounds to a row, `report` the output, `training` the
//! load for the profile of the release build.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::float_arithmetic,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a benchmark that cannot measure must end at once, and what it measures is no money"
)]

mod arguments;
mod comparison;
mod environment;
mod generators;
mod hyper_peer;
mod instructions;
mod load_client;
mod paths;
mod peers;
mod processes;
mod report;
mod side;
mod training;

use std::time::Duration;

use clap::Parser as _;
use rampart_core::platform::clock::Clock;

use crate::arguments::{Arguments, Task};

fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let arguments = Arguments::parse();
    match arguments.task {
        Some(Task::HyperPeer(peer)) => hyper_peer::serve(&peer),
        Some(Task::Train) => training::run(&Clock::system()),
        None => {
            let clock = Clock::system();
            let began = clock.monotonic_ns();
            let rows = paths::run(&arguments, &clock);
            assert!(!rows.is_empty(), "no path has a name like that");
            let took = Duration::from_nanos(clock.monotonic_ns() - began);
            report::write(&rows, took, &environment::folder());
        }
    }
}
