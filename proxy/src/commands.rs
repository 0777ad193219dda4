//! Commands. Most call a running edge through its admin listener, and print its answer as a table
//! for people or as JSON for programs.

pub(crate) mod apply;
mod arguments;
pub(crate) mod audit;
pub(crate) mod bench;
pub(crate) mod compliance;
pub(crate) mod config;
pub(crate) mod connector;
pub(crate) mod doctor;
pub(crate) mod keys;
pub(crate) mod ledger;
pub(crate) mod market;
pub(crate) mod notify;
pub(crate) mod operator;
pub(crate) mod order;
pub(crate) mod overview;
pub(crate) mod partner;
pub(crate) mod payment;
pub(crate) mod policy;
mod request;
pub(crate) mod schema;
pub(crate) mod shell;
pub(crate) mod table;
pub(crate) mod top;
pub(crate) mod user;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use http::Method;
use serde::Serialize;
use serde_json::Value;

use self::arguments::{Members, Page};
use self::request::{path, query, request};
use self::table::Format;
use crate::admin_client::{AdminClient, Body};
use crate::config::Config;
use crate::output;
use crate::server;
use crate::startup_error::{Context as _, StartupError};

/// A command whose arguments are read.
pub(crate) trait Run {
    /// Runs the command and prints its result.
    fn run(self) -> Result<(), StartupError>;
}

/// The argument that locates the settings, and with them the admin listener and its token.
#[derive(Debug, Args)]
pub(crate) struct ConfigFile {
    /// Settings in TOML, as `rampart serve` takes them.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
}

impl ConfigFile {
    /// Runs `work` against the listener; what it answers.
    pub(crate) fn ask<T, F>(&self, work: impl FnOnce(AdminClient) -> F) -> Result<T, StartupError>
    where
        F: Future<Output = Result<T, StartupError>>,
    {
        let config = self.load()?;
        let admin = AdminClient::new(config.admin.base_url(), &config)?;
        server::runtime(1)?.block_on(work(admin))
    }

    /// The configuration, without what only an edge needs.
    pub(crate) fn load(&self) -> Result<Config, StartupError> {
        Config::load(self.config.as_deref())
    }
}

/// A command that calls a running edge.
pub(crate) trait Call {
    /// Makes the call and prints its answer.
    fn call(&self, target: &Target) -> Result<(), StartupError>;
}

/// The edge that is called, and the form in which its answer is printed.
#[derive(Debug, Args)]
pub(crate) struct Target {
    #[command(flatten)]
    settings: ConfigFile,
    #[command(flatten)]
    format: Format,
}

impl Target {
    /// Runs `work` against the listener and prints what it answers.
    pub(crate) fn run<F>(&self, work: impl FnOnce(AdminClient) -> F) -> Result<(), StartupError>
    where
        F: Future<Output = Result<Value, StartupError>>,
    {
        self.format.print_members(&self.settings.ask(work)?)
    }

    /// Makes one call and prints its answer.
    pub(crate) fn send(
        &self,
        method: Method,
        path: &str,
        body: impl Into<Body>,
    ) -> Result<(), StartupError> {
        let body = body.into();
        self.run(async |admin| admin.call(method, path, body).await)
    }

    /// Makes a call, such as `POST partners/{slug}/staff`, with a command's arguments; prints its answer.
    pub(crate) fn call(&self, call: &str, arguments: &impl Serialize) -> Result<(), StartupError> {
        let (method, path, body) = request(call, arguments)?;
        self.send(method, &path, body)
    }

    /// Prints the page of a list that the arguments ask for, in columns as [`Format::print`] has
    /// them. If another page follows, standard error says how to ask for it.
    pub(crate) fn list(
        &self,
        path: &str,
        arguments: &impl Serialize,
        columns: &str,
    ) -> Result<(), StartupError> {
        let (_, path, _) = request(&format!("GET {path}"), arguments)?;
        let (rows, last) = self.settings.ask(async |admin| admin.page(&path).await)?;
        self.format.print(&rows, &rows, columns)?;
        if let Some(last) = last {
            output::note(format_args!("more rows follow: --after {last}"));
        }
        Ok(())
    }

    /// Makes a call with a command's arguments and writes its answer to a file.
    pub(crate) fn save(
        &self,
        file: &Path,
        call: &str,
        arguments: &impl Serialize,
    ) -> Result<(), StartupError> {
        let (method, path, body) = request(call, arguments)?;
        let (_, bytes) =
            self.settings.ask(async |admin| admin.answer(method, &path, body).await)?;
        write_file(file, &bytes)
    }
}

/// One object.
#[derive(Debug, Args, Serialize)]
pub(crate) struct ObjectArgs {
    /// Its id.
    id: String,
}

/// The bytes of a file.
fn read_file(file: &Path) -> Result<Vec<u8>, StartupError> {
    fs::read(file).context(format_args!("'{}' cannot be read", file.display()))
}

/// The text of a file.
fn read_text(file: &Path) -> Result<String, StartupError> {
    String::from_utf8(read_file(file)?).context(format_args!("'{}' is not text", file.display()))
}

/// The JSON in a file.
fn read_json(file: &Path) -> Result<Value, StartupError> {
    let bytes = read_file(file)?;
    serde_json::from_slice(&bytes).context(format_args!("'{}' is not JSON", file.display()))
}

/// Writes a file, in the place of one that is there.
fn write_file(file: &Path, bytes: &[u8]) -> Result<(), StartupError> {
    fs::write(file, bytes).context(format_args!("'{}' cannot be written", file.display()))
}

#[cfg(test)]
mod tests;
