//! Commands that operate a running edge through its admin listener. Each prints the answer as
//! JSON, so that a script can read it.

pub(crate) mod approval;
pub(crate) mod archive;
pub(crate) mod audit;
pub(crate) mod config;
pub(crate) mod connector;
pub(crate) mod doctor;
pub(crate) mod key;
pub(crate) mod keys;
pub(crate) mod ledger;
pub(crate) mod migrate;
pub(crate) mod operator;
pub(crate) mod order;
pub(crate) mod partner;
pub(crate) mod payment;
pub(crate) mod policy;
pub(crate) mod price;
pub(crate) mod route;
pub(crate) mod screening;
mod table;

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use crate::config::Config;
use crate::operator::Operator;
use crate::output;
use crate::server;
use crate::startup_error::StartupError;

/// Arguments that locate the admin listener and its token.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// Settings in TOML, as `rampart serve` takes them.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Target {
    /// Runs `work` against the listener and prints what it answers.
    ///
    /// # Errors
    /// One sentence for the operator.
    pub(crate) fn run<F>(&self, work: impl FnOnce(Operator) -> F) -> Result<(), StartupError>
    where
        F: Future<Output = Result<Value, StartupError>>,
    {
        print(&self.ask(work)?);
        Ok(())
    }

    /// Runs `work` against the listener; what it answers.
    ///
    /// # Errors
    /// One sentence for the operator.
    pub(crate) fn ask<F>(&self, work: impl FnOnce(Operator) -> F) -> Result<Value, StartupError>
    where
        F: Future<Output = Result<Value, StartupError>>,
    {
        let operator = Operator::of(&self.load()?)?;
        server::runtime(1)?.block_on(work(operator))
    }

    /// The configuration, without what only an edge needs.
    ///
    /// # Errors
    /// One sentence that names what is wrong.
    pub(crate) fn load(&self) -> Result<Config, StartupError> {
        Config::load_for_operator(self.config.as_deref())
            .map_err(|e| StartupError::from(e.to_string()))
    }
}

/// Prints an answer; an empty one prints nothing.
fn print(answer: &Value) {
    if !answer.is_null() {
        output::line(format_args!("{answer:#}"));
    }
}
