//! The data key of one user, under which everything personal of that user is sealed. It is itself
//! sealed by the master key: deleting it makes all of that unreadable, in every copy.

use rampart_types::{ClientId, UserId};

use crate::platform::clock::Clock;
use crate::platform::crypto::{DataKey, MasterKey};
use crate::platform::error::Result;

/// Seals and opens the personal values of one user.
#[derive(Debug)]
pub(crate) struct PersonalDataKey {
    key: DataKey,
    client: ClientId,
    user: UserId,
}

impl PersonalDataKey {
    /// A key for a new user.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn generate(clock: &Clock, client: ClientId, user: UserId) -> Result<Self> {
        Ok(Self { key: DataKey::random(clock)?, client, user })
    }

    /// The key that is stored as `wrapped`.
    ///
    /// # Errors
    /// When it is another user's, or was sealed by another master key.
    pub(crate) fn open(
        keys: &MasterKey,
        client: ClientId,
        user: UserId,
        wrapped: &[u8],
    ) -> Result<Self> {
        let key = DataKey::from_wrapped(keys, &key_context(client, user), wrapped)?;
        Ok(Self { key, client, user })
    }

    /// A user's key from its data key.
    #[cfg(test)]
    pub(crate) fn with_key(key: DataKey, client: ClientId, user: UserId) -> Self {
        Self { key, client, user }
    }

    /// The key as it is stored: sealed by the master key.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn wrapped(&self, keys: &MasterKey, clock: &Clock) -> Result<Vec<u8>> {
        self.key.wrap(keys, clock, &key_context(self.client, self.user))
    }

    /// Seals a value of the column or row that `place` names.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn seal(&self, clock: &Clock, place: &str, plain: &[u8]) -> Result<Vec<u8>> {
        self.key.seal(clock, &self.context(place), plain)
    }

    /// Opens a value that [`Self::seal`] sealed for the same place.
    ///
    /// # Errors
    /// When it is another user's or another place's, or was altered.
    pub(crate) fn open_sealed(&self, place: &str, sealed: &[u8]) -> Result<Vec<u8>> {
        self.key.open(&self.context(place), sealed)
    }

    /// Seals the key of a single object, which `place` names.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn seal_key(&self, clock: &Clock, place: &str, key: &DataKey) -> Result<Vec<u8>> {
        self.key.seal_key(clock, &self.context(place), key)
    }

    /// The key that [`Self::seal_key`] sealed for the same place.
    ///
    /// # Errors
    /// As [`Self::open_sealed`].
    pub(crate) fn open_key(&self, place: &str, sealed: &[u8]) -> Result<DataKey> {
        self.key.open_key(&self.context(place), sealed)
    }

    fn context(&self, place: &str) -> String {
        format!("{place}/{}/{}", self.client, self.user)
    }
}

fn key_context(client: ClientId, user: UserId) -> String {
    format!("end_user/key/{client}/{user}")
}
