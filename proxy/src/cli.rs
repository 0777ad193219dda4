//! The command line: one variant a command, and one arm of [`Command::run`].

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::config::Config;
use crate::logging;
use crate::serve::{self, Fault};

/// A multi-tenant edge for buying and selling crypto assets.
#[derive(Debug, Parser)]
#[command(name = "rampart", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve partners until told to stop.
    Serve(Serve),
}

impl Command {
    /// Does it.
    ///
    /// # Errors
    /// One sentence for the operator.
    pub(crate) fn run(self) -> Result<(), Fault> {
        match self {
            Self::Serve(args) => args.run(),
        }
    }
}

/// Arguments of `rampart serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Settings in TOML; `RAMPART__SECTION__KEY` in the environment wins over it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Take the listeners over from the running process, then tell it to finish.
    #[arg(long)]
    upgrade: bool,
}

impl Serve {
    fn run(self) -> Result<(), Fault> {
        let config =
            Config::load(self.config.as_deref()).map_err(|e| Fault::from(e.to_string()))?;
        logging::start(&config.log)?;
        serve::run(config, self.upgrade)
    }
}
