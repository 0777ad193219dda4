use proptest::prelude::*;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _,
};
use serde_json::json;

use super::*;

const CHALLENGE: &str = "Y2hhbGxlbmdl";
const P256: &str = "3059301306072a8648ce3d020106082a8648ce3d030107034200";
const P384: &str = "3076301006072a8648ce3d020106052b81040022036200";
const EDWARDS: &str = "302a300506032b6570032100";

fn party() -> RelyingParty {
    RelyingParty::at("https://pay.example.com").unwrap()
}

fn client_data(kind: &str, challenge: &str, origin: &str, cross_origin: bool) -> String {
    let data = json!({"type": kind, "challenge": challenge, "origin": origin,
        "crossOrigin": cross_origin, "other": 1});
    URL_SAFE_NO_PAD.encode(data.to_string())
}

fn got() -> String {
    client_data("webauthn.get", CHALLENGE, "https://pay.example.com", false)
}

fn data(id: &str, flags: u8, count: u32) -> Vec<u8> {
    [&sha256(id)[..], &[flags], &count.to_be_bytes()].concat()
}

fn new_credential(id: &[u8]) -> Vec<u8> {
    let length = u16::try_from(id.len()).unwrap().to_be_bytes();
    [&data("pay.example.com", 0x45, 0)[..], &[0; 16], &length, id, &[0xa5; 77]].concat()
}

fn der(prefix: &str, key: &[u8]) -> Vec<u8> {
    [&hex::decode(prefix).unwrap()[..], key].concat()
}

fn ecdsa(algorithm: &'static EcdsaSigningAlgorithm) -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).unwrap()
}

/// Verifies an assertion that a key signs as it is.
fn assert(key: &EcdsaKeyPair, client_data: &str, data: &[u8]) -> Option<u32> {
    let json = URL_SAFE_NO_PAD.decode(client_data).unwrap();
    let signed = [data, &sha256(&json)].concat();
    let signature = key.sign(&SystemRandom::new(), &signed).unwrap();
    let (data, signature) = (URL_SAFE_NO_PAD.encode(data), URL_SAFE_NO_PAD.encode(signature));
    let used = Assertion { client_data, authenticator_data: &data, signature: &signature };
    party().verify(CHALLENGE, &der(P256, key.public_key().as_ref()), &used)
}

#[test]
fn a_service_with_a_name_and_tls_has_passkeys() {
    for (url, id) in [
        ("https://pay.example.com", Some("pay.example.com")),
        ("https://pay.example.com:8443", Some("pay.example.com")),
        ("http://localhost:8080", Some("localhost")),
        ("http://pay.example.com", None),
        ("https://127.0.0.1:8443", None),
        ("https://[::1]", None),
        ("", None),
    ] {
        assert_eq!(RelyingParty::at(url).map(|party| party.id).as_deref(), id, "{url}");
    }
    assert_eq!(
        RelyingParty::at("https://a.example:8443").unwrap().origin,
        "https://a.example:8443"
    );
}

#[test]
fn an_assertion_counts_as_it_was_asked_for() {
    let key = ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING);
    assert_eq!(assert(&key, &got(), &data("pay.example.com", 0x05, 7)), Some(7));
    // Extensions follow where a flag says so.
    let extended = [&data("pay.example.com", 0x85, 8)[..], &[0xa0]].concat();
    assert_eq!(assert(&key, &got(), &extended), Some(8));
}

#[test]
fn an_assertion_for_something_else_is_refused() {
    let key = ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING);
    let ours = data("pay.example.com", 0x05, 1);
    let origin = "https://pay.example.com";
    for (why, client_data) in [
        ("a registration", client_data("webauthn.create", CHALLENGE, origin, false)),
        ("another challenge", client_data("webauthn.get", "YW5vdGhlcg", origin, false)),
        ("another origin", client_data("webauthn.get", CHALLENGE, "https://example.com", false)),
        ("a frame", client_data("webauthn.get", CHALLENGE, origin, true)),
        ("no JSON", URL_SAFE_NO_PAD.encode("{}")),
    ] {
        assert_eq!(assert(&key, &client_data, &ours), None, "{why}");
    }
    for (why, data) in [
        ("another service", data("example.com", 0x05, 1)),
        ("nobody there", data("pay.example.com", 0x04, 1)),
        ("nobody verified", data("pay.example.com", 0x01, 1)),
        ("too short", ours[..36].to_vec()),
    ] {
        assert_eq!(assert(&key, &got(), &data), None, "{why}");
    }
}

#[test]
fn a_signature_of_another_key_or_text_is_refused() {
    let (key, other) =
        (ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING), ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING));
    let json = URL_SAFE_NO_PAD.decode(got()).unwrap();
    let ours = data("pay.example.com", 0x05, 1);
    let signed = [&ours[..], &sha256(&json)].concat();
    let signature = key.sign(&SystemRandom::new(), &signed).unwrap();
    let signature = URL_SAFE_NO_PAD.encode(signature);
    let check = |key: &EcdsaKeyPair, data: &[u8]| {
        let (client_data, data) = (got(), URL_SAFE_NO_PAD.encode(data));
        let used = Assertion {
            client_data: &client_data,
            authenticator_data: &data,
            signature: &signature,
        };
        party().verify(CHALLENGE, &der(P256, key.public_key().as_ref()), &used)
    };
    assert_eq!(check(&key, &ours), Some(1));
    assert_eq!(check(&other, &ours), None);
    assert_eq!(check(&key, &data("pay.example.com", 0x05, 2)), None);
}

#[test]
fn keys_of_three_algorithms_are_taken_and_no_others() {
    let random = SystemRandom::new();
    let p256 = ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING);
    let p384 = ecdsa(&ECDSA_P384_SHA384_ASN1_SIGNING);
    let edwards = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
    let edwards = Ed25519KeyPair::from_pkcs8(edwards.as_ref()).unwrap();
    let es256 = der(P256, p256.public_key().as_ref());
    let eddsa = der(EDWARDS, edwards.public_key().as_ref());
    let signature = edwards.sign(b"text");
    let key = PublicKey::from_der(&eddsa).unwrap();
    assert!(key.verify(b"text", signature.as_ref()).is_some());
    assert!(key.verify(b"texts", signature.as_ref()).is_none());
    assert!(PublicKey::from_der(&es256).is_some());
    // An RSA key of 2,048 bits: a modulus of ones.
    let prefix = "30820122300d06092a864886f70d01010105000382010f003082010a0282010100";
    let rsa = [&der(prefix, &[0xff; 256])[..], &[2, 3, 1, 0, 1]].concat();
    assert!(PublicKey::from_der(&rsa).is_some());
    for (why, key) in [
        ("another curve", der(P384, p384.public_key().as_ref())),
        ("more after it", [&es256[..], &[0]].concat()),
        ("cut off", es256[..80].to_vec()),
        ("nothing", Vec::new()),
    ] {
        assert!(PublicKey::from_der(&key).is_none(), "{why}");
    }
}

#[test]
fn a_registration_names_its_credential() {
    let key = ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING);
    let created = client_data("webauthn.create", CHALLENGE, "https://pay.example.com", false);
    let register = |client_data: &str, data: &[u8], key: &[u8]| {
        let (data, key) = (URL_SAFE_NO_PAD.encode(data), URL_SAFE_NO_PAD.encode(key));
        let made = Registration { client_data, authenticator_data: &data, public_key: &key };
        party().register(CHALLENGE, &made)
    };
    let es256 = der(P256, key.public_key().as_ref());
    let made = register(&created, &new_credential(b"one"), &es256).unwrap();
    assert_eq!((&made.id[..], &made.public_key, made.sign_count), (&b"one"[..], &es256, 0));
    for (why, client_data, data, key) in [
        ("a use", &got(), new_credential(b"one"), &es256),
        ("no credential", &created, data("pay.example.com", 0x05, 0), &es256),
        ("an empty id", &created, new_credential(b""), &es256),
        ("a long id", &created, new_credential(&[7; 1_024]), &es256),
        ("a cut id", &created, new_credential(b"one")[..56].to_vec(), &es256),
        ("no key", &created, new_credential(b"one"), &Vec::new()),
    ] {
        assert!(register(client_data, &data, key).is_none(), "{why}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(
        data in prop::collection::vec(any::<u8>(), 0..120), text in "[A-Za-z0-9_-]{0,40}",
    ) {
        let encoded = URL_SAFE_NO_PAD.encode(&data);
        let made =
            Registration { client_data: &encoded, authenticator_data: &text, public_key: &encoded };
        let _ = (party().register(CHALLENGE, &made), PublicKey::from_der(&data));
        let _ = party().check_authenticator(&data, HAS_CREDENTIAL);
    }
}
