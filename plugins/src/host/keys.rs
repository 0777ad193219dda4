//! Verification keys: a policy can name and use them, and never read them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::{hmac, signature};
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::PemObject;

use crate::bindings::crypto::Algorithm;

/// Shortest and longest MAC secret, in bytes. RFC 2104, section 3 discourages short ones.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 16..=1024;
/// Longest text of a key: a PEM of RSA 8192 is about 1,500 characters.
const KEY_TEXT_BYTES_MAX: usize = 4096;
/// RSA moduli accepted, in bytes (2048 to 8192 bits).
const RSA_MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

/// `AlgorithmIdentifier` of each kind of public key, in DER: RFC 8410, RFC 3279, RFC 5480.
const ED25519_ID: &[u8] = &[0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70];
const RSA_ID: &[u8] =
    &[0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
const P256_ID: &[u8] = &[
    0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
    0xce, 0x3d, 0x03, 0x01, 0x07,
];

/// The keys bound to one partner's policy, by name. Cheap to clone.
///
/// Keys of other partners are not in it, so their names look like ones that never existed.
#[derive(Clone, Debug, Default)]
pub struct KeyRing(Arc<HashMap<String, BoundKey>>);

/// A key and its validity.
#[derive(Debug)]
pub struct BoundKey {
    /// The key.
    pub key: VerificationKey,
    /// Not before this time, in seconds since 1970, if set.
    pub not_before: Option<u32>,
    /// Not after this time, in seconds since 1970, if set.
    pub not_after: Option<u32>,
}

/// A key for one algorithm. It cannot be printed, compared or read back.
pub struct VerificationKey {
    algorithm: Algorithm,
    pub(crate) material: Material,
}

pub(crate) enum Material {
    Secret(hmac::Key),
    /// In the form `ring` takes, with the length of its signatures in bytes.
    Public {
        key: Vec<u8>,
        scheme: Scheme,
    },
}

#[derive(Clone, Copy)]
pub(crate) enum Scheme {
    Ed25519,
    EcdsaP256,
    Rsa { parameters: &'static signature::RsaParameters, signature_bytes: usize },
}

/// The reason a text is not a key; does not quote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyError(&'static str);

impl KeyRing {
    /// A ring of these keys; of two with one name the last stays.
    pub fn new(keys: impl IntoIterator<Item = (String, BoundKey)>) -> Self {
        Self(Arc::new(keys.into_iter().collect()))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&BoundKey> {
        self.0.get(name)
    }
}

impl BoundKey {
    pub(crate) fn is_current(&self, now: u32) -> bool {
        self.not_before.is_none_or(|t| t <= now) && self.not_after.is_none_or(|t| now <= t)
    }
}

impl VerificationKey {
    /// Reads a key for `algorithm`: base64 of 16 to 1024 bytes for a MAC, otherwise a PEM
    /// `PUBLIC KEY` (RFC 7468, section 13) of the right kind; RSA from 2048 to 8192 bits.
    ///
    /// # Errors
    /// The problem, without quoting the text.
    pub fn parse(algorithm: Algorithm, text: &str) -> Result<Self, KeyError> {
        if text.len() > KEY_TEXT_BYTES_MAX {
            return Err(KeyError("a key is at most 4096 characters"));
        }
        let material = match algorithm {
            Algorithm::HmacSha256 => secret(hmac::HMAC_SHA256, text)?,
            Algorithm::HmacSha512 => secret(hmac::HMAC_SHA512, text)?,
            Algorithm::Ed25519 => fixed(text, ED25519_ID, Scheme::Ed25519, |key| key.len() == 32)?,
            Algorithm::EcdsaP256Sha256 => fixed(text, P256_ID, Scheme::EcdsaP256, |key| {
                key.len() == 65 && key.starts_with(&[0x04])
            })?,
            Algorithm::RsaPkcs1Sha256 => rsa(text, &signature::RSA_PKCS1_2048_8192_SHA256)?,
            Algorithm::RsaPssSha256 => rsa(text, &signature::RSA_PSS_2048_8192_SHA256)?,
        };
        Ok(Self { algorithm, material })
    }

    /// The one algorithm this key is for.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl fmt::Debug for VerificationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerificationKey")
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for KeyError {}

fn secret(algorithm: hmac::Algorithm, text: &str) -> Result<Material, KeyError> {
    let bytes = STANDARD.decode(text.trim()).map_err(|_| KeyError("a MAC secret is base64"))?;
    match SECRET_BYTES.contains(&bytes.len()) {
        true => Ok(Material::Secret(hmac::Key::new(algorithm, &bytes))),
        false => Err(KeyError("a MAC secret is 16 to 1024 bytes")),
    }
}

fn fixed(
    text: &str,
    algorithm_id: &[u8],
    scheme: Scheme,
    fits: impl FnOnce(&[u8]) -> bool,
) -> Result<Material, KeyError> {
    let key = public_key(text, algorithm_id)?;
    match fits(&key) {
        true => Ok(Material::Public { key, scheme }),
        false => Err(KeyError("the public key is not in its uncompressed form")),
    }
}

fn rsa(text: &str, parameters: &'static signature::RsaParameters) -> Result<Material, KeyError> {
    let key = public_key(text, RSA_ID)?;
    let modulus = der(&key, 0x30).and_then(|(numbers, _)| der(numbers, 0x02));
    let (modulus, _) = modulus.ok_or(KeyError("the RSA key is malformed"))?;
    let signature_bytes = modulus.strip_prefix(&[0]).unwrap_or(modulus).len();
    match RSA_MODULUS_BYTES.contains(&signature_bytes) {
        true => Ok(Material::Public { key, scheme: Scheme::Rsa { parameters, signature_bytes } }),
        false => Err(KeyError("an RSA key is 2048 to 8192 bits")),
    }
}

/// The key inside a `SubjectPublicKeyInfo` (RFC 5280, section 4.1) of the given kind.
fn public_key(text: &str, algorithm_id: &[u8]) -> Result<Vec<u8>, KeyError> {
    let info = SubjectPublicKeyInfoDer::from_pem_slice(text.as_bytes())
        .map_err(|_| KeyError("a public key is a PEM block `PUBLIC KEY`"))?;
    let key = der(&info, 0x30)
        .filter(|(_, rest)| rest.is_empty())
        .and_then(|(fields, _)| fields.strip_prefix(algorithm_id))
        .and_then(|bits| der(bits, 0x03))
        .and_then(|(bits, rest)| rest.is_empty().then_some(bits)?.strip_prefix(&[0]));
    key.map(<[u8]>::to_vec).ok_or(KeyError("the public key is not of this algorithm"))
}

/// The content of one DER value with this tag, and what follows it. Lengths up to 65,535.
fn der(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (length, rest) = match bytes.strip_prefix(&[tag])? {
        [short @ 0..=0x7f, rest @ ..] => (usize::from(*short), rest),
        [0x81, long @ 0x80..=0xff, rest @ ..] => (usize::from(*long), rest),
        [0x82, high @ 1..=0xff, low, rest @ ..] => {
            (usize::from(u16::from_be_bytes([*high, *low])), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
pub(crate) mod tests;
