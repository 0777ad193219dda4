//! HMAC-SHA256 by `ring` as the cryptography provider of `jsonwebtoken`. Any other algorithm that a
//! token names has no signer and no verifier.

use std::sync::Once;

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{self, Signer, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use ring::hmac;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key: &EncodingKey| {
        Ok(Box::new(HmacSha256::new(*algorithm, key.as_bytes())?))
    },
    verifier_factory: |algorithm, key: &DecodingKey| {
        Ok(Box::new(HmacSha256::new(*algorithm, key.try_get_as_bytes()?)?))
    },
    key_utils: KeyUtils::new_unimplemented(),
};

/// Installs the process-wide provider, which must happen before the library's first use. Further
/// calls have no effect.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        if PROVIDER.install_default().is_err() {
            tracing::error!("the JWT library has other cryptography already");
        }
    });
}

struct HmacSha256(hmac::Key);

impl HmacSha256 {
    fn new(algorithm: Algorithm, key: &[u8]) -> Result<Self> {
        match algorithm {
            Algorithm::HS256 => Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, key))),
            _ => Err(ErrorKind::InvalidAlgorithm.into()),
        }
    }
}

impl Signer<Vec<u8>> for HmacSha256 {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, signature::Error> {
        Ok(hmac::sign(&self.0, message).as_ref().to_vec())
    }
}

impl JwtSigner for HmacSha256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl Verifier<Vec<u8>> for HmacSha256 {
    fn verify(&self, message: &[u8], tag: &Vec<u8>) -> std::result::Result<(), signature::Error> {
        hmac::verify(&self.0, message, tag).map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for HmacSha256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}
