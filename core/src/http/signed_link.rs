//! The name of something in the address of its page: a client and an id, which nobody can make up.
//! It is the same whenever it is asked for, so that a repeated request gets the same address.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use crate::platform::crypto::{MasterKey, Purpose, equal};
use crate::platform::error::Result;
use rampart_types::ClientId;

/// Bytes of the client's id.
const CLIENT_BYTES: usize = 16;
/// Bytes of the MAC that are kept: 128 bits (RFC 2104, section 5).
const MAC_BYTES: usize = 16;

/// The token of an id on a page. A token of one page is none on another.
///
/// # Errors
/// As [`MasterKey::mac`].
pub(crate) fn make<const ID_BYTES: usize>(
    keys: &MasterKey,
    page: &str,
    client: ClientId,
    id: &[u8; ID_BYTES],
) -> Result<String> {
    let mut bytes = [&client.uuid().as_bytes()[..], id].concat();
    bytes.extend(mac(keys, page, &bytes)?);
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The client and the id that a token names; `None` when we have not made it.
///
/// # Errors
/// As [`MasterKey::mac`].
pub(crate) fn open<const ID_BYTES: usize>(
    keys: &MasterKey,
    page: &str,
    token: &str,
) -> Result<Option<(ClientId, [u8; ID_BYTES])>> {
    let bytes = URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
    let Some((name, mac_sent)) = bytes.split_last_chunk::<MAC_BYTES>() else { return Ok(None) };
    if !equal(&mac(keys, page, name)?, mac_sent) {
        return Ok(None);
    }
    let Some((client, id)) = name.split_first_chunk::<CLIENT_BYTES>() else { return Ok(None) };
    let id = id.try_into().ok();
    Ok(id.map(|id| (ClientId::from(Uuid::from_bytes(*client)), id)))
}

fn mac(keys: &MasterKey, page: &str, name: &[u8]) -> Result<[u8; MAC_BYTES]> {
    let tag = keys.mac(Purpose::Pages, &[page.as_bytes(), b"/", name].concat())?;
    let mut kept = [0; MAC_BYTES];
    kept.copy_from_slice(&tag.as_ref()[..MAC_BYTES]);
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_its_page_and_its_length_of_id() {
        let keys = MasterKey::from_bytes(&[7; 32]);
        let client = ClientId::from(Uuid::from_u128(1));
        let token = make(&keys, "pay", client, &[5; 8]).unwrap();
        assert_eq!(open(&keys, "pay", &token).unwrap(), Some((client, [5; 8])));
        assert_eq!(open::<8>(&keys, "checkout", &token).unwrap(), None);
        assert_eq!(open::<16>(&keys, "pay", &token).unwrap(), None);
        for short in ["", "AA", "AAAAAAAAAAAAAAAAAAAAAA"] {
            assert_eq!(open::<8>(&keys, "pay", short).unwrap(), None);
        }
    }
}
