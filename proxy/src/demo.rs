//! `rampart demo`: everything at once on one machine. A private Postgres, an edge with TLS, a
//! partner with three policies, one purchase walked from end to end; then it keeps serving.

mod callback;
mod ground;
mod partner;
mod steps;
mod walk;

use std::path::PathBuf;

use clap::Args;

use self::ground::Ground;
use self::partner::Partner;
use self::steps::Steps;
use crate::logging;
use crate::server;
use crate::startup_error::StartupError;

/// Arguments of `rampart demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// End after the walk: status 0 when all of it went well, 1 otherwise.
    #[arg(long)]
    exit: bool,
    /// Folder for the database, the certificate and the settings.
    #[arg(long, value_name = "DIR", default_value = "target/demo")]
    state: PathBuf,
    /// Folder with the components that `plugins/build` makes.
    #[arg(long, value_name = "DIR", default_value = "target/guests")]
    guests: PathBuf,
    /// Folder with Postgres's programs; found by itself if not given.
    #[arg(long, value_name = "DIR", env = "RAMPART_PG_BIN")]
    postgres: Option<PathBuf>,
}

impl Demo {
    /// Sets everything up, walks, and serves on unless told to exit.
    ///
    /// # Errors
    /// One sentence: what could not be set up, or what the walk found wrong.
    pub(crate) fn run(self) -> Result<(), StartupError> {
        let mut steps = Steps::new();
        let ground = Ground::prepare(&self.state, self.postgres, &mut steps)?;
        logging::start(&ground.config.log)?;
        let runtime = server::runtime(ground.config.edge.threads)?;
        runtime.block_on(ground.create_database())?;
        let starting = || server::start(ground.config.clone(), false);
        let mut serving = steps.block("start the edge with TLS", starting)?;
        let walked = runtime.block_on(async {
            let partner = Partner::seed(&ground, &serving, &self.guests, &mut steps).await?;
            ground.write_env(&partner.shell_variables(&ground))?;
            let receiver = walk::walk(&partner, &mut steps).await?;
            Ok::<_, StartupError>((partner, receiver))
        });
        let (partner, receiver) = walked?;
        steps.done();
        if !self.exit {
            println!("{}", partner.try_it(&ground, &serving, receiver.address));
            serving.until_stopped();
        }
        Ok(())
    }
}
