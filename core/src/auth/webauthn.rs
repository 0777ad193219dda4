//! Passkeys (Web Authentication, level 3): verification of what a browser's authenticator has made.
//!
//! Attestation is "none", so the key is taken as the browser decodes it (section 5.2.1.1): no CBOR is
//! read, and what is left to check is a signature, which ring does, and some fixed bytes. A library
//! for all of it would bring OpenSSL or a second set of curves.

mod public_key;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use url::{Host, Url};

use self::public_key::PublicKey;
use crate::platform::crypto::{constant_time_eq, sha256};

/// Algorithms of keys that are asked for and taken (COSE): ES256, EdDSA, RS256.
pub(crate) const ALGORITHMS: [i32; 3] = [-7, -8, -257];
/// Longest identifier of a credential, in bytes (section 4).
pub(crate) const CREDENTIAL_ID_BYTES_MAX: usize = 1_023;
/// Longest public key, in bytes of DER: RSA with 4,096 bits has 550.
const PUBLIC_KEY_BYTES_MAX: usize = 1_024;
/// Longest client data, in bytes of JSON.
const CLIENT_DATA_BYTES_MAX: usize = 4_096;
/// Longest data of the authenticator, in bytes.
const AUTHENTICATOR_DATA_BYTES_MAX: usize = 4_096;
/// Longest signature, in bytes: RSA with 8,192 bits.
const SIGNATURE_BYTES_MAX: usize = 1_024;
/// Bytes of a hash of the relying party's id, flags and counter (section 6.1).
const HEAD_BYTES: usize = 37;
/// Bytes of the model's id and the length before a new credential's id (section 6.5.1).
const CREDENTIAL_HEAD_BYTES: usize = 18;
/// Flag: somebody was there.
const USER_PRESENT: u8 = 0x01;
/// Flag: the authenticator knows that person, by a fingerprint or PIN.
const USER_VERIFIED: u8 = 0x04;
/// Flag: a new credential follows.
const HAS_CREDENTIAL: u8 = 0x40;

/// This service, as browsers know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelyingParty {
    /// Host of the pages, which keys are bound to.
    pub(crate) id: String,
    origin: String,
}

/// Use of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ceremony {
    Create,
    Get,
}

/// The browser's account of the ceremony (section 5.8.1).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientData {
    r#type: String,
    challenge: String,
    origin: String,
    #[serde(default)]
    cross_origin: bool,
}

/// A new credential as a form brings it. Nothing of it is verified yet.
pub(crate) struct Registration<'a> {
    /// JSON, base64url.
    pub(crate) client_data: &'a str,
    /// Base64url.
    pub(crate) authenticator_data: &'a str,
    /// DER of a SubjectPublicKeyInfo, base64url.
    pub(crate) public_key: &'a str,
}

/// The use of a credential as a form brings it. Nothing of it is verified yet.
pub(crate) struct Assertion<'a> {
    /// JSON, base64url.
    pub(crate) client_data: &'a str,
    /// Base64url.
    pub(crate) authenticator_data: &'a str,
    /// Base64url.
    pub(crate) signature: &'a str,
}

/// A verified new credential.
#[derive(Debug)]
pub(crate) struct Credential {
    pub(crate) id: Vec<u8>,
    /// DER of a SubjectPublicKeyInfo.
    pub(crate) public_key: Vec<u8>,
    /// Signatures that the authenticator has counted.
    pub(crate) sign_count: u32,
}

impl RelyingParty {
    /// The service at this URL; `None` where browsers make no passkeys: at an address in place of a
    /// name, and without TLS other than on `localhost`.
    pub(crate) fn at(public_url: &str) -> Option<Self> {
        let url = Url::parse(public_url).ok()?;
        let Some(Host::Domain(host)) = url.host() else { return None };
        let is_secure = url.scheme() == "https" || host == "localhost";
        let origin = url.origin().ascii_serialization();
        is_secure.then(|| Self { id: host.to_owned(), origin })
    }

    /// The credential of a registration that answers this challenge (section 7.1); `None` for any
    /// other.
    pub(crate) fn register(&self, challenge: &str, made: &Registration<'_>) -> Option<Credential> {
        let client_data = decode(made.client_data, CLIENT_DATA_BYTES_MAX)?;
        self.check_client_data(Ceremony::Create, challenge, &client_data)?;
        let data = decode(made.authenticator_data, AUTHENTICATOR_DATA_BYTES_MAX)?;
        let (sign_count, rest) = self.check_authenticator(&data, HAS_CREDENTIAL)?;
        let (head, rest) = rest.split_at_checked(CREDENTIAL_HEAD_BYTES)?;
        let length = usize::from(u16::from_be_bytes(head[16..].try_into().ok()?));
        if !(1..=CREDENTIAL_ID_BYTES_MAX).contains(&length) {
            return None;
        }
        let id = rest.get(..length)?.to_vec();
        let public_key = decode(made.public_key, PUBLIC_KEY_BYTES_MAX)?;
        PublicKey::from_der(&public_key)?;
        Some(Credential { id, public_key, sign_count })
    }

    /// The authenticator's counter, if the key has signed the answer to this challenge (section 7.2);
    /// `None` otherwise. The signature is verified before anything is parsed.
    pub(crate) fn verify(
        &self,
        challenge: &str,
        public_key: &[u8],
        used: &Assertion<'_>,
    ) -> Option<u32> {
        let client_data = decode(used.client_data, CLIENT_DATA_BYTES_MAX)?;
        let data = decode(used.authenticator_data, AUTHENTICATOR_DATA_BYTES_MAX)?;
        let signature = decode(used.signature, SIGNATURE_BYTES_MAX)?;
        let signed = [&data[..], &sha256(&client_data)].concat();
        PublicKey::from_der(public_key)?.verify(&signed, &signature)?;
        self.check_client_data(Ceremony::Get, challenge, &client_data)?;
        Some(self.check_authenticator(&data, 0)?.0)
    }

    fn check_client_data(&self, ceremony: Ceremony, challenge: &str, json: &[u8]) -> Option<()> {
        let data: ClientData = serde_json::from_slice(json).ok()?;
        let kind = match ceremony {
            Ceremony::Create => "webauthn.create",
            Ceremony::Get => "webauthn.get",
        };
        let is_answer = data.r#type == kind
            && constant_time_eq(data.challenge.as_bytes(), challenge.as_bytes())
            && data.origin == self.origin
            && !data.cross_origin;
        is_answer.then_some(())
    }

    /// Counter and rest of an authenticator's data that is for this service, by a person whom the
    /// authenticator has verified, and has these flags besides.
    fn check_authenticator<'a>(&self, data: &'a [u8], flags: u8) -> Option<(u32, &'a [u8])> {
        let (head, rest) = data.split_at_checked(HEAD_BYTES)?;
        let wanted = USER_PRESENT | USER_VERIFIED | flags;
        let is_ours = head[..32] == sha256(&self.id) && head[32] & wanted == wanted;
        let count = u32::from_be_bytes(head[33..].try_into().ok()?);
        is_ours.then_some((count, rest))
    }
}

/// The bytes of a text in base64url; `None` if it is another, or has more than `bytes_max`.
pub(crate) fn decode(text: &str, bytes_max: usize) -> Option<Vec<u8>> {
    let text = Some(text).filter(|text| text.len() <= bytes_max.div_ceil(3) * 4)?;
    URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| bytes.len() <= bytes_max)
}

#[cfg(test)]
mod tests;
