//! `rampart completions` and `rampart man`: what a shell and `man` know of the commands.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::names;
use crate::cli::Cli;
use crate::output;
use crate::startup_error::StartupError;

/// Arguments of `rampart completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    shell: Shell,
}

impl Completions {
    /// Prints the script: the commands, for shells that load it before they find the program, and
    /// behind them the registration of the program, which knows names too.
    pub(crate) fn run(&self) {
        // Into memory first: a reader that goes away would end the generator with a panic.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "rampart", &mut script);
        names::register(self.shell, &mut script);
        output::bytes(&script);
    }
}

/// Arguments of `rampart man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder; it is made if it is not there.
    folder: PathBuf,
}

impl Man {
    /// Writes a page for each command, `rampart-order-list.1` and so on.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub(crate) fn run(&self) -> Result<(), StartupError> {
        let unwritable = format!("'{}' cannot be written", self.folder.display());
        fs::create_dir_all(&self.folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), &self.folder))
            .map_err(|e| StartupError::new(&unwritable, &e))
    }
}
