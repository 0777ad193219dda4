//! Secrets, and the keys derived from the master key (HKDF-SHA256, RFC 5869).
//!
//! Keys are derived, never stored: edges with the same master key open each other's sealed values.

pub mod day_key;
pub(crate) mod jwe;
pub(crate) mod personal_data_key;
use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::{digest, hkdf, hmac};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

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

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

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

/// SHA-256 of a high-entropy secret, for storage (ASVS 6.5.2 allows a plain hash from 112 bits).
pub fn digest_of(secret: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, secret.as_bytes()).as_ref());
    bytes
}

/// Compares two byte strings in constant time.
pub fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    subtle::ConstantTimeEq::ct_eq(a, b).into()
}

/// The purpose of a derived key. Its label is part of the derivation and never changes.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Signs client and user tokens of one day.
    Tokens {
        /// Days since 1970.
        day: i64,
    },
    /// Seals quotes of one tenant and one day.
    Quotes {
        /// Days since 1970.
        day: i64,
        /// The tenant.
        client: uuid::Uuid,
    },
    /// Signs links to pages, such as the payment page.
    SignedLinks,
    /// Seals secrets at rest in the database.
    Storage,
    /// Blind index: lookup of personal values by their MAC.
    BlindIndex,
    /// Seals partners' user identifiers for a URL.
    Identifiers,
    /// Derives deposit addresses of the sandbox.
    SandboxDeposits,
    /// Seals the TLS session tickets of one day.
    TlsTickets {
        /// Days since 1970.
        day: i64,
    },
}

impl Purpose {
    fn label(self) -> String {
        match self {
            Self::Tokens { day } => format!("rampart tokens {day}"),
            Self::Quotes { day, client } => format!("rampart quotes {day} {client}"),
            Self::SignedLinks => "rampart pages".to_owned(),
            Self::Storage => "rampart storage".to_owned(),
            Self::BlindIndex => "rampart blind index".to_owned(),
            Self::Identifiers => "rampart identifiers".to_owned(),
            Self::SandboxDeposits => "rampart sandbox deposits".to_owned(),
            Self::TlsTickets { day } => format!("rampart tls tickets {day}"),
        }
    }
}

/// The master key, from which all other keys are derived.
#[derive(Clone)]
pub struct MasterKey(hkdf::Prk);

/// Length in bytes of the master key and of every derived key.
pub const KEY_BYTES: usize = 32;

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MasterKey(…)")
    }
}

impl MasterKey {
    /// Parses a master key of 32 bytes in base64; `None` if it is malformed.
    pub fn parse(text: &Secret) -> Option<Self> {
        let bytes = STANDARD.decode(text.expose().trim()).ok()?;
        (bytes.len() == KEY_BYTES).then(|| Self::from_bytes(&bytes))
    }

    /// A master key from bytes of full entropy.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(hkdf::Salt::new(hkdf::HKDF_SHA256, b"rampart master key").extract(bytes))
    }

    /// The key for a purpose.
    ///
    /// # Errors
    /// Never for [`KEY_BYTES`]; the library's type says it could.
    pub fn derive(&self, purpose: Purpose) -> Result<[u8; KEY_BYTES]> {
        let label = purpose.label();
        let mut key = [0; KEY_BYTES];
        self.0
            .expand(&[label.as_bytes()], hkdf::HKDF_SHA256)
            .and_then(|okm| okm.fill(&mut key))
            .map_err(|_| Error::broken("derive a key"))?;
        Ok(key)
    }

    /// HMAC-SHA256 of `message` under the key of `purpose`.
    ///
    /// # Errors
    /// As [`MasterKey::derive`].
    pub fn mac(&self, purpose: Purpose, message: &[u8]) -> Result<hmac::Tag> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.derive(purpose)?);
        Ok(hmac::sign(&key, message))
    }

    /// Seals a secret for the database with [`Purpose::Storage`], as [`DataKey::seal`] does.
    ///
    /// # Errors
    /// Without entropy for the nonce.
    pub fn seal(&self, clock: &Clock, context: &str, plain: &[u8]) -> Result<Vec<u8>> {
        self.sealing_key(Purpose::Storage)?.seal(clock, context, plain)
    }

    /// Opens a value that [`MasterKey::seal`] sealed for the same context.
    ///
    /// # Errors
    /// When it was sealed under another master key or for another row, or was altered.
    pub fn open(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>> {
        self.sealing_key(Purpose::Storage)?.open(context, sealed)
    }

    /// The key that seals values for a purpose.
    ///
    /// # Errors
    /// As [`MasterKey::derive`].
    pub fn sealing_key(&self, purpose: Purpose) -> Result<DataKey> {
        Ok(DataKey(self.derive(purpose)?))
    }
}

/// A key that seals values at rest (AES-256-GCM). A user's own data key is random and stored
/// wrapped: once it is deleted, no value sealed with it can be read again.
pub struct DataKey([u8; KEY_BYTES]);

impl std::fmt::Debug for DataKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DataKey(…)")
    }
}

impl DataKey {
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
        let key = key.try_into().map_err(|_| Error::broken("open a data key: another length"))?;
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
            .map_err(|_| Error::broken("seal a secret"))?;
        Ok([&nonce[..], &sealed, tag.as_ref()].concat())
    }

    /// Opens a value that [`DataKey::seal`] sealed for the same context.
    ///
    /// # Errors
    /// When it was sealed under another key or for another row, or was altered.
    pub fn open(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>> {
        let broken = || Error::broken("open a sealed secret (another master key?)");
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
            UnboundKey::new(&AES_256_GCM, &self.0).map_err(|_| Error::broken("make a key"))?;
        Ok(LessSafeKey::new(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_and_days_have_separate_keys() {
        let master = MasterKey::from_bytes(&[7; 32]);
        let key = |purpose| master.derive(purpose).unwrap();
        assert_ne!(key(Purpose::Tokens { day: 1 }), key(Purpose::Tokens { day: 2 }));
        assert_ne!(key(Purpose::SignedLinks), key(Purpose::Storage));
        assert_eq!(
            key(Purpose::SignedLinks),
            MasterKey::from_bytes(&[7; 32]).derive(Purpose::SignedLinks).unwrap()
        );
    }

    #[test]
    fn a_sealed_value_opens_only_in_its_context() {
        let (master, clock) = (MasterKey::from_bytes(&[7; 32]), Clock::system());
        let sealed = master.seal(&clock, "client_secret/a", b"whsec").unwrap();
        assert_eq!(master.open("client_secret/a", &sealed).unwrap(), b"whsec");
        assert!(master.open("client_secret/b", &sealed).is_err());
        for at in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[at] ^= 1;
            assert!(master.open("client_secret/a", &altered).is_err());
        }
    }

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
