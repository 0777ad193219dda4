//! Sealed user identifiers for URLs, scoped to one partner.
//!
//! An identifier serves as a credential, so no browser history may show it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::Core;
use crate::platform::crypto::Purpose;
use crate::platform::error::Result;
use rampart_types::{ClientId, UserIdentifier};

/// Prefix of a sealed identifier. Its full stop distinguishes it from raw ones, which have letters
/// and digits only.
const PREFIX: &str = "s1.";

/// Longest sealed identifier that is opened, in bytes; valid ones have some 400.
const SEALED_BYTES_MAX: usize = 1_024;

/// Seals an identifier as text that needs no escaping in a URL.
///
/// # Errors
/// Without entropy.
pub fn seal(core: &Core, client: ClientId, identifier: &UserIdentifier) -> Result<String> {
    let key = core.keys.sealing_key(Purpose::Identifiers)?;
    let sealed = key.seal(&core.clock, &client.to_string(), identifier.as_str().as_bytes())?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(sealed)))
}

/// Opens an identifier that [`seal`] sealed for this client; `None` for any other text.
pub fn open(core: &Core, client: ClientId, text: &str) -> Option<UserIdentifier> {
    let sealed = text.strip_prefix(PREFIX).filter(|text| text.len() <= SEALED_BYTES_MAX)?;
    let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
    let key = core.keys.sealing_key(Purpose::Identifiers).ok()?;
    let plain = key.open(&client.to_string(), &sealed).ok()?;
    str::from_utf8(&plain).ok()?.parse().ok()
}
