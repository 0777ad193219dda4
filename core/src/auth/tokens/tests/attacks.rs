//! Forged tokens, most of them with a signature that matches their content: each fails for the one
//! reason in its name.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::hmac;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{HOUR, KINDS, NOON, id_at, invalid, master, token, verify};
use crate::auth::tokens::jwt::Kind;
use crate::platform::crypto::Purpose;

const TODAY: i64 = 20_000;

pub(super) fn decode(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part).ok()
}

fn encode(part: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(part)
}

fn key_of(purpose: Purpose) -> [u8; 32] {
    master().derive(purpose).unwrap()
}

fn sign_with(algorithm: hmac::Algorithm, key: &[u8], header: &str, claims: &str) -> String {
    let message = format!("{}.{}", encode(header), encode(claims));
    let tag = hmac::sign(&hmac::Key::new(algorithm, key), message.as_bytes());
    format!("{message}.{}", encode(tag))
}

/// A token with this header and claims, signed with the current key.
pub(super) fn sign(header: &str, claims: &str) -> String {
    sign_with(hmac::HMAC_SHA256, &key_of(Purpose::Tokens { day: TODAY }), header, claims)
}

fn typ(kind: Kind) -> &'static str {
    if kind == Kind::Client { "client+jwt" } else { "user+jwt" }
}

fn header(kind: Kind) -> Value {
    json!({"alg": "HS256", "typ": typ(kind), "kid": TODAY.to_string()})
}

fn claims(kind: Kind) -> Value {
    let mut claims = json!({
        "iss": "rampart", "aud": "rampart-api", "sub": Uuid::from_u128(2),
        "jti": id_at(NOON, 0), "iat": NOON, "exp": NOON + HOUR,
    });
    if kind == Kind::User {
        claims["client_id"] = json!(Uuid::from_u128(1));
    }
    claims
}

/// `object` with a member set, or removed where `value` is `None`.
fn with(mut object: Value, name: &str, value: Option<Value>) -> String {
    match value {
        Some(value) => object[name] = value,
        None => drop(object.as_object_mut().unwrap().remove(name)),
    }
    object.to_string()
}

/// `object` with a duplicate of a member before the others.
fn twice(object: &Value, name: &str, value: &Value) -> String {
    object.to_string().replacen('{', &format!("{{\"{name}\":{value},"), 1)
}

fn assert_refused(kind: Kind, name: &str, token: &str) {
    let verdict = verify(kind, token, NOON);
    assert!(
        verdict.as_ref().is_err_and(|error| error.is(invalid(kind))),
        "{name} ({kind:?}): {verdict:?} for {token}"
    );
}

#[test]
fn an_unmodified_token_of_the_forger_is_valid() {
    for kind in KINDS {
        let forged = sign(&header(kind).to_string(), &claims(kind).to_string());
        assert!(verify(kind, &forged, NOON).is_ok(), "or the other tests here show nothing");
    }
}

#[test]
fn another_header_is_refused() {
    let members = [
        ("alg", None),
        ("alg", Some(Value::Null)),
        ("alg", Some(json!(256))),
        ("alg", Some(json!(["HS256"]))),
        ("alg", Some(json!("hs256"))),
        ("alg", Some(json!(""))),
        ("typ", None),
        ("typ", Some(json!("JWT"))),
        ("typ", Some(json!("CLIENT+JWT"))),
        ("typ", Some(json!("application/client+jwt"))),
        ("typ", Some(json!("quote+jwe"))),
        ("kid", None),
        ("kid", Some(json!(TODAY))),
        ("kid", Some(json!(""))),
        ("kid", Some(json!(format!("0{TODAY}")))),
        ("kid", Some(json!(format!("+{TODAY}")))),
        ("kid", Some(json!(format!(" {TODAY}")))),
        ("kid", Some(json!("99999999999999999999"))),
        ("kid", Some(json!(i64::MAX.to_string()))),
        ("kid", Some(json!(i64::MIN.to_string()))),
        ("crit", Some(json!(["exp"]))),
        ("crit", Some(json!([]))),
        ("jku", Some(json!("https://keys.example.com/jwks.json"))),
        ("jwk", Some(json!({"kty": "oct", "k": "AAAA"}))),
        ("x5u", Some(json!("https://keys.example.com/chain.pem"))),
        ("x5c", Some(json!(["MIIB"]))),
        ("x5t", Some(json!("AAAA"))),
        ("zip", Some(json!("DEF"))),
        ("enc", Some(json!("A256GCM"))),
        ("b64", Some(json!(false))),
        ("cty", Some(json!("JWT"))),
        ("p2c", Some(json!(2_000_000_000))),
    ];
    for kind in KINDS {
        for (name, value) in &members {
            let forged = sign(&with(header(kind), name, value.clone()), &claims(kind).to_string());
            assert_refused(kind, &format!("{name} = {value:?}"), &forged);
        }
        for (name, value) in [
            ("alg", json!("none")),
            ("alg", json!("HS256")),
            ("kid", json!("1")),
            ("typ", json!("JWT")),
        ] {
            let forged = sign(&twice(&header(kind), name, &value), &claims(kind).to_string());
            assert_refused(kind, &format!("{name} twice"), &forged);
        }
        for whole in ["", "[]", "\"HS256\"", "null", "{}", "{\"alg\":\"HS256\"", "\u{feff}{}"] {
            assert_refused(kind, whole, &sign(whole, &claims(kind).to_string()));
        }
        let trailing = format!("{} x", header(kind));
        assert_refused(kind, "trailing garbage", &sign(&trailing, &claims(kind).to_string()));
    }
}

#[test]
fn another_algorithm_is_refused() {
    for kind in KINDS {
        let claims = claims(kind).to_string();
        let key = key_of(Purpose::Tokens { day: TODAY });
        let named = |algorithm: &str| with(header(kind), "alg", Some(json!(algorithm)));
        for algorithm in ["none", "None", "NONE", "nOnE", ""] {
            let message = format!("{}.{}", encode(named(algorithm)), encode(&claims));
            assert_refused(kind, algorithm, &format!("{message}."));
            assert_refused(kind, algorithm, &message);
            assert_refused(kind, algorithm, &sign(&named(algorithm), &claims));
        }
        for (algorithm, hash) in [("HS384", hmac::HMAC_SHA384), ("HS512", hmac::HMAC_SHA512)] {
            let forged = sign_with(hash, &key, &named(algorithm), &claims);
            assert_refused(kind, algorithm, &forged);
            let unnamed = sign_with(hash, &key, &header(kind).to_string(), &claims);
            assert_refused(kind, "another hash than the header says", &unnamed);
        }
        for algorithm in ["RS256", "RS512", "PS256", "ES256", "ES384", "EdDSA", "HS1", "dir"] {
            assert_refused(kind, algorithm, &sign(&named(algorithm), &claims));
        }
        let psychic = format!("{}.{}.{}", encode(named("ES256")), encode(&claims), encode([0; 64]));
        assert_refused(kind, "a signature of zeros", &psychic);
    }
}

#[test]
fn another_key_is_refused() {
    for kind in KINDS {
        let text = claims(kind).to_string();
        let of = |kid: &str| with(header(kind), "kid", Some(json!(kid)));
        let with_key = |key: &[u8], kid: &str| sign_with(hmac::HMAC_SHA256, key, &of(kid), &text);
        for day in [TODAY - 1, TODAY + 1, TODAY - 400, 0, -1] {
            let forged = with_key(&key_of(Purpose::Tokens { day }), &day.to_string());
            assert_refused(kind, &format!("the key of day {day}"), &forged);
        }
        for kid in ["../../../../dev/null", "/dev/null", "20000' or '1'='1", "20000\0", "٢٠٠٠٠"]
        {
            assert_refused(kind, kid, &with_key(b"", kid));
        }
        let client = Uuid::from_u128(1);
        for purpose in
            [Purpose::SignedLinks, Purpose::Quotes { day: TODAY, client }, Purpose::Storage]
        {
            assert_refused(kind, "a key for something else", &with_key(&key_of(purpose), "20000"));
        }
        for key in [&b""[..], &[0; 32], b"secret", b"-----BEGIN PUBLIC KEY-----"] {
            assert_refused(kind, "a guessed key", &with_key(key, "20000"));
        }
    }
}

#[test]
fn inconsistent_claims_are_refused() {
    let members = [
        ("iss", None),
        ("iss", Some(json!("rampart2"))),
        ("iss", Some(json!(["rampart"]))),
        ("aud", None),
        ("aud", Some(json!("another-api"))),
        ("aud", Some(json!(["rampart-api", "another-api"]))),
        ("sub", None),
        ("sub", Some(json!(""))),
        ("sub", Some(json!("admin"))),
        ("sub", Some(json!(2))),
        ("jti", None),
        ("jti", Some(json!("936da01f-9abd-4d9d-80c7-02af85c822a8"))),
        ("jti", Some(json!(id_at(NOON - 1, 0)))),
        ("iat", None),
        ("iat", Some(json!(NOON + 1))),
        ("iat", Some(json!(NOON.to_string()))),
        ("iat", Some(json!(i64::MAX))),
        ("iat", Some(json!(-1))),
        ("exp", None),
        ("exp", Some(Value::Null)),
        ("exp", Some(json!("never"))),
        ("exp", Some(json!((NOON + HOUR).to_string()))),
    ];
    for kind in KINDS {
        let head = header(kind).to_string();
        for (name, value) in &members {
            let forged = sign(&head, &with(claims(kind), name, value.clone()));
            assert_refused(kind, &format!("{name} = {value:?}"), &forged);
        }
        for (name, value) in [("exp", json!(NOON + 9 * HOUR)), ("sub", json!(Uuid::from_u128(9)))] {
            let forged = sign(&head, &twice(&claims(kind), name, &value));
            assert_refused(kind, &format!("{name} twice"), &forged);
        }
        for number in ["1e400", "1728043200.0", "1.8e9", "99999999999999999999"] {
            let exp = (NOON + HOUR).to_string();
            let forged = sign(&head, &claims(kind).to_string().replace(&exp, number));
            assert_refused(kind, &format!("exp = {number}"), &forged);
        }
        for whole in ["", "[]", "null", "{}", "not json"] {
            assert_refused(kind, whole, &sign(&head, whole));
        }
        let later = NOON + 6;
        let mut future = claims(kind);
        future["jti"] = json!(id_at(later, 0));
        assert_refused(
            kind,
            "from the future",
            &sign(&head, &with(future, "iat", Some(json!(later)))),
        );
        let of_other_kind =
            if kind == Kind::Client { Some(json!(Uuid::from_u128(1))) } else { None };
        let forged = sign(&head, &with(claims(kind), "client_id", of_other_kind));
        assert_refused(kind, "the claims of the other kind", &forged);
    }
}

#[test]
fn a_truncated_or_respelled_signature_is_refused() {
    for kind in KINDS {
        let genuine = token(kind, NOON);
        let (message, signature) = genuine.rsplit_once('.').unwrap();
        let tag = decode(signature).unwrap();
        let standard = STANDARD.encode(&tag);
        let longer = [&tag[..], &[0]].concat();
        // 43 characters carry 258 bits: the last two must be zero.
        let last = signature.chars().last().unwrap();
        let loose = format!("{}{}", &signature[..42], char::from(last as u8 + 1));
        for other in [
            String::new(),
            encode(&tag[..31]),
            encode(&tag[..16]),
            encode(longer),
            encode([0; 32]),
            standard,
            loose,
            format!("{signature}="),
            format!("{signature} "),
            format!("{signature}\n"),
            signature.to_lowercase(),
            token(kind, NOON + 1).rsplit_once('.').unwrap().1.to_owned(),
        ] {
            assert_refused(kind, "another signature", &format!("{message}.{other}"));
        }
    }
}

#[test]
fn a_token_has_three_parts_and_a_bound() {
    for kind in KINDS {
        let genuine = token(kind, NOON);
        let json = json!({"payload": genuine, "protected": "e30", "signature": "AA"}).to_string();
        let padded = with(claims(kind), "pad", Some(json!("x".repeat(super::TOKEN_BYTES_MAX))));
        let refresh = format!("rr_{}_{}", "0".repeat(32), "A".repeat(43));
        for (name, other) in [
            ("nothing", String::new()),
            ("a dot", ".".to_owned()),
            ("two dots", "..".to_owned()),
            ("three dots", "...".to_owned()),
            ("two parts", genuine.rsplit_once('.').unwrap().0.to_owned()),
            ("four parts", format!("{genuine}.AAAA")),
            ("five parts", format!("{genuine}.AAAA.AAAA")),
            ("an empty part before", format!(".{genuine}")),
            ("a blank before", format!(" {genuine}")),
            ("JSON serialization", json),
            ("a refresh token", refresh),
            ("more than the bound", sign(&header(kind).to_string(), &padded)),
            ("a megabyte", "A".repeat(1 << 20)),
            ("a megabyte of dots", ".".repeat(1 << 20)),
            ("what is no text", "\u{0}\u{7f}é".to_owned()),
        ] {
            assert_refused(kind, name, &other);
        }
    }
}
