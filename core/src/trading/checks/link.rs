//! The signed URL of the page of an open check. It is deterministic, and good for its order alone.

use super::Hold;
use crate::Core;
use crate::http::signed_link;
use crate::platform::error::Result;
use crate::trading::quotes::Side;
use rampart_types::{ClientId, OrderId};

/// The page's name in its signed link: a purchase and a sale may have one number.
const fn page(side: Side) -> &'static str {
    match side {
        Side::Buy => "checks",
        Side::Sell => "sale-checks",
    }
}

/// The URL of the page on which the user passes a check of an order: `<public_url>/checks/<token>/<check>`;
/// `None` if the check is not the user's to pass.
///
/// # Errors
/// Those of the master key.
pub(crate) fn url(
    core: &Core,
    (side, (client, order)): (Side, (ClientId, OrderId)),
    hold: Hold,
) -> Result<Option<String>> {
    if !hold.is_users() {
        return Ok(None);
    }
    let number = order.number().to_be_bytes();
    let token = signed_link::sign(&core.keys, page(side), client, &number)?;
    Ok(Some(format!("{}/checks/{token}/{}", core.settings.public_url, hold.name())))
}

/// The order of a page's token; `None` if its signature is not ours.
///
/// # Errors
/// Those of the master key.
pub(super) fn open(core: &Core, token: &str) -> Result<Option<(Side, ClientId, OrderId)>> {
    for side in [Side::Buy, Side::Sell] {
        if let Some((client, number)) = signed_link::verify(&core.keys, page(side), token)? {
            let order = OrderId::new(i64::from_be_bytes(number));
            return Ok(order.map(|order| (side, client, order)));
        }
    }
    Ok(None)
}
