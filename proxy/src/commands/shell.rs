//! `rampart completions` and `rampart man`: what a shell and `man` know of the commands.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::names;
use super::{Run, StartupError};
use crate::cli::Cli;
use crate::output;
use crate::startup_error::Context as _;

/// Arguments of `rampart completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    shell: Shell,
}

impl Run for Completions {
    /// Prints the script: the commands, for shells that load it before they find the program, and
    /// behind them the registration of the program, which knows names too.
    fn run(self) -> Result<(), StartupError> {
        // Into memory first: a reader that goes away would end the generator with a panic.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "rampart", &mut script);
        names::register(self.shell, &mut script);
        output::bytes(&script);
        Ok(())
    }
}

/// Arguments of `rampart man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder; it is made if it is not there.
    folder: PathBuf,
}

impl Run for Man {
    fn run(self) -> Result<(), StartupError> {
        fs::create_dir_all(&self.folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), &self.folder))
            .context(format_args!("'{}' cannot be written", self.folder.display()))
    }
}
