//! The signed URL of a checkout's page.

use crate::Core;
use crate::http::signed_link;
use crate::platform::error::Result;
use rampart_types::{ClientId, OfferId};

/// The page's name in its signed links.
const PAGE: &str = "checkout";

/// The page's URL: `<public_url>/checkout/<session>?identifier=<sealed>`, the query only with an
/// identifier.
///
/// # Errors
/// As [`signed_link::sign`].
pub(super) fn url(
    core: &Core,
    client: ClientId,
    offer: OfferId,
    sealed_identifier: Option<&str>,
) -> Result<String> {
    let session = signed_link::sign(&core.keys, PAGE, client, offer.uuid().as_bytes())?;
    let mut url = format!("{}/checkout/{session}", core.settings.public_url);
    if let Some(sealed) = sealed_identifier {
        // base64url needs no escapes in a query.
        url.extend(["?identifier=", sealed]);
    }
    Ok(url)
}

/// The offer of a session; `None` if its signature is not ours.
///
/// # Errors
/// As [`signed_link::verify`].
pub(super) fn open(core: &Core, session: &str) -> Result<Option<(ClientId, OfferId)>> {
    let named = signed_link::verify(&core.keys, PAGE, session)?;
    Ok(named.map(|(client, id)| (client, OfferId::from(uuid::Uuid::from_bytes(id)))))
}
