//! The signed URL of the page on which an order is paid. It is deterministic, so that a repeated
//! confirm returns the same, and cannot be forged for another order.

use crate::Core;
use crate::http::signed_link;
use crate::platform::crypto::MasterKey;
use crate::platform::error::Result;
use rampart_types::{OrderId, OrderKey};

/// The page's name in its signed links.
const PAGE: &str = "pay";

/// The URL of an order's page: `<public_url>/pay/<token>`.
///
/// # Errors
/// As [`MasterKey::mac`].
pub fn payment_url(core: &Core, key: OrderKey) -> Result<String> {
    let token = token(&core.keys, key)?;
    Ok(format!("{}/pay/{token}", core.settings.public_url))
}

/// The order of a page's token; `None` if its signature is not ours.
///
/// # Errors
/// As [`MasterKey::mac`].
pub fn parse(core: &Core, token: &str) -> Result<Option<OrderKey>> {
    open(&core.keys, token)
}

fn token(keys: &MasterKey, key: OrderKey) -> Result<String> {
    signed_link::sign(keys, PAGE, key.client, &key.order.number().to_be_bytes())
}

fn open(keys: &MasterKey, token: &str) -> Result<Option<OrderKey>> {
    let Some((client, number)) = signed_link::verify(keys, PAGE, token)? else { return Ok(None) };
    Ok(OrderId::new(i64::from_be_bytes(number)).map(|order| OrderKey { client, order }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rampart_types::ClientId;
    use uuid::Uuid;

    use super::*;

    fn keys() -> MasterKey {
        MasterKey::from_bytes(&[7; 32])
    }

    fn link_token(client: u128, order: i64) -> String {
        let client = ClientId::from(Uuid::from_u128(client));
        token(&keys(), OrderKey { client, order: OrderId::new(order).unwrap() }).unwrap()
    }

    #[test]
    fn no_altered_token_is_accepted() {
        let token = link_token(1, 7);
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
            let token = link_token(client, order.number());
            prop_assert_eq!(&token, &link_token(client, order.number()));
            let client = ClientId::from(Uuid::from_u128(client));
            prop_assert_eq!(open(&keys(), &token).unwrap(), Some(OrderKey { client, order }));
        }

        #[test]
        fn any_text_is_refused_without_a_panic(text in "\\PC{0,80}", near in "[A-Za-z0-9_-]{54}") {
            prop_assert_eq!(open(&keys(), &text).unwrap(), None);
            prop_assert_eq!(open(&keys(), &near).unwrap(), None);
        }
    }
}
