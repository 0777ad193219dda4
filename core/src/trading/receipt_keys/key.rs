//! One key: Ed25519 (RFC 8032), and what it signs as a JWS (RFC 7515) in compact form.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use josekit::jwk::Jwk;
use josekit::jws::{self, EdDSA, JwsHeader};
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use super::{JsonWebKey, PublishedKey};
use crate::Core;
use crate::platform::crypto::sha256;
use crate::platform::error::{Error, Result};

/// Bytes of a private key.
const SEED_BYTES: usize = 32;
const KEY_TYPE: &str = "OKP";
const CURVE: &str = "Ed25519";
/// `typ` of a receipt: its payload is claims of JSON.
const TYPE: &str = "receipt+jwt";

/// A key that signs receipts.
pub struct ReceiptKey {
    id: String,
    seed: [u8; SEED_BYTES],
    public: Vec<u8>,
}

impl ReceiptKey {
    /// A new key.
    ///
    /// # Errors
    /// Without entropy.
    pub(super) fn generate(core: &Core) -> Result<Self> {
        Self::new(core.clock.random_bytes()?)
    }

    /// Opens a stored key.
    ///
    /// # Errors
    /// When it was sealed by another master key, or is another one.
    pub(super) fn open(core: &Core, id: &str, sealed: &[u8]) -> Result<Self> {
        let seed = core.keys.open(&seal_context(id), sealed)?;
        let seed = seed.try_into().map_err(|_| Error::invariant("open a key of another length"))?;
        let key = Self::new(seed)?;
        if key.id != id {
            return Err(Error::invariant("open a key for receipts: it has another id"));
        }
        Ok(key)
    }

    fn new(seed: [u8; SEED_BYTES]) -> Result<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed)
            .map_err(|_| Error::invariant("read a key for receipts"))?;
        let public = pair.public_key().as_ref().to_vec();
        Ok(Self { id: thumbprint(&public), seed, public })
    }

    /// The thumbprint of its public key.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The public key.
    pub(super) fn public(&self) -> &[u8] {
        &self.public
    }

    /// The private key as stored.
    ///
    /// # Errors
    /// Without entropy.
    pub(super) fn sealed(&self, core: &Core) -> Result<Vec<u8>> {
        core.keys.seal(&core.clock, &seal_context(&self.id), &self.seed)
    }

    /// The payload, signed, as a JWS in compact form. The same payload has the same signature.
    ///
    /// # Errors
    /// An internal one, if the key is none.
    pub(crate) fn sign(&self, payload: &[u8]) -> Result<String> {
        let sign = || {
            let mut key = Jwk::new(KEY_TYPE);
            key.set_curve(CURVE);
            key.set_key_id(&self.id);
            key.set_parameter("d", Some(URL_SAFE_NO_PAD.encode(self.seed).into()))?;
            let mut header = JwsHeader::new();
            header.set_token_type(TYPE);
            jws::serialize_compact(payload, &header, &EdDSA.signer_from_jwk(&key)?)
        };
        // What the library says of a private key stays here.
        sign().map_err(|_| Error::invariant("sign a receipt"))
    }
}

impl std::fmt::Debug for ReceiptKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReceiptKey({})", self.id)
    }
}

impl From<PublishedKey> for JsonWebKey {
    fn from(key: PublishedKey) -> Self {
        Self {
            kty: KEY_TYPE,
            crv: CURVE,
            x: URL_SAFE_NO_PAD.encode(&key.public_key),
            kid: key.key_id,
            alg: "EdDSA",
            usage: "sig",
        }
    }
}

/// The context that a private key is sealed for.
pub fn seal_context(key_id: &str) -> String {
    format!("receipt_key/{key_id}")
}

/// SHA-256 of the public key's required members, in their order (RFC 7638).
fn thumbprint(public: &[u8]) -> String {
    let x = URL_SAFE_NO_PAD.encode(public);
    let members = format!(r#"{{"crv":"{CURVE}","kty":"{KEY_TYPE}","x":"{x}"}}"#);
    URL_SAFE_NO_PAD.encode(sha256(&members))
}

#[cfg(test)]
mod tests {
    use ring::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    /// The private key of RFC 8037, appendix A.
    const SEED: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";

    fn key() -> ReceiptKey {
        let seed = URL_SAFE_NO_PAD.decode(SEED).unwrap();
        ReceiptKey::new(seed.try_into().unwrap()).unwrap()
    }

    #[test]
    fn public_key_and_thumbprint_are_those_of_the_rfc() {
        let key = key();
        let public = URL_SAFE_NO_PAD.encode(key.public());
        assert_eq!(public, "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
        assert_eq!(key.id(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
        assert!(!format!("{key:?}").contains(SEED));
    }

    #[test]
    fn a_signature_fits_its_payload_and_no_other() {
        let key = key();
        let token = key.sign(br#"{"orderId":1}"#).unwrap();
        assert_eq!(token, key.sign(br#"{"orderId":1}"#).unwrap());
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let (header, payload) = signed.split_once('.').unwrap();
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
        let header: serde_json::Value = serde_json::from_slice(&decode(header)).unwrap();
        let expected = serde_json::json!({"alg": "EdDSA", "typ": TYPE, "kid": key.id()});
        assert_eq!(header, expected);
        assert_eq!(decode(payload), br#"{"orderId":1}"#);
        let public = UnparsedPublicKey::new(&ED25519, key.public());
        public.verify(signed.as_bytes(), &decode(signature)).unwrap();
        let altered = signed.replacen('.', ".A", 1);
        assert!(public.verify(altered.as_bytes(), &decode(signature)).is_err());
    }
}
