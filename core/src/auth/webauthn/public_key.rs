//! Public keys of passkeys: ECDSA over P-256 (ES256), Ed25519 (EdDSA) and RSA (RS256), each as a
//! SubjectPublicKeyInfo (RFC 5280, section 4.1.2.7).

use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
    VerificationAlgorithm,
};
use x509_parser::oid_registry::{
    OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_PKCS1_RSAENCRYPTION, OID_SIG_ED25519,
};
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::{AlgorithmIdentifier, SubjectPublicKeyInfo};

/// Bytes of an uncompressed point of P-256 (SEC 1, section 2.3.3).
const P256_BYTES: usize = 65;
/// Bytes of a key of Ed25519.
const ED25519_BYTES: usize = 32;
/// Fewest bytes of a key of RSA: the modulus of 2,048 bits.
const RSA_BYTES_MIN: usize = 256;

/// A public key of an algorithm that is taken.
pub(super) struct PublicKey<'a> {
    algorithm: &'static dyn VerificationAlgorithm,
    bytes: &'a [u8],
}

impl<'a> PublicKey<'a> {
    /// The key of this DER; `None` for another algorithm, curve or length.
    pub(super) fn from_der(der: &'a [u8]) -> Option<Self> {
        let (rest, info) = SubjectPublicKeyInfo::from_der(der).ok()?;
        // It borrows from the DER, not from what was parsed of it.
        let data: std::borrow::Cow<'a, [u8]> = info.subject_public_key.data;
        let std::borrow::Cow::Borrowed(bytes) = data else { return None };
        let algorithm: &'static dyn VerificationAlgorithm = match &info.algorithm {
            id if is_p256(id) && bytes.len() == P256_BYTES => &ECDSA_P256_SHA256_ASN1,
            id if id.algorithm == OID_SIG_ED25519 && bytes.len() == ED25519_BYTES => &ED25519,
            id if id.algorithm == OID_PKCS1_RSAENCRYPTION && bytes.len() >= RSA_BYTES_MIN => {
                &RSA_PKCS1_2048_8192_SHA256
            }
            _ => return None,
        };
        rest.is_empty().then_some(Self { algorithm, bytes })
    }

    /// Verifies a signature of the message; `None` if it is another's.
    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> Option<()> {
        UnparsedPublicKey::new(self.algorithm, self.bytes).verify(message, signature).ok()
    }
}

fn is_p256(id: &AlgorithmIdentifier<'_>) -> bool {
    let curve = id.parameters.as_ref().and_then(|parameters| parameters.as_oid().ok());
    id.algorithm == OID_KEY_TYPE_EC_PUBLIC_KEY && curve.is_some_and(|curve| curve == OID_EC_P256)
}
