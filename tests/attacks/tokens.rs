//! Tokens that nobody issued: other algorithms, other keys, other claims, other kinds of token in
//! the place of the right one, and single bits of a genuine one.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::Method;
use rampart_tests::caller::Caller;
use rampart_tests::campaign::{Report, Scale};
use ring::hmac;
use serde_json::{Value, json};

use crate::target::Target;
use crate::verdict::{Verdict, judged};

/// A route that any proven client may read.
const READ: &str = "/api/v1/prices";
/// Of so many bits one is flipped in the short form.
const SHORT_STEP: usize = 5;
/// Keys that a careless server might verify with.
const KEYS: [&[u8]; 6] = [b"", b"secret", b"key", b"rampart", b"\0", b"-----BEGIN PUBLIC KEY-----"];

/// A token and what is wrong with it.
struct Forged {
    name: String,
    token: Vec<u8>,
}

/// The parts of a genuine token.
struct Genuine {
    head: String,
    claims: String,
    signature: String,
}

impl Genuine {
    fn of(token: &str) -> Self {
        let mut parts = token.split('.').map(str::to_owned);
        let mut next = || parts.next().unwrap();
        Self { head: next(), claims: next(), signature: next() }
    }

    fn head(&self) -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(&self.head).unwrap()).unwrap()
    }

    fn claims(&self) -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(&self.claims).unwrap()).unwrap()
    }
}

/// A value with a member set.
fn with(value: &Value, member: &str, to: Value) -> Value {
    let mut changed = value.clone();
    changed[member] = to;
    changed
}

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// Signed with this key under this head.
fn signed(head: &Value, claims: &Value, key: &[u8]) -> String {
    let text = format!("{}.{}", encoded(head), encoded(claims));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes());
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(tag))
}

pub(crate) async fn forged(scale: Scale) -> Report {
    let target = Target::start().await;
    let other = target.edge.partner("victim").await;
    let genuine = bearer(&other.authenticated().await);
    let mut all = Vec::new();
    let parts = Genuine::of(&genuine);
    algorithms(&parts, &mut all);
    parameters(&parts, &mut all);
    claims(&parts, &mut all);
    shapes(&parts, &genuine, &mut all);
    bits(&parts, if scale.is_exact() { 1 } else { SHORT_STEP }, &mut all);
    kinds(&other, &mut all).await;
    judged(scale, &target.neighbour, async |verdict: &mut Verdict| {
        for forged in &all {
            let value = [b"Bearer ", &forged.token[..]].concat();
            let Ok(value) = String::from_utf8(value) else { continue };
            let request = target.partner.anonymous(Method::GET, READ);
            // What no client can send is refused before the edge.
            let Ok(answer) = request.header("authorization", &value).try_send().await else {
                verdict.note(false, String::new);
                continue;
            };
            let refused = (400..500).contains(&answer.status());
            verdict.note(!refused, || format!("{} with {}", answer.status(), forged.name));
        }
    })
    .await
}

fn bearer(partner: &Caller) -> String {
    partner.credential().1.strip_prefix("Bearer ").unwrap().to_owned()
}

fn algorithms(genuine: &Genuine, all: &mut Vec<Forged>) {
    let (head, claims) = (genuine.head(), genuine.claims());
    let mut add = |name: String, token: String| all.push(Forged { name, token: token.into() });
    for none in ["none", "None", "NONE", "nOnE", "", "null"] {
        let head = encoded(&with(&head, "alg", json!(none)));
        add(format!("alg {none:?}, unsigned"), format!("{head}.{}.", genuine.claims));
        let signed = format!("{head}.{}.{}", genuine.claims, genuine.signature);
        add(format!("alg {none:?}, signed"), signed);
    }
    for alg in [
        json!("HS384"),
        json!("HS512"),
        json!("RS256"),
        json!("ES256"),
        json!("EdDSA"),
        json!("PS256"),
        json!("hs256"),
        json!("dir"),
        json!(null),
        json!(1),
        json!(["HS256"]),
    ] {
        let head = with(&head, "alg", alg.clone());
        add(
            format!("alg {alg}"),
            format!("{}.{}.{}", encoded(&head), genuine.claims, genuine.signature),
        );
        add(format!("alg {alg}, empty key"), signed(&head, &claims, b""));
    }
    let day = head["kid"].as_str().unwrap_or_default().as_bytes().to_vec();
    for key in KEYS.iter().copied().chain([&day[..], genuine.head.as_bytes()]) {
        add(format!("key {key:?}"), signed(&head, &claims, key));
    }
    let long = "k".repeat(2_000);
    for kid in [
        "",
        "0",
        "-1",
        "../../../../dev/null",
        "/dev/null",
        "' or 1=1 --",
        "%00",
        &long,
        "99999999999999999999",
        "1970-01-01",
        "9999-12-31",
        "null",
    ] {
        let head = with(&head, "kid", json!(kid));
        add(format!("kid {kid:.30}"), signed(&head, &claims, b""));
        add(
            format!("kid {kid:.30}, genuine signature"),
            format!("{}.{}.{}", encoded(&head), genuine.claims, genuine.signature),
        );
    }
}

fn parameters(genuine: &Genuine, all: &mut Vec<Forged>) {
    let (head, claims) = (genuine.head(), genuine.claims());
    let mut add = |name: String, token: String| all.push(Forged { name, token: token.into() });
    for (member, value) in [
        ("jku", json!("https://attacker.example/keys")),
        ("x5u", json!("https://attacker.example/chain")),
        ("jwk", json!({"kty": "oct", "k": URL_SAFE_NO_PAD.encode("secret")})),
        ("x5c", json!(["MIIB"])),
        ("crit", json!(["exp"])),
        ("zip", json!("DEF")),
        ("b64", json!(false)),
        ("cty", json!("JWT")),
    ] {
        add(format!("head with {member}"), signed(&with(&head, member, value), &claims, b"secret"));
    }
    for typ in ["JWT", "user+jwt", "at+jwt", "", "CLIENT+JWT"] {
        let head = with(&head, "typ", json!(typ));
        add(
            format!("typ {typ}"),
            format!("{}.{}.{}", encoded(&head), genuine.claims, genuine.signature),
        );
    }
}

fn claims(genuine: &Genuine, all: &mut Vec<Forged>) {
    let claims = genuine.claims();
    let nobody = json!("00000000-0000-7000-8000-000000000000");
    let far = json!(4_102_444_800_u64);
    let members: Vec<String> = claims.as_object().unwrap().keys().cloned().collect();
    for member in &members {
        for value in [json!(null), json!(0), far.clone(), nobody.clone(), json!([]), json!(true)] {
            let changed = encoded(&with(&claims, member, value.clone()));
            let token = format!("{}.{changed}.{}", genuine.head, genuine.signature);
            all.push(Forged { name: format!("{member} is {value}"), token: token.into() });
        }
    }
}

fn shapes(genuine: &Genuine, whole: &str, all: &mut Vec<Forged>) {
    let Genuine { head, claims, signature } = genuine;
    let raw = URL_SAFE_NO_PAD.decode(signature).unwrap();
    let padded = STANDARD.encode(&raw);
    let zeros = URL_SAFE_NO_PAD.encode([0; 32]);
    let psychic = URL_SAFE_NO_PAD.encode([0; 64]);
    let json = json!({"payload": claims, "protected": head, "signature": signature}).to_string();
    let mut texts = vec![
        String::new(),
        ".".into(),
        "..".into(),
        "...".into(),
        "a.b.c".into(),
        head.clone(),
        format!("{head}.{claims}"),
        format!("{head}.{claims}."),
        format!("{head}..{signature}"),
        format!(".{claims}.{signature}"),
        format!("{whole}."),
        format!(".{whole}"),
        format!("{whole}.{signature}"),
        format!("{head}.{claims}.{signature}.."),
        format!("{whole}="),
        format!("{whole}=="),
        format!("{head}=.{claims}.{signature}"),
        format!("{head}.{claims}=.{signature}"),
        format!("{head}.{claims}.{padded}"),
        format!("{head}.{claims}.{zeros}"),
        format!("{head}.{claims}.{psychic}"),
        format!("{head} .{claims}.{signature}"),
        format!("{head}. {claims}.{signature}"),
        format!("{whole}, {whole}"),
        format!("{whole} {whole}"),
        format!("\"{whole}\""),
        whole.to_uppercase(),
        whole.to_lowercase(),
        whole.chars().rev().collect(),
        json,
        "x".repeat(5_000),
        format!("{whole}{}", "A".repeat(4_000)),
        format!("{}.{claims}.{signature}", "A".repeat(4_000)),
        format!("{whole}%00"),
        format!("{whole}\t"),
        format!("{head}.{claims}.{signature}{signature}"),
    ];
    // A header's value may end in spaces, which are not part of it.
    texts.retain(|text| text.trim() != whole);
    texts.extend(
        (1..signature.len()).map(|length| format!("{head}.{claims}.{}", &signature[..length])),
    );
    for text in texts {
        let name = format!("the shape {text:.60}");
        all.push(Forged { name, token: text.into() });
    }
}

/// The genuine token with one character changed in its lowest bit of the alphabet, also where the
/// decoded bytes stay the same.
fn bits(genuine: &Genuine, step: usize, all: &mut Vec<Forged>) {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let whole = format!("{}.{}.{}", genuine.head, genuine.claims, genuine.signature).into_bytes();
    let last = whole.len() - 1;
    for place in (0..whole.len()).step_by(step).chain([last]) {
        let Some(digit) = ALPHABET.iter().position(|digit| *digit == whole[place]) else {
            continue;
        };
        for mask in [1, 2, 32] {
            let mut token = whole.clone();
            token[place] = ALPHABET[digit ^ mask];
            all.push(Forged { name: format!("byte {place} changed by {mask}"), token });
        }
    }
}

/// Tokens that are genuine elsewhere.
async fn kinds(partner: &Caller, all: &mut Vec<Forged>) {
    let body = json!({
        "username": partner.secret("username"), "password": partner.secret("password"),
    });
    let answer = partner.anonymous(Method::POST, "/api/v1/authenticate").json(&body).send().await;
    let refresh = answer.json()["refreshToken"].as_str().unwrap().to_owned();
    let quote = rampart_tests::buyer::quote(partner).await["quote"].as_str().unwrap().to_owned();
    let mut add = |name: &str, token: &str| {
        all.push(Forged { name: name.to_owned(), token: token.as_bytes().to_vec() });
    };
    add("a refresh token", &refresh);
    add("a quote", &quote);
    for secret in ["apiKey", "password", "username", "signingSecret", "webhookSecret", "id"] {
        add(secret, partner.secret(secret));
    }
}
