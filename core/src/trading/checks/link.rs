//! The URLs of the pages of checks. That of an order is signed and deterministic, and good for the
//! order alone; that of a user who has signed in has a token that expires.

use super::Hold;
use super::requirement::Requirement;
use crate::Core;
use crate::http::signed_link;
use crate::platform::error::Result;
use crate::trading::quotes::Side;
use crate::users::one_time_token::{self, Purpose};
use rampart_types::{OrderId, OrderKey, UserKey};

/// Permission that a page's token gives.
pub(super) enum Permission {
    /// To pass the checks of an order, and to complete the verification of its user.
    Order(Side, OrderKey),
    /// To complete the verification of a user who has signed in.
    Account(UserKey),
}

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
pub(crate) fn url(core: &Core, side: Side, order: OrderKey, hold: Hold) -> Result<Option<String>> {
    let url = hold.is_users().then(|| order_url(core, side, order, Requirement::Check(hold)));
    url.transpose()
}

/// The URL of the page of a requirement, by the token of an order.
///
/// # Errors
/// Those of the master key.
pub(super) fn order_url(
    core: &Core,
    side: Side,
    OrderKey { client, order }: OrderKey,
    requirement: Requirement,
) -> Result<String> {
    let number = order.number().to_be_bytes();
    let token = signed_link::sign(&core.keys, page(side), client, &number)?;
    Ok(format!("{}/checks/{token}/{}", core.settings.public_url, requirement.name()))
}

/// The URL of the page of a requirement, by the token of a user who has signed in on the account's page
/// (`<region>/<invitation>`), to which the page leads back; without one if it is empty.
pub(crate) fn account_url(
    core: &Core,
    token: &str,
    account_page: &str,
    requirement: Requirement,
) -> String {
    let mut url = format!("{}/checks/{token}/{}", core.settings.public_url, requirement.name());
    if !account_page.is_empty() {
        // Neither a website locale nor base64url needs escapes in a query.
        url.extend(["?account=", account_page]);
    }
    url
}

/// Opens a page's token; `None` if it is not ours, or has expired.
///
/// # Errors
/// Those of the master key; when the database cannot be read.
pub(super) async fn open(core: &Core, token: &str) -> Result<Option<Permission>> {
    for side in [Side::Buy, Side::Sell] {
        if let Some((client, number)) = signed_link::verify(&core.keys, page(side), token)? {
            let order = OrderId::new(i64::from_be_bytes(number));
            return Ok(order.map(|order| Permission::Order(side, OrderKey { client, order })));
        }
    }
    let holder = one_time_token::holder(&core.db, Purpose::Checks, token).await?;
    Ok(holder.map(Permission::Account))
}
