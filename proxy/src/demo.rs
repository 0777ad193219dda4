//! `rampart demo`: everything at once on one machine. A private Postgres, an edge with TLS, a
//! partner with three policies, one purchase from end to end; then it keeps serving. Settings come
//! from the environment, but for what a demo has of its own.

mod callback;
mod environment;
mod partner;
mod purchase;
mod steps;

use std::path::PathBuf;

use clap::Args;

use self::environment::Environment;
use self::partner::Partner;
pub(crate) use self::purchase::{RETURN_URL, WALLET};
use self::steps::Steps;
use crate::commands::Run;
use crate::logging;
use crate::output;
use crate::server;
use crate::startup_error::StartupError;

/// Arguments of `rampart demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// End after the purchase: status 0 when all of it went well, 1 otherwise.
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
    /// Seconds that the build before it took, for the total.
    #[arg(long, value_name = "SECONDS", hide = true)]
    built_in: Option<u64>,
}

impl Run for Demo {
    /// Sets everything up, makes a purchase, and serves on unless told to exit.
    ///
    /// # Errors
    /// One sentence: what could not be set up, or what was wrong with the purchase. Either is a
    /// finding: the set-up is part of the walk.
    fn run(self) -> Result<(), StartupError> {
        self.walk().map_err(|error| StartupError::finding(error.to_string()))
    }
}

impl Demo {
    fn walk(self) -> Result<(), StartupError> {
        let mut steps = Steps::new();
        let environment = Environment::prepare(&self.state, self.postgres, &mut steps)?;
        let log = logging::start(&environment.config.log)?;
        let runtime = server::runtime(environment.config.edge.threads)?;
        let database = steps.run("create an empty database", environment.create_database());
        runtime.block_on(database)?;
        let starting = || server::start(environment.config.clone(), false);
        let mut serving = steps.block("migrate it and start the edge with TLS", starting)?;
        log.count_in(&serving.core.metrics);
        environment.write_settings(serving.sockets.admin.address)?;
        let purchased = runtime.block_on(async {
            let partner = Partner::seed(&environment, &serving, &self.guests, &mut steps).await?;
            environment.write_env(&partner.shell_variables(&environment))?;
            let receiver = purchase::make(&partner, &mut steps).await?;
            Ok::<_, StartupError>((partner, receiver))
        });
        let (partner, receiver) = purchased?;
        steps.done(self.built_in);
        if !self.exit {
            output::line(partner.try_it(&environment, &serving, receiver.address));
            serving.until_stopped();
        }
        Ok(())
    }
}
