//! The signed URL of the page of an open check. It is deterministic, and good for its order alone.

use super::Hold;
use crate::Core;
use crate::http::signed_link;
use crate::platform::error::Result;
use rampart_types::{ClientId, OrderId};

/// Kind of the order that a page is for. A purchase and a sale may have one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trade {
    Purchase,
    Sale,
}

impl Trade {
    const ALL: [Self; 2] = [Self::Purchase, Self::Sale];

    /// The pages' name in their signed links.
    const fn page(self) -> &'static str {
        match self {
            Self::Purchase => "checks",
            Self::Sale => "sale-checks",
        }
    }
}

/// The URL of the page on which the user passes a check of a purchase:
/// `<public_url>/checks/<token>/<check>`; `None` if the check is not the user's to pass.
///
/// # Errors
/// Those of the master key.
pub(crate) fn url(core: &Core, order: (ClientId, OrderId), hold: Hold) -> Result<Option<String>> {
    url_of(core, (Trade::Purchase, order), hold)
}

/// The same of an order of either kind.
///
/// # Errors
/// Those of the master key.
pub(crate) fn url_of(
    core: &Core,
    (trade, (client, order)): (Trade, (ClientId, OrderId)),
    hold: Hold,
) -> Result<Option<String>> {
    if !hold.is_users() {
        return Ok(None);
    }
    let number = order.number().to_be_bytes();
    let token = signed_link::sign(&core.keys, trade.page(), client, &number)?;
    Ok(Some(format!("{}/checks/{token}/{}", core.settings.public_url, hold.name())))
}

/// The order of a page's token; `None` if its signature is not ours.
///
/// # Errors
/// Those of the master key.
pub(super) fn open(core: &Core, token: &str) -> Result<Option<(Trade, ClientId, OrderId)>> {
    for trade in Trade::ALL {
        if let Some((client, number)) = signed_link::verify(&core.keys, trade.page(), token)? {
            let order = OrderId::new(i64::from_be_bytes(number));
            return Ok(order.map(|order| (trade, client, order)));
        }
    }
    Ok(None)
}
