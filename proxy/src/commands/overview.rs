//! `rampart overview`.

use clap::Args;

use super::{Run, StartupError, Target};

/// Show open orders, what waits for operators, and what the edge finds wrong.
#[derive(Debug, Args)]
pub(crate) struct Overview {
    #[command(flatten)]
    target: Target,
}

impl Run for Overview {
    fn run(self) -> Result<(), StartupError> {
        self.target.get(&["overview"])
    }
}
