//! Verification of a token's signature. Only asymmetric algorithms count: with others, who can read
//! the provider's keys could sign.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use josekit::JoseError;
use josekit::jwk::Jwk;
use josekit::jws::{
    self, ES256, ES384, EdDSA, JwsVerifier, PS256, PS384, PS512, RS256, RS384, RS512,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::provider::{Metadata, ProviderKey};
use super::refusal::Refusal;
use crate::http::fields;

/// The members of a token's header that choose its key.
#[derive(Debug, Deserialize)]
pub(super) struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that a verifier must know; there are none here.
    crit: Option<Value>,
}

/// Reads the header of a token, which nobody has verified yet.
///
/// # Errors
/// When it is no JSON, or wants what is not supported.
pub(super) fn header(token: &str) -> Result<Header, Refusal> {
    let encoded = token.split('.').next().unwrap_or_default();
    let bytes = URL_SAFE_NO_PAD.decode(encoded).ok();
    // Strictly: the library that verifies the token parses all of the header first.
    let document = bytes.and_then(|bytes| fields::parse(&bytes).ok());
    let header = document.and_then(|document| serde_json::from_value::<Header>(document).ok());
    let header = header.ok_or(Refusal::Invalid("the token has no header"))?;
    if header.crit.is_some() {
        return Err(Refusal::Invalid("the token's header wants an extension"));
    }
    Ok(header)
}

impl Metadata {
    /// True if a key may have signed a token with this header.
    pub(super) fn has_key(&self, header: &Header) -> bool {
        self.keys_for(header).next().is_some()
    }

    /// The claims of a token that one of the keys has signed.
    ///
    /// # Errors
    /// When none has, or they are no object.
    pub(super) fn verify(
        &self,
        token: &str,
        header: &Header,
    ) -> Result<Map<String, Value>, Refusal> {
        let signed = self.keys_for(header).find_map(|key| {
            let verifier = verifier(&header.alg, &key.jwk)?.ok()?;
            Some(jws::deserialize_compact(token, &*verifier).ok()?.0)
        });
        let payload = signed.ok_or(Refusal::Invalid("no key of the provider signed the token"))?;
        match fields::parse(&payload) {
            Ok(Value::Object(claims)) => Ok(claims),
            _ => Err(Refusal::Invalid("the token's claims are no object")),
        }
    }

    /// The keys of the header's id, all of them without one, that its algorithm can use.
    fn keys_for(&self, header: &Header) -> impl Iterator<Item = &ProviderKey> {
        self.keys.iter().filter(|key| {
            let is_named = header.kid.is_none() || header.kid == key.id;
            is_named && verifier(&header.alg, &key.jwk).is_some_and(|verifier| verifier.is_ok())
        })
    }
}

/// The verifier of an algorithm with a key; `None` for an algorithm that does not count.
fn verifier(algorithm: &str, key: &Jwk) -> Option<Result<Box<dyn JwsVerifier>, JoseError>> {
    fn boxed<V: JwsVerifier + 'static>(
        verifier: Result<V, JoseError>,
    ) -> Result<Box<dyn JwsVerifier>, JoseError> {
        verifier.map(|verifier| Box::new(verifier) as Box<dyn JwsVerifier>)
    }
    Some(match algorithm {
        "RS256" => boxed(RS256.verifier_from_jwk(key)),
        "RS384" => boxed(RS384.verifier_from_jwk(key)),
        "RS512" => boxed(RS512.verifier_from_jwk(key)),
        "PS256" => boxed(PS256.verifier_from_jwk(key)),
        "PS384" => boxed(PS384.verifier_from_jwk(key)),
        "PS512" => boxed(PS512.verifier_from_jwk(key)),
        "ES256" => boxed(ES256.verifier_from_jwk(key)),
        "ES384" => boxed(ES384.verifier_from_jwk(key)),
        "EdDSA" => boxed(EdDSA.verifier_from_jwk(key)),
        _ => return None,
    })
}
