//! `rampart connector`, and `rampart route` to connectors.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Call, Page, StartupError, Target, read_json};
use crate::startup_error::Context as _;

pub(super) const CONNECTORS: &str = "\
    NAME name, LAST CONTACT lastContactAt, QUEUE queueLength, OLDEST COMMAND oldestCommandAt, \
    FAILURES failures, CAPABILITIES capabilities, METHODS methods, ASSETS assets";

/// Connectors, which talk to providers, and their tokens.
#[derive(Debug, Serialize, Subcommand)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(crate) enum Connector {
    /// Make a connector and print its token, once.
    #[command(visible_alias = "create")]
    Add {
        /// Name: a-z, 0-9 and -, a letter first.
        name: String,
        /// A kind of command that it takes, such as payment.create; can be given several times.
        #[arg(long = "capability", value_name = "KIND", required = true)]
        capabilities: Vec<String>,
        /// A payment method that it serves; can be given several times.
        #[arg(long = "method", value_name = "METHOD")]
        methods: Vec<String>,
        /// An asset that it serves, by code or CAIP-19 id; can be given several times.
        #[arg(long = "asset", value_name = "ASSET")]
        assets: Vec<String>,
    },
    /// List connectors with their last contact and their queues.
    List(Page),
    /// Show one connector.
    Show {
        /// The connector's name.
        name: String,
    },
    /// Issue a new token and print it, once; earlier ones end with the overlap.
    Rotate {
        /// The connector's name.
        name: String,
        /// Time that earlier tokens live on; a day if not given.
        #[arg(long, value_name = "SECONDS")]
        #[serde(rename = "overlapSeconds")]
        overlap: Option<u32>,
    },
    /// Put the provider's form for cards on the pay page; without options, take it away.
    CardElement {
        /// The connector's name.
        name: String,
        /// URL of the provider's script.
        #[arg(long, value_name = "URL", requires = "public_key")]
        script_url: Option<String>,
        /// The account's public key.
        #[arg(long, value_name = "KEY", requires = "script_url")]
        public_key: Option<String>,
        /// A further origin that the script calls or frames; can be given several times.
        #[arg(long = "origin", value_name = "ORIGIN", requires = "script_url")]
        origins: Vec<String>,
    },
}

impl Call for Connector {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List(page) => target.list("connectors", page, CONNECTORS),
            Self::Show { .. } => target.call("GET connectors/{name}", self),
            Self::Add { .. } => target.call("POST connectors", self),
            Self::CardElement { name, script_url, public_key, origins } => {
                let element = script_url.as_ref().map(
                    |url| json!({"scriptUrl": url, "publicKey": public_key, "origins": origins}),
                );
                let body = json!({"name": name, "cardElement": element});
                target.call("PUT connectors/{name}/card-element", &body)
            }
            Self::Rotate { .. } => target.call("POST connectors/{name}/rotate", self),
        }
    }
}

pub(super) const ROUTES: &str =
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
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::List => {
                let found = target.settings.ask(async |o| o.get("routes").await)?;
                target.format.print(&found, &found["routes"], ROUTES)
            }
            Self::Set { file } => {
                let mut routes = read(file)?;
                if routes.is_array() {
                    routes = json!({ "routes": routes });
                }
                target.call("PUT routes", &json!({ "members": routes }))
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
