//! EIP-191, version 0x45 (`personal_sign`), by an account that has a key.

use secp256k1::Message;
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use sha3::{Digest as _, Keccak256};

/// Bytes of `r`, `s` and `v`.
const SIGNATURE_BYTES: usize = 65;

/// The address is the last 20 bytes of the hash of the key that the signature recovers to.
pub(super) fn verify(address: &str, message: &str, signature: &str) -> Option<()> {
    let bytes = hex::decode(signature.strip_prefix("0x").unwrap_or(signature)).ok()?;
    let bytes: [u8; SIGNATURE_BYTES] = bytes.try_into().ok()?;
    let (v, rs) = bytes.split_last()?;
    // Ledger devices leave out the 27 that others add.
    let recovery = RecoveryId::try_from(i32::from(v.checked_sub(27).unwrap_or(*v))).ok()?;
    let signature = RecoverableSignature::from_compact(rs, recovery).ok()?;
    let key = signature.recover(Message::from_digest(hash(message))).ok()?;
    let account = Keccak256::digest(key.serialize_uncompressed().get(1..)?);
    let expected = hex::decode(address.strip_prefix("0x")?).ok()?;
    (account.get(12..)? == expected).then_some(())
}

/// The hash that is signed.
pub(super) fn hash(message: &str) -> [u8; 32] {
    let mut hash = Keccak256::new();
    hash.update(b"\x19Ethereum Signed Message:\n");
    hash.update(message.len().to_string());
    hash.update(message);
    hash.finalize().into()
}
