//! `rampart migrate`: brings the schema up to date, and says what it did.

use clap::Args;
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
