//! Cardano payment addresses (CIP-19): Shelley `addr1…` in Bech32, and Byron in Base58 over CBOR.
//!
//! The decoding crate reads addresses of every network and checks neither the prefix against the
//! network nor a Byron address's checksum, so both are checked here. Stake addresses hold no coins
//! and are refused.

use bech32::Bech32;
use bech32::primitives::decode::CheckedHrpstring;
use pallas_addresses::byron::{AddrAttrProperty, AddrType, ByronAddress};
use pallas_addresses::{Address, Network};

use super::{InvalidAddress, Spelling};

const MAINNET_PREFIX: &str = "addr";

pub(super) fn check(text: &str) -> Result<Spelling, InvalidAddress> {
    if is_shelley(text) {
        Ok(Spelling::AnyCase)
    } else if is_byron(text) {
        Ok(Spelling::Exact)
    } else {
        Err(InvalidAddress)
    }
}

fn is_shelley(text: &str) -> bool {
    let Ok(decoded) = CheckedHrpstring::new::<Bech32>(text) else { return false };
    let bytes: Vec<u8> = decoded.byte_iter().collect();
    if decoded.hrp().to_lowercase() != MAINNET_PREFIX {
        return false;
    }
    match Address::from_bytes(&bytes) {
        // Compared with its own encoding, because the decoder ignores trailing bytes.
        Ok(Address::Shelley(address)) => {
            address.network() == Network::Mainnet && address.to_vec() == bytes
        }
        _ => false,
    }
}

fn is_byron(text: &str) -> bool {
    let Ok(bytes) = bs58::decode(text).into_vec() else { return false };
    let Ok(address) = ByronAddress::from_bytes(&bytes) else { return false };
    if address.to_vec() != bytes || crc32(&address.payload.0) != address.crc {
        return false;
    }
    address.decode().is_ok_and(|payload| {
        // Only addresses of test networks name their network.
        let is_tagged =
            |attribute: &AddrAttrProperty| matches!(attribute, AddrAttrProperty::NetworkTag(_));
        !payload.attributes.iter().any(is_tagged) && !matches!(payload.addrtype, AddrType::Other(_))
    })
}

/// CRC-32 as in ISO 3309 and ZIP, over the few dozen bytes of an address.
fn crc32(bytes: &[u8]) -> u32 {
    let register = bytes.iter().fold(u32::MAX, |register, byte| {
        (0..u8::BITS).fold(register ^ u32::from(*byte), |bits, _| {
            if bits & 1 == 1 { (bits >> 1) ^ 0xedb8_8320 } else { bits >> 1 }
        })
    });
    !register
}

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn the_crc_gives_the_standard_check_value() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
