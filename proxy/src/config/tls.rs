//! TLS of the public listener: certificates, versions, cipher suites, clients' certificates.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::sections::one_or_many;

/// `edge.tls`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tls {
    /// PEM file with the chain of the first certificate, which serves names that no other is for.
    pub(crate) cert: Option<PathBuf>,
    /// PEM file with its key.
    pub(crate) key: Option<PathBuf>,
    /// Further certificates, each for the names that it holds.
    pub(crate) certificates: Vec<KeyPair>,
    /// Oldest version of TLS that is spoken.
    pub(crate) min_version: TlsVersion,
    /// Cipher suites by their registered names, the preferred one first: one, or a list.
    #[serde(deserialize_with = "texts")]
    #[schemars(extend("x-default" = "none: every suite that is considered safe"))]
    pub(crate) ciphers: Vec<String>,
    /// PEM file with the authorities that clients' certificates are checked against; a client needs
    /// one only where its partner or API key names a subject.
    #[schemars(extend("x-default" = "none: clients are not asked for certificates"))]
    pub(crate) client_ca: Option<PathBuf>,
    /// Fetch OCSP responses from the responders that certificates name, and staple them to handshakes.
    pub(crate) ocsp: bool,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            cert: None,
            key: None,
            certificates: Vec::new(),
            min_version: TlsVersion::Tls12,
            ciphers: Vec::new(),
            client_ca: None,
            ocsp: true,
        }
    }
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub(crate) enum TlsVersion {
    /// TLS 1.2 and later.
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3 alone.
    #[serde(rename = "1.3")]
    Tls13,
}

/// A certificate chain and its key, both PEM files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyPair {
    /// PEM file with the chain of a further certificate, for the names that it holds.
    pub(crate) cert: PathBuf,
    /// PEM file with its key.
    pub(crate) key: PathBuf,
}

fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    one_or_many(deserializer, "a name", |text| Some(text.to_owned()).filter(|t| !t.is_empty()))
}
