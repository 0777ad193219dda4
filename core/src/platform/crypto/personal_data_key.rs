//! A user's data key, which seals all personal data of that user. It is stored wrapped by its
//! tenant's key and the master key; deleting it makes the data unreadable (crypto-shredding), also in a
//! copy of the database: at once in one without the keys of users, else once the master key that sealed
//! them is destroyed.

use rampart_types::UserKey;

use crate::platform::clock::Clock;
use crate::platform::crypto::DataKey;
use crate::platform::crypto::tenant_key::TenantCipher;
use crate::platform::error::Result;

/// Seals and opens the personal values of one user.
#[derive(Debug)]
pub struct PersonalDataKey {
    key: DataKey,
    owner: UserKey,
}

impl PersonalDataKey {
    /// Generates the key of a new user.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn generate(clock: &Clock, owner: UserKey) -> Result<Self> {
        Ok(Self { key: DataKey::random(clock)?, owner })
    }

    /// The user whose values it seals.
    pub(crate) const fn owner(&self) -> UserKey {
        self.owner
    }

    /// Opens a stored key.
    ///
    /// # Errors
    /// When it belongs to another user or was sealed by another tenant's key.
    pub(crate) fn open(cipher: &TenantCipher<'_>, owner: UserKey, wrapped: &[u8]) -> Result<Self> {
        let key = cipher.unwrap_key(&key_context(owner), wrapped)?;
        Ok(Self { key, owner })
    }

    /// The key in the stored form that edges of the version before read, sealed by its tenant's key.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn wrapped(&self, cipher: &TenantCipher<'_>) -> Result<Vec<u8>> {
        cipher.wrap(&key_context(self.owner), &self.key)
    }

    /// The key in its stored form, sealed by its tenant's key and by the master key once more.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn wrapped_twice(&self, cipher: &TenantCipher<'_>) -> Result<Vec<u8>> {
        cipher.wrap_twice(&key_context(self.owner), &self.key)
    }

    /// Seals a value of the column or row that `location` names.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn seal(&self, clock: &Clock, location: &str, plain: &[u8]) -> Result<Vec<u8>> {
        self.key.seal(clock, &self.context(location), plain)
    }

    /// Opens a value that [`Self::seal`] sealed for the same location.
    ///
    /// # Errors
    /// When it belongs to another user or location, or was altered.
    pub(crate) fn open_sealed(&self, location: &str, sealed: &[u8]) -> Result<Vec<u8>> {
        self.key.open(&self.context(location), sealed)
    }

    /// Seals the key of a single object, which `location` names.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn seal_key(&self, clock: &Clock, location: &str, key: &DataKey) -> Result<Vec<u8>> {
        self.key.seal_key(clock, &self.context(location), key)
    }

    /// Opens a key that [`Self::seal_key`] sealed for the same location.
    ///
    /// # Errors
    /// As [`Self::open_sealed`].
    pub(crate) fn open_key(&self, location: &str, sealed: &[u8]) -> Result<DataKey> {
        self.key.open_key(&self.context(location), sealed)
    }

    fn context(&self, location: &str) -> String {
        format!("{location}/{}/{}", self.owner.client, self.owner.user)
    }
}

/// The context that a user's key is sealed for.
pub fn key_context(UserKey { client, user }: UserKey) -> String {
    format!("end_user/key/{client}/{user}")
}
