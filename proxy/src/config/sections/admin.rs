//! The section of the operators' listener.

use std::net::SocketAddr;

use rampart_core::platform::crypto::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ListenerTls;
use crate::startup_error::StartupError;

/// `admin`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Admin {
    /// Address to listen on; one that is not loopback needs `admin.tls`.
    pub(crate) listen: SocketAddr,
    /// Address that operators and commands reach the listener at, if it has a name.
    #[schemars(extend("x-default" = "admin.listen, with https:// if there is an admin.tls"))]
    pub(crate) url: Option<String>,
    /// Certificate of the listener.
    pub(crate) tls: ListenerTls,
    /// Time for which browsers that have seen anything over `admin.tls` use HTTPS alone, on every
    /// port of the host; 0 does not tell them.
    #[schemars(range(min = 0, max = 63_072_000))]
    pub(crate) hsts_seconds: u64,
    /// Bearer token of the break-glass owner, each use of which is an alarm; where a command runs,
    /// the operator's own token.
    #[serde(skip_serializing)]
    #[schemars(extend("x-default" = "none: only operators' own tokens are accepted"))]
    pub(crate) token: Option<Secret>,
}

impl Default for Admin {
    fn default() -> Self {
        Self {
            listen: super::local(9443),
            url: None,
            tls: ListenerTls::default(),
            // Metrics and health have no TLS, and may be on the same host.
            hsts_seconds: 0,
            token: None,
        }
    }
}

impl Admin {
    /// Checks what no single key's bounds say: no token crosses a network in clear.
    pub(in crate::config) fn check(&self) -> Result<(), StartupError> {
        self.tls.check("admin", self.listen)?;
        if self.url.is_some() && self.host().is_none() {
            return Err("'admin.url' is not a URL such as https://ops.example.com".into());
        }
        Ok(())
    }

    /// The host of `url`.
    pub(in crate::config) fn host(&self) -> Option<String> {
        let url: http::Uri = self.url.as_ref()?.parse().ok()?;
        let known = matches!(url.scheme_str(), Some("http" | "https"));
        url.host().filter(|_| known).map(str::to_owned)
    }

    /// Beginning of the URL of every call.
    pub(crate) fn base_url(&self) -> String {
        let scheme = if self.tls.cert.is_some() { "https" } else { "http" };
        match &self.url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("{scheme}://{}", self.listen),
        }
    }
}
