//! Key pairs of partners.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{Ed25519KeyPair, KeyPair};

/// The key of this seed: what signs, and the PEM of what verifies.
pub fn ed25519(seed: u8) -> (Ed25519KeyPair, String) {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
    // SubjectPublicKeyInfo of RFC 8410, section 4, up to the key itself.
    let head = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
    let info = STANDARD.encode([&head[..], pair.public_key().as_ref()].concat());
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{info}\n-----END PUBLIC KEY-----\n");
    (pair, pem)
}

/// The PEM of what signs with the key of this seed.
pub fn ed25519_private(seed: u8) -> String {
    // PrivateKeyInfo of RFC 8410, section 7, up to the seed itself.
    let head = [
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20,
    ];
    let info = STANDARD.encode([&head[..], &[seed; 32]].concat());
    format!("-----BEGIN PRIVATE KEY-----\n{info}\n-----END PRIVATE KEY-----\n")
}
