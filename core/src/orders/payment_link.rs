//! The address of the page where an order is paid. It is the same whenever it is asked for, so
//! that a repeated confirm answers the same, and nobody can make one for an order not their own.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use crate::Core;
use crate::error::Result;
use crate::secrets::{MasterKey, Purpose, equal};
use crate::types::{ClientId, OrderId};

/// Client and order, as bytes.
const NAME_BYTES: usize = 16 + 8;
/// Bytes of the MAC that are kept: 128 bits (RFC 2104, section 5).
const MAC_BYTES: usize = 16;

/// `<public_url>/pay/<token>` of an order.
///
/// # Errors
/// As [`MasterKey::mac`].
pub fn payment_url(core: &Core, client: ClientId, order: OrderId) -> Result<String> {
    let token = token(&core.keys, client, order)?;
    Ok(format!("{}/pay/{token}", core.settings.public_url))
}

/// The order that the token of a page names; `None` when we have not made it.
///
/// # Errors
/// As [`MasterKey::mac`].
pub fn parse(core: &Core, token: &str) -> Result<Option<(ClientId, OrderId)>> {
    open(&core.keys, token)
}

fn token(keys: &MasterKey, client: ClientId, order: OrderId) -> Result<String> {
    let mut bytes = [0; NAME_BYTES + MAC_BYTES];
    bytes[..16].copy_from_slice(client.uuid().as_bytes());
    bytes[16..NAME_BYTES].copy_from_slice(&order.number().to_be_bytes());
    let mac = mac(keys, &bytes[..NAME_BYTES])?;
    bytes[NAME_BYTES..].copy_from_slice(&mac);
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn open(keys: &MasterKey, token: &str) -> Result<Option<(ClientId, OrderId)>> {
    let mut bytes = [0; NAME_BYTES + MAC_BYTES];
    let decoded = URL_SAFE_NO_PAD.decode_slice(token, &mut bytes);
    if !decoded.is_ok_and(|length| length == bytes.len()) {
        return Ok(None);
    }
    let (name, mac_sent) = bytes.split_at(NAME_BYTES);
    if !equal(&mac(keys, name)?, mac_sent) {
        return Ok(None);
    }
    let (client, order) = name.split_at(16);
    let client = Uuid::from_slice(client).ok().map(ClientId::from);
    let order = order.try_into().ok().map(i64::from_be_bytes).and_then(OrderId::new);
    Ok(client.zip(order))
}

fn mac(keys: &MasterKey, name: &[u8]) -> Result<[u8; MAC_BYTES]> {
    let tag = keys.mac(Purpose::Pages, &[b"pay/", name].concat())?;
    let mut kept = [0; MAC_BYTES];
    kept.copy_from_slice(&tag.as_ref()[..MAC_BYTES]);
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys() -> MasterKey {
        MasterKey::from_bytes(&[7; 32])
    }

    fn made(client: u128, order: i64) -> String {
        let client = ClientId::from(Uuid::from_u128(client));
        token(&keys(), client, OrderId::new(order).unwrap()).unwrap()
    }

    #[test]
    fn no_altered_token_is_accepted() {
        let token = made(1, 7);
        for at in 0..token.len() {
            for other in ["A", "B", "_", "", "AA"] {
                let altered = [&token[..at], other, &token[at + 1..]].concat();
                if altered != token {
                    assert_eq!(open(&keys(), &altered).unwrap(), None, "{altered}");
                }
            }
        }
        let master = MasterKey::from_bytes(&[8; 32]);
        assert_eq!(open(&master, &token).unwrap(), None);
    }

    proptest! {
        #[test]
        fn a_link_is_always_the_same_and_names_its_order(client: u128, random: u64) {
            let order = OrderId::from_entropy(random);
            let token = made(client, order.number());
            prop_assert_eq!(&token, &made(client, order.number()));
            let client = ClientId::from(Uuid::from_u128(client));
            prop_assert_eq!(open(&keys(), &token).unwrap(), Some((client, order)));
        }

        #[test]
        fn any_text_is_refused_without_a_panic(text in "\\PC{0,80}", near in "[A-Za-z0-9_-]{54}") {
            prop_assert_eq!(open(&keys(), &text).unwrap(), None);
            prop_assert_eq!(open(&keys(), &near).unwrap(), None);
        }
    }
}
