//! The key that a client's quotes are sealed with, one for each day.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rampart_types::ClientId;

use crate::platform::crypto::jwe::SealingKey;
use crate::platform::crypto::{MasterKey, Purpose};
use crate::platform::error::Result;

/// The current day's key, derived once a day and after a change of the client.
#[derive(Debug, Default)]
pub struct DayKey(ArcSwapOption<(i64, Arc<SealingKey>)>);

impl DayKey {
    /// The client's key of this day, in days since 1970.
    ///
    /// # Errors
    /// When the key cannot be derived, which is our fault.
    pub(crate) fn get(
        &self,
        keys: &MasterKey,
        day: i64,
        client: ClientId,
    ) -> Result<Arc<SealingKey>> {
        if let Some(current) = self.0.load().as_ref().filter(|current| current.0 == day) {
            return Ok(Arc::clone(&current.1));
        }
        let derived = keys.derive(Purpose::Quotes { day, client: client.uuid() })?;
        let key = Arc::new(SealingKey::new(&day.to_string(), &derived)?);
        self.0.store(Some(Arc::new((day, Arc::clone(&key)))));
        Ok(key)
    }
}
