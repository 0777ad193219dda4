//! `rampart policy new|build|check` for the author of a policy, who needs no edge, and what
//! `policy/lifecycle.rs` does on a running one for its operator.

mod build;
mod check;
mod lifecycle;
mod new;
pub(super) mod signing;
mod template;

use clap::Subcommand;
use rampart_core::policies::compile_as_child;

use self::lifecycle::Lifecycle;
use super::{Run, StartupError};

/// A partner's policies: `signature`, `fee` and `method-order`.
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Write a small project that builds as it is.
    New(new::New),
    /// Make the component of a project.
    Build(build::Build),
    /// Try a component as the edge would, without an edge, and with its test vectors.
    Check(check::Check),
    /// Compile the component of the standard input for the edge that started this process.
    #[command(hide = true)]
    CompileChild {
        /// Bound of the memory, in bytes.
        memory_bytes_max: u64,
        /// Bound of the processor time, in seconds.
        seconds_max: u64,
        /// Bound of the component, in bytes.
        component_bytes_max: u64,
    },
    #[command(flatten)]
    Lifecycle(Lifecycle),
}

impl Run for Policy {
    fn run(self) -> Result<(), StartupError> {
        match self {
            Self::New(new) => new.run(),
            Self::Build(build) => build.run(),
            Self::Check(check) => check.run(),
            Self::CompileChild { memory_bytes_max, seconds_max, component_bytes_max } => {
                compile_as_child(memory_bytes_max, seconds_max, component_bytes_max)
                    .map_err(StartupError::from)
            }
            Self::Lifecycle(command) => command.run(),
        }
    }
}
