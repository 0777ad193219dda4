//! The configuration.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use rampart_connector::{EdgeSettings, Secret, SecretSource};
use rust_decimal::Decimal;
use serde::Deserialize;

use crate::account::Account;

/// Bounds of `statements.interval_seconds`.
const INTERVAL_SECONDS: RangeInclusive<u64> = 1..=3_600;
/// Bounds of `transfers.batch_max`, the lease's own.
const BATCH_MAX: RangeInclusive<u16> = 1..=100;

/// Least length of `uploads.token` in bytes.
const TOKEN_BYTES_MIN: usize = 32;

/// The configuration of the connector.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// The edge.
    pub(crate) edge: EdgeSettings,
    /// The account.
    pub(crate) account: Account,
    /// The folder of its files.
    pub(crate) folder: PathBuf,
    /// The statements.
    #[serde(default)]
    pub(crate) statements: StatementSettings,
    /// The listener that statements are uploaded to; none unless it is configured.
    pub(crate) uploads: Option<UploadSettings>,
    /// The transfers.
    #[serde(default)]
    pub(crate) transfers: TransferSettings,
}

/// The statements.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StatementSettings {
    /// Pause between two looks at the folder.
    pub(crate) interval_seconds: u64,
}

impl Default for StatementSettings {
    fn default() -> Self {
        Self { interval_seconds: 5 }
    }
}

/// The listener that statements are uploaded to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UploadSettings {
    /// Its address, which speaks plain HTTP.
    #[serde(default = "loopback")]
    pub(crate) listen: SocketAddr,
    /// The token that an upload must carry.
    token: SecretSource,
}

impl UploadSettings {
    /// The token that an upload must carry.
    ///
    /// # Errors
    /// One sentence when it cannot be read, or has less than 32 bytes.
    pub(crate) fn token(&self) -> Result<Secret, String> {
        let token = self.token.read().map_err(|error| format!("uploads.token: {error}"))?;
        if token.expose().len() < TOKEN_BYTES_MIN {
            return Err(format!("uploads.token: at least {TOKEN_BYTES_MIN} bytes"));
        }
        Ok(token)
    }
}

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 9471).into()
}

/// The transfers.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TransferSettings {
    /// Most transfers of a file.
    pub(crate) batch_max: u16,
    /// Largest amount of one transfer, in the account's currency; a larger one is rejected.
    pub(crate) amount_max: Decimal,
}

impl Default for TransferSettings {
    fn default() -> Self {
        Self { batch_max: *BATCH_MAX.end(), amount_max: Decimal::from(100_000) }
    }
}

impl Settings {
    /// Checks bounds.
    ///
    /// # Errors
    /// One sentence with the setting's key.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.account.check()?;
        if !INTERVAL_SECONDS.contains(&self.statements.interval_seconds) {
            return Err("statements.interval_seconds: 1 to 3600".to_owned());
        }
        if !BATCH_MAX.contains(&self.transfers.batch_max) {
            return Err("transfers.batch_max: 1 to 100".to_owned());
        }
        if self.transfers.amount_max <= Decimal::ZERO {
            return Err("transfers.amount_max: above zero".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        folder = "/var/lib/rampart-bank"
        [edge]
        url = "http://127.0.0.1:9465"
        token = { file = "/etc/rampart/bank.token" }
        [account]
        name = "Rampart"
        iban = "NL02 ABNA 0123 4567 89"
    "#;

    fn read(more: &str) -> Result<Settings, toml::de::Error> {
        toml::from_str(&format!("{GOOD}{more}\n"))
    }

    #[test]
    fn the_example_is_a_configuration() {
        let settings: Settings = toml::from_str(include_str!("../bank.toml")).unwrap();
        assert_eq!(settings.check(), Ok(()));
        assert_eq!(settings.account.iban, "NL02ABNA0123456789");
    }

    #[test]
    fn the_least_configuration_has_defaults() {
        let settings = read("").unwrap();
        assert_eq!(settings.check(), Ok(()));
        assert_eq!(
            (settings.account.iban.as_str(), settings.account.currency.as_str()),
            ("NL02ABNA0123456789", "EUR")
        );
        assert_eq!(settings.transfers.batch_max, 100);
        assert!(settings.uploads.is_none());
        let uploads = read("[uploads]\ntoken = { file = \"/nowhere\" }").unwrap().uploads.unwrap();
        assert!(uploads.listen.ip().is_loopback());
        assert!(uploads.token().unwrap_err().starts_with("uploads.token"));
    }

    #[test]
    fn what_is_out_of_bounds_is_named() {
        for (lines, key) in [
            ("[statements]\ninterval_seconds = 0", "statements.interval_seconds"),
            ("[transfers]\nbatch_max = 101", "transfers.batch_max"),
            ("[transfers]\nbatch_max = 0", "transfers.batch_max"),
            ("[transfers]\namount_max = \"0\"", "transfers.amount_max"),
        ] {
            assert!(read(lines).unwrap().check().unwrap_err().starts_with(key), "{lines}");
        }
        assert!(read("[unknown]").is_err() && read("[transfers]\nmax = 1").is_err());
    }
}
