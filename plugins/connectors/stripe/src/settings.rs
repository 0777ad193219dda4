//! The configuration.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use rampart_connector::{EdgeSettings, SecretSource};
use serde::Deserialize;
use url::{Host, Url};

/// Bounds of `stripe.timeout_seconds`.
const TIMEOUT_SECONDS: RangeInclusive<u64> = 1..=120;
/// Bounds of `polling.interval_seconds`.
const INTERVAL_SECONDS: RangeInclusive<u64> = 1..=3_600;
/// Bounds of `polling.lookback_seconds`: Stripe keeps events for 30 days.
const LOOKBACK_SECONDS: RangeInclusive<u64> = 60..=30 * 86_400;

/// The configuration of the connector.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// The edge.
    pub(crate) edge: EdgeSettings,
    /// The account.
    pub(crate) stripe: StripeSettings,
    /// The listener for webhooks; none unless it is configured.
    pub(crate) webhooks: Option<WebhookSettings>,
    /// The second source of facts.
    #[serde(default)]
    pub(crate) polling: PollingSettings,
}

/// The account.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StripeSettings {
    /// URL of the API; plain HTTP on loopback only.
    #[serde(default = "api_url")]
    pub(crate) url: String,
    /// The secret key.
    pub(crate) secret_key: SecretSource,
    /// Longest time of one call.
    #[serde(default = "timeout_seconds")]
    pub(crate) timeout_seconds: u64,
}

/// The listener for webhooks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookSettings {
    /// Its address. It speaks plain HTTP: a proxy in front of it does TLS.
    pub(crate) listen: SocketAddr,
    /// The secret that webhooks are signed with.
    pub(crate) secret: SecretSource,
}

/// Polling of the account's events.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PollingSettings {
    /// Pause between two looks.
    pub(crate) interval_seconds: u64,
    /// Age of the oldest event that is looked at after a start.
    pub(crate) lookback_seconds: u64,
}

impl Default for PollingSettings {
    fn default() -> Self {
        Self { interval_seconds: 15, lookback_seconds: 3 * 86_400 }
    }
}

fn api_url() -> String {
    "https://api.stripe.com".to_owned()
}

const fn timeout_seconds() -> u64 {
    30
}

impl Settings {
    /// Checks bounds.
    ///
    /// # Errors
    /// One sentence with the setting's key.
    pub(crate) fn check(&self) -> Result<(), String> {
        let url = Url::parse(&self.stripe.url).ok();
        if !url.is_some_and(|url| is_safe(&url)) {
            return Err("stripe.url: an https URL, or http on loopback".to_owned());
        }
        for (key, value, bounds) in [
            ("stripe.timeout_seconds", self.stripe.timeout_seconds, TIMEOUT_SECONDS),
            ("polling.interval_seconds", self.polling.interval_seconds, INTERVAL_SECONDS),
            ("polling.lookback_seconds", self.polling.lookback_seconds, LOOKBACK_SECONDS),
        ] {
            if !bounds.contains(&value) {
                return Err(format!("{key}: {} to {}", bounds.start(), bounds.end()));
            }
        }
        Ok(())
    }
}

/// True where a secret key is not read on the way.
fn is_safe(url: &Url) -> bool {
    match (url.scheme(), url.host()) {
        ("https", Some(_)) => true,
        ("http", Some(Host::Ipv4(address))) => address.is_loopback(),
        ("http", Some(Host::Ipv6(address))) => address.is_loopback(),
        ("http", Some(Host::Domain(domain))) => domain == "localhost",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        [edge]
        url = "http://127.0.0.1:9465"
        token = { file = "/etc/rampart/stripe.token" }
        [stripe]
        secret_key = { environment = "STRIPE_SECRET_KEY" }
    "#;

    #[test]
    fn the_least_configuration_polls_and_does_not_listen() {
        let settings: Settings = toml(GOOD).unwrap();
        assert!(settings.check().is_ok() && settings.webhooks.is_none());
        assert_eq!(settings.stripe.url, "https://api.stripe.com");
        assert_eq!(settings.polling.interval_seconds, 15);
    }

    #[test]
    fn the_readmes_configuration_is_good() {
        let (_, rest) = include_str!("../README.md").split_once("```toml\n").unwrap();
        let settings: Settings = toml(rest.split_once("```").unwrap().0).unwrap();
        assert!(settings.check().is_ok() && settings.webhooks.is_some());
    }

    #[test]
    fn what_is_out_of_bounds_is_named() {
        for (line, key) in [
            ("url = \"http://api.example.com\"", "stripe.url"),
            ("url = \"ftp://localhost\"", "stripe.url"),
            ("timeout_seconds = 0", "stripe.timeout_seconds"),
            ("[polling]\ninterval_seconds = 0", "polling.interval_seconds"),
            ("[polling]\nlookback_seconds = 2592001", "polling.lookback_seconds"),
        ] {
            let settings: Settings = toml(&format!("{GOOD}{line}\n")).unwrap();
            assert!(settings.check().unwrap_err().starts_with(key), "{line}");
        }
        assert!(toml(&format!("{GOOD}secret = 1\n")).is_err(), "an unknown key");
        let lacks = GOOD.replace("secret_key", "key");
        assert!(toml(&lacks).is_err());
    }

    fn toml(text: &str) -> Result<Settings, toml::de::Error> {
        toml::from_str(text)
    }
}
