//! Settings of commands to connectors.

/// `connectors`, but for its listener, with which the binary reads them.
#[derive(Clone, Copy, Debug)]
pub struct Connectors {
    /// Seconds for which a request waits for a connector's answer.
    pub answer_seconds: u32,
    /// Attempts after which a command that asks for another one is rejected, unless it may have sent
    /// money or coins.
    pub attempts_max: u32,
    /// Unused deposit addresses that are kept of each connector and asset.
    pub deposit_addresses_min: u32,
}

impl Default for Connectors {
    fn default() -> Self {
        Self { answer_seconds: 8, attempts_max: 20, deposit_addresses_min: 100 }
    }
}
