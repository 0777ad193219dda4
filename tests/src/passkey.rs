//! An authenticator in software, with one passkey: what it signs is as wrong as a test wants it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;
use url::form_urlencoded;
use uuid::Uuid;

/// Bytes before a point of P-256 in a SubjectPublicKeyInfo.
const P256_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Statements of the browser and the authenticator about a ceremony.
#[derive(Clone, Debug)]
pub struct Ceremony {
    /// `webauthn.create` or `webauthn.get`.
    pub kind: &'static str,
    /// Challenge of the page.
    pub challenge: String,
    /// Origin of the page.
    pub origin: String,
    /// Host that the key is for.
    pub party: String,
    /// Flags of the authenticator: 1 somebody was there, 4 and is known, 0x40 a credential follows.
    pub flags: u8,
    /// The authenticator's counter.
    pub count: u32,
}

impl Ceremony {
    /// One that makes a passkey, as the page wants it.
    pub fn create(challenge: &str) -> Self {
        Self {
            kind: "webauthn.create",
            challenge: challenge.to_owned(),
            origin: "https://pay.example.com".to_owned(),
            party: "pay.example.com".to_owned(),
            flags: 0x45,
            count: 0,
        }
    }

    /// One that uses a passkey, as the page wants it.
    pub fn get(challenge: &str, count: u32) -> Self {
        Self { kind: "webauthn.get", flags: 0x05, count, ..Self::create(challenge) }
    }

    fn client_data(&self) -> Vec<u8> {
        let data = json!({"type": self.kind, "challenge": self.challenge, "origin": self.origin,
            "crossOrigin": false});
        data.to_string().into_bytes()
    }

    fn authenticator_data(&self) -> Vec<u8> {
        let party = digest(&SHA256, self.party.as_bytes());
        [party.as_ref(), &[self.flags], &self.count.to_be_bytes()].concat()
    }
}

/// An authenticator with one passkey.
pub struct Authenticator {
    key: EcdsaKeyPair,
    /// Identifier of the passkey.
    pub credential: Vec<u8>,
    /// Whose it says it is: the bytes of a user's id.
    pub user_handle: Vec<u8>,
}

impl Authenticator {
    /// One with a new key, for the user with this id.
    pub fn of(user: &str) -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let mut credential = vec![0; 32];
        random.fill(&mut credential).unwrap();
        Self {
            key: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random)
                .unwrap(),
            credential,
            user_handle: user.parse::<Uuid>().unwrap().as_bytes().to_vec(),
        }
    }

    /// The public key, as a SubjectPublicKeyInfo.
    pub fn public_key(&self) -> Vec<u8> {
        [&P256_PREFIX[..], self.key.public_key().as_ref()].concat()
    }

    /// The form that registers it under a name, with this public key.
    pub fn registration(&self, name: &str, ceremony: &Ceremony, public_key: &[u8]) -> String {
        let length = u16::try_from(self.credential.len()).unwrap().to_be_bytes();
        let head = ceremony.authenticator_data();
        let data = [&head[..], &[0; 16], &length, &self.credential].concat();
        form(&[
            ("action", "passkey-add"),
            ("name", name),
            ("challenge", &ceremony.challenge),
            ("clientData", &encode(&ceremony.client_data())),
            ("authenticatorData", &encode(&data)),
            ("publicKey", &encode(public_key)),
        ])
    }

    /// The form that signs in with it.
    pub fn answer(&self, ceremony: &Ceremony) -> String {
        let (client_data, data) = (ceremony.client_data(), ceremony.authenticator_data());
        let signed = [&data[..], digest(&SHA256, &client_data).as_ref()].concat();
        let signature = self.key.sign(&SystemRandom::new(), &signed).unwrap();
        form(&[
            ("action", "passkey-answer"),
            ("challenge", &ceremony.challenge),
            ("credential", &encode(&self.credential)),
            ("clientData", &encode(&client_data)),
            ("authenticatorData", &encode(&data)),
            ("signature", &encode(signature.as_ref())),
            ("userHandle", &encode(&self.user_handle)),
        ])
    }
}

/// The challenge that a page asks to be answered.
pub fn challenge(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"challenge\" value=\"").expect("the page has none");
    rest.split('"').next().unwrap().to_owned()
}

/// Base64url, as pages send bytes.
pub fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn form(members: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(members).finish()
}
