//! The legacy form of Bitcoin and its relatives: a compact signature whose first byte says which of
//! the possible keys made it (BIP-137). The key's address is compared, whatever kind the first byte
//! names, because wallets disagree about the kind.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ripemd::{Digest as _, Ripemd160};
use secp256k1::Message;
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};

use super::{sha256, sha256d};

/// The first byte, and `r` and `s`.
const SIGNATURE_BYTES: usize = 65;
/// First byte of the first kind; each kind has four.
const HEADER_MIN: u8 = 27;
/// First byte of the last one.
const HEADER_MAX: u8 = 42;
/// From this first byte on the key is compressed.
const COMPRESSED_MIN: u8 = 31;

/// A chain with this form.
pub(super) struct Format {
    /// Text before the message.
    magic: &'static str,
    /// Version byte of pay-to-public-key-hash.
    key_hash: u8,
    /// Version bytes of pay-to-script-hash.
    script_hash: &'static [u8],
}

pub(super) const BITCOIN: Format =
    Format { magic: "Bitcoin Signed Message:\n", key_hash: 0x00, script_hash: &[0x05] };
pub(super) const LITECOIN: Format =
    Format { magic: "Litecoin Signed Message:\n", key_hash: 0x30, script_hash: &[0x32, 0x05] };
/// Without segregated witness, so that no script is a key's.
pub(super) const DOGECOIN: Format =
    Format { magic: "Dogecoin Signed Message:\n", key_hash: 0x1e, script_hash: &[] };

/// The address is that of the key that the signature recovers to.
pub(super) fn verify(format: &Format, address: &str, message: &str, signature: &str) -> Option<()> {
    let bytes: [u8; SIGNATURE_BYTES] = STANDARD.decode(signature).ok()?.try_into().ok()?;
    let (header, rs) = bytes.split_first()?;
    if !(HEADER_MIN..=HEADER_MAX).contains(header) {
        return None;
    }
    let recovery = RecoveryId::from_u8_masked(header - HEADER_MIN);
    let signature = RecoverableSignature::from_compact(rs, recovery).ok()?;
    let key = signature.recover(Message::from_digest(hash(format, message))).ok()?;
    let is_compressed = *header >= COMPRESSED_MIN;
    let key_hash = match is_compressed {
        true => hash160(&key.serialize()),
        false => hash160(&key.serialize_uncompressed()),
    };
    is_of_key(format, address, key_hash, is_compressed).then_some(())
}

/// True if coins sent to the address are the key's.
fn is_of_key(format: &Format, address: &str, key_hash: [u8; 20], is_compressed: bool) -> bool {
    if let Ok(bytes) = bs58::decode(address).with_check(None).into_vec() {
        let Some((version, hash)) = bytes.split_first() else { return false };
        let wrapped = || hash160(&[&[0x00, 0x14][..], &key_hash].concat());
        return (*version == format.key_hash && hash == key_hash)
            || (is_compressed && format.script_hash.contains(version) && hash == wrapped());
    }
    // Segregated witness knows compressed keys alone.
    let witness = bech32::segwit::decode(address);
    witness.is_ok_and(|(_, version, program)| {
        is_compressed && version.to_u8() == 0 && program == key_hash
    })
}

/// The hash that is signed.
pub(super) fn hash(format: &Format, message: &str) -> [u8; 32] {
    sha256d(&[sized(format.magic.as_bytes()), sized(message.as_bytes())].concat())
}

/// The bytes after their number.
pub(super) fn sized(bytes: &[u8]) -> Vec<u8> {
    let mut sized = match (u8::try_from(bytes.len()), u16::try_from(bytes.len())) {
        (Ok(length), _) if length < 0xfd => vec![length],
        (_, Ok(length)) => [&[0xfd][..], &length.to_le_bytes()].concat(),
        // No message is so long; another number makes another hash.
        _ => vec![0xfe],
    };
    sized.extend_from_slice(bytes);
    sized
}

/// RIPEMD-160 of SHA-256: the hash of keys and scripts in addresses.
pub(super) fn hash160(bytes: &[u8]) -> [u8; 20] {
    Ripemd160::digest(sha256(bytes)).into()
}
