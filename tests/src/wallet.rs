//! A user's own Ethereum wallet, which signs messages as wallets do.

use std::fmt::Write as _;

use secp256k1::ecdsa::RecoverableSignature;
use secp256k1::{Message, PublicKey, SecretKey};
use sha3::{Digest as _, Keccak256};

/// A wallet with a key.
pub struct Wallet(SecretKey);

impl Wallet {
    /// The wallet of a key that is this byte throughout, from 1.
    pub fn new(seed: u8) -> Self {
        Self(SecretKey::from_secret_bytes([seed; 32]).unwrap())
    }

    /// Its address.
    pub fn address(&self) -> String {
        let public = PublicKey::from_secret_key(&self.0).serialize_uncompressed();
        hex(&Keccak256::digest(&public[1..])[12..])
    }

    /// Its signature of a message (EIP-191).
    pub fn sign(&self, message: &str) -> String {
        let text = format!("\x19Ethereum Signed Message:\n{}{message}", message.len());
        let hash: [u8; 32] = Keccak256::digest(text.as_bytes()).into();
        let message = Message::from_digest(hash);
        let signature = RecoverableSignature::sign_ecdsa_recoverable(message, &self.0);
        let (recovery, bytes) = signature.serialize_compact();
        hex(&[&bytes[..], &[27 + recovery.to_u8()]].concat())
    }
}

/// The bytes in hexadecimal, after `0x`.
fn hex(bytes: &[u8]) -> String {
    let mut text = "0x".to_owned();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
