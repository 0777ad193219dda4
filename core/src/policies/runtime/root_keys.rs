//! Root keys: public keys of operators in the settings, which no call of an API changes.

use std::sync::Arc;

use rampart_plugins::VerificationKey;
use rampart_plugins::contract::Algorithm;

use crate::platform::crypto::sha256;
use crate::platform::settings;

/// Fingerprint of a key: SHA-256 of its PEM without outer white space, in lower-case hex.
pub fn fingerprint(pem: &str) -> String {
    hex::encode(sha256(pem.trim()))
}

/// A root key, to verify with.
pub(crate) struct RootKey {
    name: String,
    pub(crate) public: Arc<VerificationKey>,
    pub(crate) fingerprint: String,
}

/// The root keys of the settings.
pub(crate) struct RootKeys(Vec<RootKey>);

impl RootKeys {
    /// Reads the keys.
    ///
    /// # Errors
    /// The first that is no Ed25519 key, by name.
    pub(crate) fn parse(settings: &settings::Policy) -> Result<Self, String> {
        let read = |(name, pem): (&String, &String)| {
            let public = VerificationKey::parse(Algorithm::Ed25519, pem)
                .map_err(|problem| format!("policy.root_keys.{name}: {problem}"))?;
            let (name, fingerprint) = (name.clone(), fingerprint(pem));
            Ok(RootKey { name, public: Arc::new(public), fingerprint })
        };
        settings.root_keys.iter().map(read).collect::<Result<_, String>>().map(Self)
    }

    /// The key of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&RootKey> {
        self.0.iter().find(|key| key.name == name)
    }

    /// True if there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if one of them has this fingerprint.
    pub(crate) fn contains(&self, fingerprint: &str) -> bool {
        self.0.iter().any(|key| key.fingerprint == fingerprint)
    }
}
