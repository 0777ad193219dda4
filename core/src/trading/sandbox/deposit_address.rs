//! The deposit address of a test tenant's sale: well formed, without a known key, and deterministic
//! for each sale.

use bech32::{Bech32, Fe32, Hrp};
use bs58::Alphabet;
use ring::hmac::Tag;
use stellar_strkey::ed25519::PublicKey;

use crate::Core;
use crate::platform::crypto::Purpose;
use crate::platform::error::{Error, Result};
use rampart_types::{Chain, DestinationTag, OrderKey, TagKind, WalletAddress};

/// Version byte of a Dogecoin address (pay to public key hash).
const DOGECOIN_VERSION: u8 = 0x1e;
/// Header of a Cardano address without a stake part, on the main network (CIP-19).
const CARDANO_HEADER: u8 = 0x61;
/// Bytes of a hash in the addresses of Bitcoin and its forks, Ethereum and XRP.
const HASH_BYTES: usize = 20;
/// Bytes of a key's hash on Cardano.
const CARDANO_HASH_BYTES: usize = 28;

/// The address of a sale. On chains with tags a tenant has one address and each sale a tag, as with
/// an exchange.
///
/// # Errors
/// When the result is not a valid address, which would be our fault.
pub(crate) fn derive(
    core: &Core,
    OrderKey { client, order }: OrderKey,
    chain: Chain,
) -> Result<(WalletAddress, Option<DestinationTag>)> {
    let mac = |name: String| core.keys.mac(Purpose::SandboxDeposits, name.as_bytes());
    let of_sale = mac(format!("{client}/{order}"))?;
    let broken = || Error::invariant("make a deposit address");
    let (address, tag) = match chain.tag_kind() {
        TagKind::None => (text(chain, &of_sale), None),
        TagKind::Number => (text(chain, &mac(client.to_string())?), Some(number(&of_sale))),
        TagKind::Memo => (text(chain, &mac(client.to_string())?), Some(order.to_string())),
    };
    let address =
        WalletAddress::parse(chain, &address.ok_or_else(broken)?).map_err(|_| broken())?;
    let tag = tag.map(|tag| DestinationTag::parse(chain.tag_kind(), &tag)).transpose();
    Ok((address, tag.map_err(|_| broken())?))
}

/// A tag of 32 bits.
fn number(mac: &Tag) -> String {
    let bytes = mac.as_ref().first_chunk().copied().unwrap_or_default();
    u32::from_be_bytes(bytes).to_string()
}

/// An address from the first bytes of `mac`.
fn text(chain: Chain, mac: &Tag) -> Option<String> {
    let key: &[u8; 32] = mac.as_ref().first_chunk()?;
    let hash = key.get(..HASH_BYTES)?;
    let with = |version: u8| [&[version][..], hash].concat();
    Some(match chain {
        Chain::Bitcoin => witness("bc", hash)?,
        Chain::Litecoin => witness("ltc", hash)?,
        Chain::Dogecoin => bs58::encode(with(DOGECOIN_VERSION)).with_check().into_string(),
        Chain::Ethereum => format!("0x{}", hex::encode(hash)),
        Chain::Xrp => {
            bs58::encode(with(0)).with_alphabet(Alphabet::RIPPLE).with_check().into_string()
        }
        Chain::Stellar => PublicKey(*key).to_string().to_string(),
        Chain::Cardano => {
            let bytes = [&[CARDANO_HEADER][..], key.get(..CARDANO_HASH_BYTES)?].concat();
            bech32::encode::<Bech32>(Hrp::parse("addr").ok()?, &bytes).ok()?
        }
        Chain::Solana => bs58::encode(key).into_string(),
    })
}

fn witness(prefix: &str, hash: &[u8]) -> Option<String> {
    bech32::segwit::encode(Hrp::parse(prefix).ok()?, Fe32::Q, hash).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ring::hmac;

    use super::*;

    proptest! {
        #[test]
        fn every_chain_has_an_address_for_every_sale(seed: [u8; 8]) {
            let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &seed), b"sale");
            for chain in Chain::ALL {
                let text = text(chain, &mac).unwrap();
                prop_assert!(WalletAddress::parse(chain, &text).is_ok(), "{} {}", chain, text);
            }
            prop_assert!(DestinationTag::parse(TagKind::Number, &number(&mac)).is_ok());
        }
    }
}
