//! Tokens in links to pages: a tenant and an id with a MAC. They are deterministic, so that a
//! repeated request gets the same link.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use uuid::Uuid;

use crate::platform::crypto::{MasterKey, Purpose, constant_time_eq};
use crate::platform::db::tenant;
use crate::platform::error::Result;
use rampart_types::ClientId;

/// Bytes of the client's id.
const CLIENT_BYTES: usize = 16;
/// Bytes of the truncated MAC: 128 bits (RFC 2104, section 5).
const MAC_BYTES: usize = 16;

/// Signs a token for an id on a page. It is invalid on any other page.
///
/// # Errors
/// Those of [`MasterKey::mac`].
pub(crate) fn sign<const ID_BYTES: usize>(
    keys: &MasterKey,
    page: &str,
    client: ClientId,
    id: &[u8; ID_BYTES],
) -> Result<String> {
    let mut bytes = [&client.uuid().as_bytes()[..], id].concat();
    bytes.extend(mac(keys, page, &bytes)?);
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Verifies a token and returns its tenant and id; `None` when it is forged. The request is of that
/// tenant from now on.
///
/// # Errors
/// Those of [`MasterKey::mac`].
pub(crate) fn verify<const ID_BYTES: usize>(
    keys: &MasterKey,
    page: &str,
    token: &str,
) -> Result<Option<(ClientId, [u8; ID_BYTES])>> {
    let bytes = URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
    let Some((payload, mac_sent)) = bytes.split_last_chunk::<MAC_BYTES>() else { return Ok(None) };
    let message = message(page, payload);
    let genuine = keys.derive_each(Purpose::SignedLinks).any(|key| {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), &message);
        constant_time_eq(&tag.as_ref()[..MAC_BYTES], mac_sent)
    });
    if !genuine {
        return Ok(None);
    }
    let Some((client, id)) = payload.split_first_chunk::<CLIENT_BYTES>() else { return Ok(None) };
    let client = ClientId::from(Uuid::from_bytes(*client));
    tenant::enter(client);
    Ok(id.try_into().ok().map(|id| (client, id)))
}

fn mac(keys: &MasterKey, page: &str, payload: &[u8]) -> Result<[u8; MAC_BYTES]> {
    let tag = keys.mac(Purpose::SignedLinks, &message(page, payload))?;
    let mut truncated = [0; MAC_BYTES];
    truncated.copy_from_slice(&tag.as_ref()[..MAC_BYTES]);
    Ok(truncated)
}

fn message(page: &str, payload: &[u8]) -> Vec<u8> {
    [page.as_bytes(), b"/", payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_valid_for_its_page_and_id_length_only() {
        let keys = MasterKey::from_bytes(&[7; 32]);
        let client = ClientId::from(Uuid::from_u128(1));
        let token = sign(&keys, "pay", client, &[5; 8]).unwrap();
        assert_eq!(verify(&keys, "pay", &token).unwrap(), Some((client, [5; 8])));
        assert_eq!(verify::<8>(&keys, "checkout", &token).unwrap(), None);
        assert_eq!(verify::<16>(&keys, "pay", &token).unwrap(), None);
        for short in ["", "AA", "AAAAAAAAAAAAAAAAAAAAAA"] {
            assert_eq!(verify::<8>(&keys, "pay", short).unwrap(), None);
        }
    }
}
