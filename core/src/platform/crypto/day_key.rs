//! The daily key that seals a tenant's quotes.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rampart_types::ClientId;

use crate::platform::crypto::jwe::SealingKey;
use crate::platform::crypto::{MasterKey, Purpose};
use crate::platform::error::Result;

/// A cache of the current day's key, derived once a day and after a change of the tenant.
#[derive(Debug, Default)]
pub struct DayKey(ArcSwapOption<(i64, Arc<SealingKey>)>);

impl DayKey {
    /// The tenant's key of `day`, in days since 1970.
    ///
    /// # Errors
    /// An internal error when the key cannot be derived.
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
