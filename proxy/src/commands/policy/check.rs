//! `rampart policy check`: a component tried as an edge would, without an edge.

use std::path::{Path, PathBuf};

use clap::Args;
use rampart_core::policies::CheckedComponent;

use crate::commands::table::Format;
use crate::commands::{Run, StartupError, read_file};

/// The file of vectors beside a component, unless another one is named.
const VECTORS: &str = "vectors.json";

/// Arguments of `rampart policy check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// signature, fee or method-order.
    kind: String,
    /// The component.
    file: PathBuf,
    /// Test vectors (inputs and expected answers); by default vectors.json beside the component, if
    /// present.
    #[arg(long, value_name = "FILE")]
    vectors: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

impl Run for Check {
    fn run(self) -> Result<(), StartupError> {
        let vectors = match &self.vectors {
            Some(file) => Some(read_file(file)?),
            None => {
                let beside = self.file.parent().unwrap_or(Path::new("")).join(VECTORS);
                beside.is_file().then(|| read_file(&beside)).transpose()?
            }
        };
        let component = read_file(&self.file)?;
        let checked = rampart_core::policies::check(&self.kind, component, vectors.as_deref());
        let CheckedComponent { report, failed } = checked?;
        self.format.print_members(&report)?;
        match failed {
            0 => Ok(()),
            1 => Err(StartupError::from("one vector was answered otherwise than expected")),
            _ => Err(format!("{failed} vectors were answered otherwise than expected").into()),
        }
    }
}
