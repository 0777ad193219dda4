//! `rampart route list|set`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use http::Method;
use serde_json::{Value, json};

use super::{Body, Run, StartupError, Target};

/// Columns of a table of routes: their heads, and members.
const COLUMNS: &[(&str, &str)] = &[
    ("PARTNER", "partner"),
    ("DIRECTION", "direction"),
    ("METHOD", "method"),
    ("ASSET", "asset"),
    ("CONNECTOR", "connector"),
];

/// Largest file of routes, in bytes.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Routes: which connector moves which money and coins.
#[derive(Debug, Subcommand)]
pub(crate) enum Route {
    /// List all routes in their order: the first match counts.
    #[command(visible_alias = "get")]
    List {
        #[command(flatten)]
        target: Target,
    },
    /// Replace all routes.
    #[command(visible_alias = "put")]
    Set {
        /// JSON file with an array of routes, or with what `route list` prints; - reads standard input.
        file: PathBuf,
        #[command(flatten)]
        target: Target,
    },
}

impl Run for Route {
    fn run(self) -> Result<(), StartupError> {
        match self {
            Self::List { target } => {
                let found = target.settings.ask(async |o| o.get("routes").await)?;
                target.format.print(&found, &found["routes"], COLUMNS);
                Ok(())
            }
            Self::Set { file, target } => {
                let mut routes = read(&file)?;
                if routes.is_array() {
                    routes = json!({ "routes": routes });
                }
                let body = Body::Json(routes);
                target.send(Method::PUT, "routes", body)
            }
        }
    }
}

/// The JSON in a file, or on standard input.
fn read(file: &Path) -> Result<Value, StartupError> {
    let unreadable = format!("'{}' cannot be read", file.display());
    let mut text = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().take(FILE_BYTES_MAX).read_to_end(&mut text)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut text))
    };
    read.map_err(|error| StartupError::new(&unreadable, &error))?;
    serde_json::from_slice(&text)
        .map_err(|error| StartupError::new(&format!("'{}' is no JSON", file.display()), &error))
}
