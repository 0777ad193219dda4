//! The `crypto` interface of `wit/signature.wit`: signatures are checked with keys that stay in the host.

use ring::{digest, hmac, signature};

use crate::bindings::crypto::{Algorithm, CryptoError, DigestAlgorithm};
use crate::host::keys::{KeyRing, Material, Scheme, VerificationKey};

/// Longest ASN.1 form of a P-256 signature, in bytes (its usual form is 64).
const P256_ASN1_BYTES_MAX: usize = 72;
const P256_FIXED_BYTES: usize = 64;

/// True if `signature` is that of `message` under the key of that name.
pub(crate) fn verify(
    keys: &KeyRing,
    now: u32,
    name: &str,
    algorithm: Algorithm,
    message: &[u8],
    signature: &[u8],
) -> Result<bool, CryptoError> {
    let bound = keys.get(name).ok_or(CryptoError::UnknownKey)?;
    if bound.key.algorithm() != algorithm {
        return Err(CryptoError::WrongAlgorithm);
    }
    if !bound.is_current(now) {
        return Err(CryptoError::KeyNotCurrent);
    }
    bound.key.verifies(message, signature).ok_or(CryptoError::MalformedSignature)
}

pub(crate) fn digest(algorithm: DigestAlgorithm, data: &[u8]) -> Vec<u8> {
    let algorithm = match algorithm {
        DigestAlgorithm::Sha256 => &digest::SHA256,
        DigestAlgorithm::Sha512 => &digest::SHA512,
    };
    digest::digest(algorithm, data).as_ref().to_vec()
}

impl VerificationKey {
    /// True if the signature is genuine; `None` when it cannot be of this algorithm. MACs are
    /// compared in constant time.
    pub fn verifies(&self, message: &[u8], signed: &[u8]) -> Option<bool> {
        match &self.material {
            Material::Secret(key) => {
                let length = key.algorithm().digest_algorithm().output_len();
                (signed.len() == length).then(|| hmac::verify(key, message, signed).is_ok())
            }
            Material::Public { key, scheme } => {
                let genuine = |algorithm: &'static dyn signature::VerificationAlgorithm| {
                    signature::UnparsedPublicKey::new(algorithm, key)
                        .verify(message, signed)
                        .is_ok()
                };
                match *scheme {
                    Scheme::Ed25519 => (signed.len() == 64).then(|| genuine(&signature::ED25519)),
                    Scheme::Rsa { parameters, signature_bytes } => {
                        (signed.len() == signature_bytes).then(|| genuine(parameters))
                    }
                    Scheme::EcdsaP256 => {
                        let fixed = signed.len() == P256_FIXED_BYTES;
                        let asn1 = matches!(signed, [0x30, length, numbers @ ..]
                            if usize::from(*length) == numbers.len()
                                && signed.len() <= P256_ASN1_BYTES_MAX);
                        // A short ASN.1 signature may happen to have the length of the other form.
                        (fixed || asn1).then(|| {
                            fixed && genuine(&signature::ECDSA_P256_SHA256_FIXED)
                                || asn1 && genuine(&signature::ECDSA_P256_SHA256_ASN1)
                        })
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
