//! Secrets, and the keys that seal them.
//!
//! Keys are derived from the master key or stored wrapped by it: edges with the same one open each
//! other's sealed values.

pub mod day_key;
pub(crate) mod jwe;
mod master_key;
pub mod personal_data_key;
pub mod tenant_key;

use std::borrow::Cow;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

pub use self::master_key::{KEY_BYTES, KeyId, MasterKey, Purpose};
use crate::platform::clock::Clock;
use crate::platform::error::{Error, Result};

/// A secret text, redacted in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

rampart_types::opaque_debug!(Secret);

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "secret" })
    }
}

/// The context that a lasting key is sealed for.
pub fn lasting_context(name: &str) -> String {
    format!("lasting_key/{name}")
}

/// SHA-256. A secret is stored as such if it has 112 bits of entropy at least (ASVS 6.5.2).
pub fn sha256(bytes: &(impl AsRef<[u8]> + ?Sized)) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, bytes.as_ref()).as_ref());
    hash
}

/// Compares two byte strings in constant time.
pub fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    subtle::ConstantTimeEq::ct_eq(a, b).into()
}

/// A key that seals values at rest (AES-256-GCM). A user's own data key is random and stored
/// wrapped: once it is deleted, no value sealed with it can be read again.
pub struct DataKey([u8; KEY_BYTES]);

rampart_types::opaque_debug!(DataKey);

impl DataKey {
    /// A key of these bytes.
    const fn new(key: [u8; KEY_BYTES]) -> Self {
        Self(key)
    }

    /// A new key.
    ///
    /// # Errors
    /// Without entropy.
    pub fn random(clock: &Clock) -> Result<Self> {
        Ok(Self(clock.random_bytes()?))
    }

    /// The key, sealed with the master key.
    ///
    /// # Errors
    /// As [`MasterKey::seal`].
    pub fn wrap(&self, master: &MasterKey, clock: &Clock, context: &str) -> Result<Vec<u8>> {
        master.seal(clock, context, &self.0)
    }

    /// Opens a key that [`DataKey::wrap`] sealed for the same context.
    ///
    /// # Errors
    /// As [`MasterKey::open`].
    pub fn from_wrapped(master: &MasterKey, context: &str, wrapped: &[u8]) -> Result<Self> {
        Self::from_bytes(master.open(context, wrapped)?)
    }

    fn from_bytes(key: Vec<u8>) -> Result<Self> {
        let key =
            key.try_into().map_err(|_| Error::invariant("open a data key: another length"))?;
        Ok(Self(key))
    }

    /// Seals another key, as [`DataKey::seal`] does.
    ///
    /// # Errors
    /// As [`DataKey::seal`].
    pub fn seal_key(&self, clock: &Clock, context: &str, key: &Self) -> Result<Vec<u8>> {
        self.seal(clock, context, &key.0)
    }

    /// Opens a key that [`DataKey::seal_key`] sealed for the same context.
    ///
    /// # Errors
    /// As [`DataKey::open`].
    pub fn open_key(&self, context: &str, sealed: &[u8]) -> Result<Self> {
        Self::from_bytes(self.open(context, sealed)?)
    }

    /// Seals a value as nonce, ciphertext and tag. `context` is authenticated, so a value sealed for
    /// one row cannot be opened for another.
    ///
    /// # Errors
    /// Without entropy for the nonce.
    pub fn seal(&self, clock: &Clock, context: &str, plain: &[u8]) -> Result<Vec<u8>> {
        let nonce: [u8; NONCE_LEN] = clock.random_bytes()?;
        let mut sealed = plain.to_vec();
        let tag = self
            .cipher()?
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(context.as_bytes()),
                &mut sealed,
            )
            .map_err(|_| Error::invariant("seal a secret"))?;
        Ok([&nonce[..], &sealed, tag.as_ref()].concat())
    }

    /// Opens a value that [`DataKey::seal`] sealed for the same context.
    ///
    /// # Errors
    /// When it was sealed under another key or for another row, or was altered.
    pub fn open(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>> {
        let broken = || Error::invariant("open a sealed secret (another master key?)");
        let (nonce, rest) = sealed.split_at_checked(NONCE_LEN).ok_or_else(broken)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| broken())?;
        let mut buffer = rest.to_vec();
        let plain = self
            .cipher()?
            .open_in_place(nonce, Aad::from(context.as_bytes()), &mut buffer)
            .map_err(|_| broken())?;
        Ok(plain.to_vec())
    }

    fn cipher(&self) -> Result<LessSafeKey> {
        let key =
            UnboundKey::new(&AES_256_GCM, &self.0).map_err(|_| Error::invariant("make a key"))?;
        Ok(LessSafeKey::new(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_key_unwraps_only_in_its_context() {
        let (master, clock) = (MasterKey::from_bytes(&[7; 32]), Clock::system());
        let key = DataKey::random(&clock).unwrap();
        let wrapped = key.wrap(&master, &clock, "user/a").unwrap();
        let sealed = key.seal(&clock, "personal/a", b"Ada").unwrap();
        let back = DataKey::from_wrapped(&master, "user/a", &wrapped).unwrap();
        assert_eq!(back.open("personal/a", &sealed).unwrap(), b"Ada");
        assert!(DataKey::from_wrapped(&master, "user/b", &wrapped).is_err());
        assert!(DataKey::random(&clock).unwrap().open("personal/a", &sealed).is_err());
        assert!(master.open("personal/a", &sealed).is_err());
    }

    #[test]
    fn a_secret_is_never_printed() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "Secret(…)");
    }
}
