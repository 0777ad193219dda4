//! The rate of a user's image uploads (section 4 of the contract).

use crate::Core;
use crate::auth::caller::Client;
use crate::platform::error::{Error, Result};
use rampart_types::UserId;

/// Counts an upload of the user: a request with images, whatever their number.
///
/// # Errors
/// Code 920 above the rate.
pub(crate) fn count(core: &Core, client: &Client, user: UserId) -> Result<()> {
    let (quota, now_ns) = (client.tenant.rates.uploads, core.clock.monotonic_ns());
    let bucket = core.images.bucket(client.key_of(user), quota);
    let decision = core.shared_rates.take(&bucket, quota, 1, now_ns);
    if decision.allowed {
        return Ok(());
    }
    core.metrics.rate_limited("uploads", &client.tenant.slug);
    Err(Error::rate_limited("uploads", decision))
}
