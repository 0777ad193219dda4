//! The certificate of a listener that is not for the public.

use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::KeyPair;
use crate::startup_error::StartupError;

/// `admin.tls`, `connectors.tls`
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ListenerTls {
    /// PEM file with the listener's certificate chain.
    #[schemars(extend("x-default" = "none: plain HTTP, on a loopback address alone"))]
    pub(crate) cert: Option<PathBuf>,
    /// PEM file with its key.
    pub(crate) key: Option<PathBuf>,
}

impl ListenerTls {
    /// Checks that certificate and key are both there, and that they are there beyond loopback.
    pub(super) fn check(&self, section: &str, listen: SocketAddr) -> Result<(), StartupError> {
        if self.cert.is_some() != self.key.is_some() {
            return Err(format!("'{section}.tls.cert' and '{section}.tls.key' go together").into());
        }
        if self.cert.is_none() && !listen.ip().to_canonical().is_loopback() {
            return Err(format!(
                "'{section}.listen' is {listen}, which is not a loopback address: \
                 set '{section}.tls.cert' and '{section}.tls.key' to PEM files"
            )
            .into());
        }
        Ok(())
    }

    /// The certificate with its key, if there is one.
    pub(crate) fn key_pair(&self) -> Option<KeyPair> {
        let Self { cert, key } = self.clone();
        cert.zip(key).map(|(cert, key)| KeyPair { cert, key })
    }
}
