//! `rampart archive`: archives months whose retention is over.

use clap::Args;
use rampart_core::platform::schema;

use super::{ConfigFile, Run, StartupError};
use crate::output;
use crate::server;

/// Writes each month whose retention (`retention.*_days`) is over to a file in
/// `retention.archive_folder` and drops it, and makes the partitions of the months to come, under the
/// role of `database.migrate_url`.
#[derive(Debug, Args)]
pub(crate) struct Archive {
    #[command(flatten)]
    settings: ConfigFile,
}

impl Run for Archive {
    fn run(self) -> Result<(), StartupError> {
        let config = self.settings.load()?;
        let maintained = schema::maintain_partitions(&config.core.database, &config.core.retention);
        let archived = server::runtime(1)?.block_on(maintained)?.ok_or(
            "nothing was done: the role does not own the tables, or another process migrates or \
             archives",
        )?;
        for partition in &archived {
            output::line(format_args!("archived {partition}"));
        }
        output::line(format_args!("{} partitions were archived", archived.len()));
        Ok(())
    }
}
