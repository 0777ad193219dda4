//! A whole installation on one machine, whose database's leader is killed again and again: nothing that
//! was acknowledged is lost or doubled, writes come back soon, reads of the catalogue go on.
//!
//! `make topology` runs it. It needs Patroni and etcd, which `make test` does not, and is not built there.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "what a test cannot do must fail it")]

mod catalogue;
mod haproxy;
mod kills;
mod patroni;
mod prometheus;
mod purchase;
mod site;
mod stack;

use std::process::ExitCode;
use std::time::Duration;

use crate::stack::Stack;

/// Kills of a run that is told no other number.
const KILLS: usize = 20;
/// Time for what goes on when everything has ended.
const END_WITHIN: Duration = Duration::from_secs(5);

/// The words of the command line.
struct Arguments {
    full: bool,
    list: bool,
    kills: usize,
}

impl Arguments {
    /// Options of cargo's own harness, and its filters, mean nothing here.
    fn read(words: impl Iterator<Item = String>) -> Self {
        let mut read = Self { full: false, list: false, kills: KILLS };
        for word in words {
            match word.as_str() {
                "--full" => read.full = true,
                "--list" => read.list = true,
                word => read.kills = word.parse().unwrap_or(read.kills),
            }
        }
        read
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::read(std::env::args().skip(1));
    if arguments.list {
        println!("topology: test");
        return ExitCode::SUCCESS;
    }
    if !arguments.full {
        println!("the topology runs by `make topology`");
        return ExitCode::SUCCESS;
    }
    // A panic of the harness would say which provider is missing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let wrong = runtime.block_on(async {
        let mut stack = Stack::start().await;
        kills::kill_leaders(&mut stack, arguments.kills).await
    });
    for wrong in &wrong {
        println!("{wrong}");
    }
    runtime.shutdown_timeout(END_WITHIN);
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
