//! `rampart route list|set`.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use http::Method;
use serde_json::{Value, json};

use super::{Call, StartupError, Target, read_json};
use crate::startup_error::Context as _;

const COLUMNS: &str =
    "PARTNER partner, DIRECTION direction, METHOD method, ASSET asset, CONNECTOR connector";

/// Routes: which connector moves which money and coins.
#[derive(Debug, Subcommand)]
pub(crate) enum Route {
    /// List all routes in their order: the first match counts.
    #[command(visible_alias = "get")]
    List,
    /// Replace all routes.
    #[command(visible_alias = "put")]
    Set {
        /// JSON file with an array of routes, or with what `route list` prints; - reads standard input.
        file: PathBuf,
    },
}

impl Call for Route {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List => {
                let found = target.settings.ask(async |o| o.get("routes").await)?;
                target.format.print(&found, &found["routes"], COLUMNS);
                Ok(())
            }
            Self::Set { file } => {
                let mut routes = read(&file)?;
                if routes.is_array() {
                    routes = json!({ "routes": routes });
                }
                target.send(Method::PUT, &["routes"], routes)
            }
        }
    }
}

/// The JSON in a file, or on standard input.
fn read(file: &Path) -> Result<Value, StartupError> {
    if file != Path::new("-") {
        return read_json(file);
    }
    serde_json::from_reader(std::io::stdin().lock()).context("standard input is not JSON")
}
