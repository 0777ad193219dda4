use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::host::keys::BoundKey;
use crate::host::keys::tests::{P256_PEM, RSA_PEM, ed25519_pem};

/// Made with OpenSSL for `RSA_PEM`: the message `rampart`, PKCS #1 v1.5.
const RSA_PKCS1: &str = "\
    WcydLgWX7qzFGdK8GRneHPd4A8PqfWrgwP3ZdS4zap+ItD27YcQ7GCxVhU1zbVOm9Sp2GHJad/+Ekd+fm+1BMInZ\
    h4AWV1LYg+19kkA7jjFFPVqhrOAmXdZT6TpOUn7ewfFC0lfymzi5cUFTa2fN2UoU6ju/7myPjyg3lrLSCt4fw6pp\
    Ej1JXBn1jJOcvJlLKUkz/vizP1xbCl/n+PCTqUeNGmaXk8d53f8VOxDFpudZInPC15UyaaO0qArde1/7qWmFf7EG\
    Q2xRiHc8a+oM31gsGd+KmEkkBvrIKOEK1C3/5OiDlkuUkSHh3BH7pQfoyzVllvmJC4Bu9d8uP7G9og==";

/// The same, PSS with a salt of 32 bytes.
const RSA_PSS: &str = "\
    UzNdNttJlideD6SWiYE726YNQRT4TZ7/xMzorHNszP68+oFcdG/NysIVHytcHPnuPkoqs+d8vEGVhy8SUC9S/G07\
    /QJSqtzcmjZOBsPzISsmqmrIWbmEbw8pmkM4If/n6mbWhjXTWMzKUsTHYqbLb21Z6wdTe5okNAzPkbgB/TkPfV5A\
    7AmTIWHdTMGJYxqQ5p6V46r5voL6KH/czwUGLd3qPAmhhIYKy3kpQGmUO8mJVpR+qEcL3QP3VHFqq3h/Ighzawmf\
    G26lTqgbqFzg5iZ+S3Vb/Ksv91OYcsX2OnncAbHAFm/6jVwDnVDzAVqb6u5dpSPAMZ5x4DRhe9b6GA==";

/// RFC 6979, A.2.5: `sample` with SHA-256, `r` and `s`.
const P256_R: &str = "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716";
const P256_S: &str = "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8";

fn hex(text: &str) -> Vec<u8> {
    hex::decode(text).expect("it is hex")
}

fn ring(algorithm: Algorithm, text: &str) -> KeyRing {
    let key = VerificationKey::parse(algorithm, text).expect("it is a key");
    let bound = BoundKey { key, not_before: Some(10), not_after: Some(20) };
    KeyRing::new([("k".to_owned(), bound)])
}

/// The signature verifies; changed in any part, it does not.
fn check(algorithm: Algorithm, key: &str, message: &[u8], signature: &[u8]) {
    let ring = ring(algorithm, key);
    let verify =
        |message: &[u8], signature: &[u8]| verify(&ring, 15, "k", algorithm, message, signature);
    assert_eq!(verify(message, signature), Ok(true), "{algorithm:?}");
    assert_eq!(verify(b"another message", signature), Ok(false), "{algorithm:?}");
    for at in [signature.len() / 2, signature.len() - 1] {
        let mut forged = signature.to_vec();
        forged[at] ^= 1;
        assert_eq!(verify(message, &forged), Ok(false), "{algorithm:?}, byte {at}");
    }
    for wrong in [&signature[..signature.len() / 4], &[], &[0; 2000]] {
        assert_eq!(verify(message, wrong), Err(CryptoError::MalformedSignature), "{algorithm:?}");
    }
}

#[test]
fn macs_match_rfc_4231() {
    let key = STANDARD.encode([0x0b; 20]);
    let sha256 = hex("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    check(Algorithm::HmacSha256, &key, b"Hi There", &sha256);
    let sha512 = hex(concat!(
        "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde",
        "daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854",
    ));
    check(Algorithm::HmacSha512, &key, b"Hi There", &sha512);
}

#[test]
fn ed25519_matches_rfc_8032() {
    let signature = hex(concat!(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da",
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ));
    check(Algorithm::Ed25519, &ed25519_pem(), &[0x72], &signature);
}

#[test]
fn ecdsa_matches_rfc_6979_in_both_forms() {
    let (r, s) = (hex(P256_R), hex(P256_S));
    check(Algorithm::EcdsaP256Sha256, P256_PEM, b"sample", &[r.clone(), s.clone()].concat());
    // Both numbers have their high bit set, so each takes a zero before it.
    let asn1 = [&[0x30, 0x46, 0x02, 0x21, 0x00][..], &r, &[0x02, 0x21, 0x00], &s].concat();
    check(Algorithm::EcdsaP256Sha256, P256_PEM, b"sample", &asn1);
}

#[test]
fn rsa_verifies_both_paddings_and_never_mixes_them() {
    let pkcs1 = STANDARD.decode(RSA_PKCS1).expect("it is base64");
    let pss = STANDARD.decode(RSA_PSS).expect("it is base64");
    check(Algorithm::RsaPkcs1Sha256, RSA_PEM, b"rampart", &pkcs1);
    check(Algorithm::RsaPssSha256, RSA_PEM, b"rampart", &pss);
    let ring = ring(Algorithm::RsaPssSha256, RSA_PEM);
    let mixed = verify(&ring, 15, "k", Algorithm::RsaPssSha256, b"rampart", &pkcs1);
    assert_eq!(mixed, Ok(false));
}

#[test]
fn a_key_answers_only_to_its_name_algorithm_and_time() {
    let ring = ring(Algorithm::HmacSha256, &STANDARD.encode([1; 32]));
    let verify = |now, name, algorithm| verify(&ring, now, name, algorithm, b"", &[0; 32]);
    assert_eq!(verify(15, "other", Algorithm::HmacSha256), Err(CryptoError::UnknownKey));
    assert_eq!(verify(15, "k", Algorithm::Ed25519), Err(CryptoError::WrongAlgorithm));
    assert_eq!(verify(9, "k", Algorithm::HmacSha256), Err(CryptoError::KeyNotCurrent));
    assert_eq!(verify(21, "k", Algorithm::HmacSha256), Err(CryptoError::KeyNotCurrent));
    assert_eq!(verify(10, "k", Algorithm::HmacSha256), Ok(false));
    assert_eq!(verify(20, "k", Algorithm::HmacSha256), Ok(false));
}

#[test]
fn digests_match_fips_180() {
    let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(digest(DigestAlgorithm::Sha256, b"abc"), hex(sha256));
    assert_eq!(digest(DigestAlgorithm::Sha512, b"abc")[..4], [0xdd, 0xaf, 0x35, 0xa1]);
}
