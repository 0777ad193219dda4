//! `rampart migrate` and `rampart archive`, under the role of `database.migrate_url`.

use clap::Args;
use rampart_core::platform::counted::counted;
use rampart_core::platform::schema::{self, Applied};

use super::{ConfigFile, Run, StartupError};
use crate::output;
use crate::server;

/// Applies the missing migrations under the role of `database.migrate_url`. Edges of the version
/// before serve on meanwhile.
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    #[command(flatten)]
    settings: ConfigFile,
}

impl Run for Migrate {
    fn run(self) -> Result<(), StartupError> {
        let config = self.settings.load()?;
        let report = |applied: &Applied| {
            let took = applied.took.as_millis();
            output::line(format_args!("applied {} in {took} ms", applied.name));
        };
        let migrated = schema::migrate(&config.core.database, report);
        let schema = server::runtime(1)?.block_on(migrated)?;
        output::line(format_args!("the schema is at {}", schema.version()));
        Ok(())
    }
}

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
        let (database, retention) = (&config.core.database, &config.core.retention);
        let report = |partition: &str| output::line(format_args!("archived {partition}"));
        let maintained = schema::maintain_partitions(database, retention, report);
        let archived = server::runtime(1)?.block_on(maintained)?.ok_or(
            "nothing was done: the role does not own the tables, or another process migrates or \
             archives",
        )?;
        output::line(counted(archived, "partition was archived", "partitions were archived"));
        Ok(())
    }
}
