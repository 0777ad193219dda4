//! The benchmark's command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::comparison::Row;
use crate::paths::against;

/// Rounds of a whole run.
const ROUNDS: usize = 9;
/// Rounds of a quick one.
const QUICK_ROUNDS: usize = 3;

/// Rampart beside its peers.
#[derive(Debug, Parser)]
pub(crate) struct Arguments {
    /// Only paths with this letter, or this word in their name; `against` selects all rows of the
    /// other binary. May be repeated.
    #[arg(long, value_name = "PATH")]
    only: Vec<String>,
    /// Rounds a row.
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// At most three minutes: few short rounds, and no row that takes minutes by itself.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Instructions a request as well, under valgrind; takes some minutes.
    #[arg(long)]
    pub(crate) instructions: bool,
    /// Another binary of Rampart, such as an older version's: rows a, b, c, d, f and g of this build
    /// in terms of it.
    #[arg(long, value_name = "PATH")]
    pub(crate) against: Option<PathBuf>,
    /// Envoy's program; deploy/bench-setup fetches it.
    #[arg(long, value_name = "FILE", default_value = "envoy")]
    pub(crate) envoy: PathBuf,
    /// Given by cargo to every benchmark, behind a task too.
    #[arg(long, hide = true, global = true)]
    bench: bool,
    #[command(subcommand)]
    pub(crate) task: Option<Task>,
}

/// Other tasks of this program.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Serves a fixed body over TLS with hyper and rustls: one of the peers.
    HyperPeer(HyperPeer),
    /// Has an edge answer every kind of request: the load of deploy/profile.
    Train,
}

/// Arguments of that peer.
#[derive(Debug, Args)]
pub(crate) struct HyperPeer {
    /// Address to listen on.
    #[arg(long)]
    pub(crate) listen: SocketAddr,
    /// Folder with `cert.pem`, `key.pem` and `body.json`.
    #[arg(long)]
    pub(crate) folder: PathBuf,
}

impl Arguments {
    /// True for a row that is to be measured.
    pub(crate) fn wants(&self, row: &Row) -> bool {
        let words = row.what.split([' ', ',']);
        let named = |name: &String| {
            row.path == name
                || words.clone().any(|word| word == name)
                || (name == "against" && row.peer == against::PEER)
        };
        if self.only.is_empty() {
            !(self.quick && row.left_out)
        } else {
            self.only.iter().any(named)
        }
    }

    /// True when all rows are to be measured in full, as by default.
    pub(crate) fn is_whole(&self) -> bool {
        self.only.is_empty() && self.rounds.is_none() && !self.quick
    }

    /// Rounds a row.
    pub(crate) fn rounds(&self) -> usize {
        let usual = if self.quick { QUICK_ROUNDS } else { ROUNDS };
        self.rounds.unwrap_or(usual).max(1)
    }

    /// Rounds that may be measured again because others were busy, in all of a row that has
    /// `rounds`: a third, so that a busy machine cannot make the whole run endless.
    pub(crate) fn repeats(&self, rounds: usize) -> usize {
        if self.quick { 0 } else { rounds.div_ceil(3) }
    }

    /// Time for which each of the two is measured in a round.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_secs(if self.quick { 1 } else { 2 })
    }
}
