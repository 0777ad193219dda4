use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use josekit::jwk::Jwk;
use josekit::jws::{ES256, EdDSA, HS256, JwsHeader, JwsSigner, RS256};
use serde_json::{Map, Value, json};

use super::login::challenge;
use super::*;
use crate::platform::settings::Names;

const NOW: i64 = 1_800_000_000;
const ISSUER: &str = "https://login.example.com";

fn provider(change: impl FnOnce(&mut settings::Oidc)) -> Provider {
    let mut settings: settings::Oidc =
        serde_json::from_value(json!({"issuer": ISSUER, "client_id": "rampart"})).unwrap();
    change(&mut settings);
    Provider::new(&settings).unwrap()
}

fn claims(change: impl FnOnce(&mut Value)) -> Map<String, Value> {
    let mut claims = json!({
        "iss": ISSUER, "aud": "rampart", "sub": "1", "exp": NOW + 60, "iat": NOW - 1,
        "nonce": "n", "preferred_username": "Ada", "roles": ["treasury", "staff"],
    });
    change(&mut claims);
    claims.as_object().unwrap().clone()
}

fn sign(signer: &dyn JwsSigner, header: &[(&str, Value)], claims: &Map<String, Value>) -> String {
    let mut head = JwsHeader::new();
    for (name, value) in header {
        head.set_claim(name, Some(value.clone())).unwrap();
    }
    let payload = serde_json::to_vec(claims).unwrap();
    josekit::jws::serialize_compact(&payload, &head, signer).unwrap()
}

fn public(key: &Jwk, id: &str) -> Map<String, Value> {
    let mut key = key.to_public_key().unwrap().as_ref().clone();
    key.insert("kid".to_owned(), id.into());
    key
}

fn verified(metadata: &Metadata, token: &str) -> Result<Map<String, Value>, Refusal> {
    metadata.verify(token, &token::header(token)?)
}

#[test]
fn a_header_is_read_within_the_bounds_of_json() {
    let header = |member: &str| {
        let text = format!(r#"{{"alg":"RS256","kid":"r","x":{member}}}"#);
        token::header(&format!("{}..", URL_SAFE_NO_PAD.encode(text)))
    };
    assert!(header("[1]").is_ok());
    let deep = format!("{}{}", "[".repeat(32), "]".repeat(32));
    for bad in [&*deep, r#"{"$serde_json::private::RawValue":"[]"}"#, r#"{"a":1,"a":2}"#] {
        assert!(header(bad).is_err(), "{bad}");
    }
}

#[test]
fn claims_and_answers_are_read_within_the_bounds_of_json() {
    let curve = Jwk::generate_ec_key(josekit::jwk::P_256).unwrap();
    let signer = ES256.signer_from_jwk(&curve).unwrap();
    let metadata = Metadata::of_keys(vec![public(&curve, "c")]);
    let counts = |member: &str| {
        let text = format!(r#"{{"sub":"1","x":{member}}}"#);
        let token =
            josekit::jws::serialize_compact(text.as_bytes(), &JwsHeader::new(), &signer).unwrap();
        let is_read = provider::read::<Map<String, Value>>(text.as_bytes()).is_ok();
        assert_eq!(verified(&metadata, &token).is_ok(), is_read, "{member}");
        is_read
    };
    assert!(counts("[1]"));
    let deep = format!("{}{}", "[".repeat(32), "]".repeat(32));
    for bad in [&*deep, r#"{"$serde_json::private::RawValue":"[]"}"#, r#"{"a":1,"a":2}"#] {
        assert!(!counts(bad), "{bad}");
    }
}

#[test]
fn a_token_is_verified_by_the_key_that_its_header_names() {
    let rsa = Jwk::generate_rsa_key(2048).unwrap();
    let curve = Jwk::generate_ec_key(josekit::jwk::P_256).unwrap();
    let edwards = Jwk::generate_ed_key(josekit::jwk::Ed25519).unwrap();
    let keys = vec![public(&rsa, "r"), public(&curve, "c"), public(&edwards, "e")];
    let metadata = Metadata::of_keys(keys);
    let claims = claims(|_| {});
    let signers: [(Box<dyn JwsSigner>, &str); 3] = [
        (Box::new(RS256.signer_from_jwk(&rsa).unwrap()), "r"),
        (Box::new(ES256.signer_from_jwk(&curve).unwrap()), "c"),
        (Box::new(EdDSA.signer_from_jwk(&edwards).unwrap()), "e"),
    ];
    for (signer, id) in &signers {
        let token = sign(&**signer, &[("kid", json!(id))], &claims);
        assert_eq!(verified(&metadata, &token).unwrap(), claims, "{id}");
        assert_eq!(verified(&metadata, &sign(&**signer, &[], &claims)).unwrap(), claims);
        let other = sign(&**signer, &[("kid", json!("unknown"))], &claims);
        assert!(!metadata.has_key(&token::header(&other).unwrap()), "{id}");
        assert!(verified(&metadata, &other).is_err(), "{id}");
        let [head, body, signature] = token.split('.').collect::<Vec<_>>()[..] else { panic!() };
        let forged = URL_SAFE_NO_PAD.encode(r#"{"preferred_username":"eve"}"#);
        for bad in [
            format!("{head}.{forged}.{signature}"),
            format!("{head}.{body}."),
            format!("{head}.{body}.{}", &signature[2..]),
            format!("{}.{body}.", URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#)),
            format!("{}.{body}.", URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","crit":["x"]}"#)),
            format!("{body}.{body}.{signature}"),
            format!("{head}.{body}"),
        ] {
            assert!(verified(&metadata, &bad).is_err(), "{bad}");
        }
    }
}

#[test]
fn a_public_key_is_no_secret_to_sign_with() {
    let rsa = Jwk::generate_rsa_key(2048).unwrap();
    let metadata = Metadata::of_keys(vec![public(&rsa, "r")]);
    let known = serde_json::to_vec(&public(&rsa, "r")).unwrap();
    let signer = HS256.signer_from_bytes(known).unwrap();
    let token = sign(&signer, &[("kid", json!("r"))], &claims(|_| {}));
    assert_eq!(
        verified(&metadata, &token),
        Err(Refusal::Invalid("no key of the provider signed the token"))
    );
}

#[test]
fn claims_count_for_us_and_now_and_this_login() {
    let provider = provider(|_| {});
    let check = |change: fn(&mut Value)| provider.check(&claims(change), NOW, Some("n"));
    let good: [fn(&mut Value); 6] = [
        |_| {},
        |claims| claims["aud"] = json!(["other", "rampart"]),
        |claims| claims["azp"] = json!("rampart"),
        |claims| claims["exp"] = json!(NOW - 29),
        |claims| claims["nbf"] = json!(NOW + 29),
        |claims| claims["iat"] = Value::Number("1799999999.5".parse().unwrap()),
    ];
    for change in good {
        assert_eq!(check(change), Ok(()), "{:?}", claims(change));
    }
    let bad: [fn(&mut Value); 12] = [
        |claims| claims["iss"] = json!("https://login.example.com/"),
        |claims| claims["aud"] = json!("other"),
        |claims| claims["aud"] = json!(["other"]),
        |claims| claims["aud"] = Value::Null,
        |claims| claims["azp"] = json!("other"),
        |claims| claims["exp"] = json!(NOW - 31),
        |claims| claims["exp"] = Value::Null,
        |claims| claims["exp"] = json!("tomorrow"),
        |claims| drop(claims.as_object_mut().unwrap().remove("exp")),
        |claims| claims["nbf"] = json!(NOW + 31),
        |claims| claims["iat"] = json!(NOW + 31),
        |claims| claims["nonce"] = json!("another"),
    ];
    for change in bad {
        assert!(check(change).is_err(), "{:?}", claims(change));
    }
    assert_eq!(provider.check(&claims(|claims| claims["nonce"] = json!("x")), NOW, None), Ok(()));
}

#[test]
fn a_login_is_for_this_client_and_a_bearer_token_for_its_audience() {
    let provider = provider(|settings| settings.audience = Some("rampart-api".to_owned()));
    let counts = |audience: &str, nonce: Option<&str>| {
        let claims = claims(|claims| claims["aud"] = json!(audience));
        provider.check(&claims, NOW, nonce).is_ok()
    };
    assert!(counts("rampart", Some("n")) && !counts("rampart", None));
    assert!(counts("rampart-api", None) && !counts("rampart-api", Some("n")));
}

#[test]
fn a_person_has_the_roles_that_their_claim_is_mapped_to() {
    let person = |provider: &Provider, change: fn(&mut Value)| provider.person_of(&claims(change));
    let plain = provider(|_| {});
    let named = |name: &str, roles| Person {
        identity: format!("{ISSUER} 1"),
        name: name.to_owned(),
        roles,
    };
    assert_eq!(person(&plain, |_| {}), Ok(named("ada", vec![Role::Treasury])));
    let mapped = provider(|settings| {
        settings.role_claim = "realm_access.roles".to_owned();
        settings.name_claim = "email".to_owned();
        let names = |names: &[&str]| Names(names.iter().map(|&name| name.to_owned()).collect());
        settings.roles.insert("staff".to_owned(), names(&["viewer"]));
        settings.roles.insert("money".to_owned(), names(&["treasury", "viewer"]));
    });
    let bob = person(&mapped, |claims| {
        claims["email"] = json!("bob@example.com");
        claims["realm_access"] = json!({"roles": ["staff", "money", "owner", 7]});
    });
    let roles = vec![Role::Viewer, Role::Treasury];
    assert_eq!(bob, Ok(named("bob@example.com", roles)));
    let refused: [fn(&mut Value); 8] = [
        |claims| claims["roles"] = json!(["staff"]),
        |claims| claims["roles"] = json!({"treasury": true}),
        |claims| drop(claims.as_object_mut().unwrap().remove("roles")),
        |claims| claims["preferred_username"] = json!("admin"),
        |claims| claims["preferred_username"] = json!("Edge"),
        |claims| claims["preferred_username"] = json!("a b"),
        |claims| claims["preferred_username"] = json!(["ada"]),
        |claims| drop(claims.as_object_mut().unwrap().remove("preferred_username")),
    ];
    for change in refused {
        let refused = person(&plain, change);
        let is_of_them = |identity: &str| identity == format!("{ISSUER} 1");
        assert!(
            matches!(&refused, Err(Refusal::NotPermitted { identity, .. }) if is_of_them(identity)),
            "{refused:?}"
        );
    }
    // What is mapped to nothing is no role, even if it has the name of one.
    assert!(person(&mapped, |claims| claims["email"] = json!("eve")).is_err());
}

#[test]
fn a_token_without_a_subject_names_nobody() {
    let provider = provider(|_| {});
    let refused: [fn(&mut Value); 5] = [
        |claims| drop(claims.as_object_mut().unwrap().remove("sub")),
        |claims| claims["sub"] = json!(""),
        |claims| claims["sub"] = json!(1),
        |claims| claims["sub"] = json!("a".repeat(256)),
        |claims| claims["sub"] = json!("\u{0}"),
    ];
    for change in refused {
        let refused = provider.person_of(&claims(change));
        assert_eq!(refused, Err(Refusal::Invalid("the token names no subject")));
    }
    let renamed = claims(|claims| claims["preferred_username"] = json!("eve"));
    let (ada, eve) = (provider.person_of(&claims(|_| {})), provider.person_of(&renamed));
    assert_eq!(ada.unwrap().identity, eve.unwrap().identity);
}

#[test]
fn settings_that_no_login_can_come_from_are_refused() {
    for (member, value) in [
        ("issuer", json!("http://login.example.com")),
        ("issuer", json!("login.example.com")),
        ("issuer", json!("https://ada:secret@login.example.com")),
        ("client_id", json!("")),
        ("roles", json!({"staff": "emperor"})),
    ] {
        let mut settings = json!({"issuer": ISSUER, "client_id": "rampart"});
        settings[member] = value;
        let settings = serde_json::from_value(settings).unwrap();
        assert!(Provider::new(&settings).is_err(), "{member}");
    }
    provider(|settings| settings.issuer = "http://127.0.0.1:9400".to_owned());
}

#[test]
fn the_challenge_is_the_one_of_the_specification() {
    let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
}
