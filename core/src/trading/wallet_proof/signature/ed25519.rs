//! Ed25519 over the message, by a Solana account, whose address is its public key.

use ring::signature::{ED25519, UnparsedPublicKey};

/// A signature comes in Base58.
pub(super) fn verify(address: &str, message: &str, signature: &str) -> Option<()> {
    let key = bs58::decode(address).into_vec().ok()?;
    let signature = bs58::decode(signature).into_vec().ok()?;
    UnparsedPublicKey::new(&ED25519, key).verify(message.as_bytes(), &signature).ok()
}
