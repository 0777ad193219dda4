//! The signed URL of the page of an open check. It is deterministic, and good for its order alone.

use super::Hold;
use crate::Core;
use crate::http::signed_link;
use crate::platform::error::Result;
use rampart_types::{ClientId, OrderId};

/// The pages' name in their signed links.
const PAGE: &str = "checks";

/// The URL of the page on which the user passes a check: `<public_url>/checks/<token>/<check>`;
/// `None` if the check is not the user's to pass.
///
/// # Errors
/// Those of the master key.
pub(crate) fn url(
    core: &Core,
    (client, order): (ClientId, OrderId),
    hold: Hold,
) -> Result<Option<String>> {
    if !hold.is_users() {
        return Ok(None);
    }
    let token = signed_link::sign(&core.keys, PAGE, client, &order.number().to_be_bytes())?;
    Ok(Some(format!("{}/checks/{token}/{}", core.settings.public_url, hold.name())))
}

/// The order of a page's token; `None` if its signature is not ours.
///
/// # Errors
/// Those of the master key.
pub(super) fn open(core: &Core, token: &str) -> Result<Option<(ClientId, OrderId)>> {
    let Some((client, number)) = signed_link::verify(&core.keys, PAGE, token)? else {
        return Ok(None);
    };
    Ok(OrderId::new(i64::from_be_bytes(number)).map(|order| (client, order)))
}
