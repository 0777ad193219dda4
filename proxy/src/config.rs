//! Every setting of the binary: built-in defaults, then a TOML file, then the environment
//! (`RAMPART__SECTION__KEY`). An unknown key is an error that names it (section 12 of the
//! contract). `reference` lists every key from the types here.

mod kinds;
pub(crate) mod reference;
mod renamed;
mod sections;
mod source;
mod tls;

use std::collections::HashMap;
use std::path::Path;

use ::config::Value;
use rampart_core::platform::settings::Settings;
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use self::sections::{Admin, Connectors, Edge, Log, LogFormat, Ops, ProxyProtocol};
pub(crate) use self::tls::{KeyPair, Tls, TlsVersion};
use crate::startup_error::StartupError;

/// Sections of the binary, beside those of the core.
const SECTIONS: [&str; 5] = ["edge", "admin", "connectors", "ops", "log"];

/// Every setting of `rampart serve`. Neither `Debug` nor `Serialize` shows a secret.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Config {
    /// Public listener, for partners and their users.
    pub(crate) edge: Edge,
    /// Operators' listener: plain HTTP on a loopback address, TLS on any.
    pub(crate) admin: Admin,
    /// Connectors' listener, and the commands to them: plain HTTP on a loopback address, TLS on any.
    pub(crate) connectors: Connectors,
    /// Listener for metrics and health: plain HTTP.
    pub(crate) ops: Ops,
    /// Log: requests on standard output, everything else on standard error.
    pub(crate) log: Log,
    /// The core's sections.
    #[serde(flatten)]
    pub(crate) core: Settings,
}

impl Config {
    /// Reads `file`, if there is one, and this process's environment; [`Config::settle`] fills in and
    /// checks what an edge needs besides.
    ///
    /// # Errors
    /// One sentence that names what is unknown, malformed or out of bounds.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, StartupError> {
        Self::read(source::gather(file, None)?)
    }

    /// Reads these settings in TOML, and this process's environment, which wins.
    pub(crate) fn over(defaults: &str) -> Result<Self, StartupError> {
        Self::read(source::merge(defaults, "", None)?)
    }

    fn read(mut tree: HashMap<String, Value>) -> Result<Self, StartupError> {
        renamed::check(&tree)?;
        kinds::check(&tree)?;
        let has_live_max = source::is_set(&tree, "policy", "live_max");
        let mut config = Self {
            edge: section(&mut tree, "edge")?,
            admin: section(&mut tree, "admin")?,
            connectors: section(&mut tree, "connectors")?,
            ops: section(&mut tree, "ops")?,
            log: section(&mut tree, "log")?,
            core: source::typed(Value::from(tree), None)?,
        };
        if !has_live_max {
            config.core.policy.set_live_max_for(config.edge.threads);
        }
        Ok(config)
    }

    /// Fills in what follows from other settings, and checks what an edge needs.
    ///
    /// # Errors
    /// One sentence that names the key.
    pub(crate) fn settle(&mut self) -> Result<(), StartupError> {
        self.core.connectors = self.connectors.settings();
        self.core.admin_host = self.admin.host();
        self.core.admin_url = self.admin.base_url();
        self.core.admin_token.clone_from(&self.admin.token);
        if let Some(url) = &self.edge.public_url {
            self.core.public_url = url.trim_end_matches('/').to_owned();
        }
        self.edge.check(&self.core.acme)?;
        self.admin.check()?;
        self.connectors.check()
    }
}

fn section<T: serde::de::DeserializeOwned + Default>(
    tree: &mut HashMap<String, Value>,
    name: &'static str,
) -> Result<T, StartupError> {
    match tree.remove(name) {
        Some(value) => source::typed(value, Some(name)),
        None => Ok(T::default()),
    }
}

#[cfg(test)]
mod tests;
