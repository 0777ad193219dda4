//! Every setting of the binary: built-in defaults, then a TOML file, then the environment
//! (`RAMPART__SECTION__KEY`). An unknown key is an error that names it (section 12 of the
//! contract).

mod sections;
mod source;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use ::config::Value;
use rampart_core::platform::settings::Settings;

pub(crate) use self::sections::{Admin, Edge, KeyPair, Log, LogFormat, Ops};

/// What is wrong with the configuration: one sentence that names key and place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invalid(String);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Invalid {}

/// Everything `rampart serve` can be told. `Debug` shows no secret.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    /// The public listener.
    pub(crate) edge: Edge,
    /// The operators' listener.
    pub(crate) admin: Admin,
    /// Metrics and health.
    pub(crate) ops: Ops,
    /// What is written where.
    pub(crate) log: Log,
    /// What the core is told.
    pub(crate) core: Settings,
}

impl Config {
    /// Reads `file`, if there is one, and this process's environment.
    ///
    /// # Errors
    /// One sentence that names what is unknown, malformed or out of bounds.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, Invalid> {
        Self::read(source::gather(file, None)?).and_then(Self::settled)
    }

    /// The same for a command that only calls a running edge: it needs no certificate.
    ///
    /// # Errors
    /// One sentence that names what is unknown or malformed.
    pub(crate) fn load_for_operator(file: Option<&Path>) -> Result<Self, Invalid> {
        Self::read(source::gather(file, None)?)
    }

    fn read(mut tree: HashMap<String, Value>) -> Result<Self, Invalid> {
        Ok(Self {
            edge: section(&mut tree, "edge")?,
            admin: section(&mut tree, "admin")?,
            ops: section(&mut tree, "ops")?,
            log: section(&mut tree, "log")?,
            core: source::typed(Value::from(tree), None)?,
        })
    }

    fn settled(mut self) -> Result<Self, Invalid> {
        self.settle()?;
        Ok(self)
    }

    /// Checks bounds and fills in what follows from other settings.
    ///
    /// # Errors
    /// One sentence that names the key and its bounds.
    pub(crate) fn settle(&mut self) -> Result<(), Invalid> {
        self.edge.check()?;
        self.core.admin_token.clone_from(&self.admin.token);
        if let Some(url) = &self.edge.public_url {
            self.core.public_url = url.trim_end_matches('/').to_owned();
        }
        Ok(())
    }
}

fn section<T: serde::de::DeserializeOwned + Default>(
    tree: &mut HashMap<String, Value>,
    name: &'static str,
) -> Result<T, Invalid> {
    match tree.remove(name) {
        Some(value) => source::typed(value, Some(name)),
        None => Ok(T::default()),
    }
}

#[cfg(test)]
mod tests;
