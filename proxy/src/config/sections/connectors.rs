//! The section of the connectors' listener, and of the commands to them.

use std::net::SocketAddr;

use rampart_core::platform::settings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ListenerTls;
use crate::startup_error::StartupError;

/// Port of the listener where none is configured.
const PORT: u16 = 9_465;

/// `connectors`
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Connectors {
    /// Address to listen on; one that is not loopback needs `connectors.tls`.
    #[schemars(extend("x-default" = "127.0.0.1:9465, and no listener where that is taken"))]
    pub(crate) listen: Option<SocketAddr>,
    /// Certificate of the listener.
    pub(crate) tls: ListenerTls,
    /// Longest wait of a request for a connector's answer.
    #[schemars(range(min = 1, max = 25), extend("x-unit" = "seconds"))]
    pub(crate) answer_seconds: u32,
    /// Attempts after which a command that asks for another one is rejected, unless it may have sent
    /// money or coins.
    #[schemars(range(min = 1, max = 1_000), extend("x-unit" = "attempts"))]
    pub(crate) attempts_max: u32,
    /// Unused deposit addresses that are kept of each connector and asset.
    #[schemars(range(min = 0, max = 1_000), extend("x-unit" = "addresses"))]
    pub(crate) deposit_addresses_min: u32,
}

impl Default for Connectors {
    fn default() -> Self {
        let settings::Connectors { answer_seconds, attempts_max, deposit_addresses_min } =
            settings::Connectors::default();
        Self {
            listen: None,
            tls: ListenerTls::default(),
            answer_seconds,
            attempts_max,
            deposit_addresses_min,
        }
    }
}

impl Connectors {
    /// Checks what no single key's bounds say: no token crosses a network in clear.
    pub(in crate::config) fn check(&self) -> Result<(), StartupError> {
        self.tls.check("connectors", self.address())
    }

    /// The address to listen on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.listen.unwrap_or_else(|| super::local(PORT))
    }

    /// The settings that the core needs.
    pub(in crate::config) fn settings(&self) -> settings::Connectors {
        let Self { answer_seconds, attempts_max, deposit_addresses_min, .. } = *self;
        settings::Connectors { answer_seconds, attempts_max, deposit_addresses_min }
    }
}
