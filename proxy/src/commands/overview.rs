//! `rampart overview`.

use clap::Args;

use super::Target;
use crate::startup_error::StartupError;

/// Show open orders, what waits for operators, and what the edge finds wrong.
#[derive(Debug, Args)]
pub(crate) struct Overview {
    #[command(flatten)]
    target: Target,
}

impl Overview {
    /// Runs the command and prints its result.
    ///
    /// # Errors
    /// One sentence for the operator.
    pub(crate) fn run(&self) -> Result<(), StartupError> {
        self.target.get("overview")
    }
}
