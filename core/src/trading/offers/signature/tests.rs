use bytes::Bytes;
use http::{HeaderMap, Method};
use proptest::prelude::*;

use super::*;
use crate::http::fields;
use crate::http::request::Head;
use crate::platform::crypto::Secret;

fn secret(text: &str) -> TimedSecret {
    TimedSecret { secret: Secret::new(text), valid_until: None }
}

fn sign(secret: &TimedSecret, text: &str) -> String {
    hex::encode(hmac::sign(&key(secret), text.as_bytes()))
}

fn fits(secrets: &[TimedSecret], text: &str, signature: &str) -> Result<()> {
    let now = DateTime::UNIX_EPOCH;
    check(secrets, now, text, signature)
}

fn signable(body: &str) -> Signable {
    let head = Head {
        method: Method::POST,
        path: "/api/v2/buy/offer".to_owned(),
        query: None,
        headers: HeaderMap::new(),
        peer: [127, 0, 0, 1].into(),
        client_certificate: None,
        request_id: "test".to_owned(),
    };
    Signable::read(&Input {
        head,
        body: Bytes::copy_from_slice(body.as_bytes()),
        upload: None,
        document: fields::parse(body.as_bytes()).unwrap(),
        params: Vec::new(),
        now: DateTime::UNIX_EPOCH,
        proven: http::Extensions::new(),
    })
}

#[test]
fn the_canonical_text_is_alphabetical_and_percent_encoded() {
    for (body, text) in [
        (r"{}", ""),
        (r#"{"walletAddress":"bc1q"}"#, "walletAddress=bc1q"),
        (
            r#"{"returnUrl":"https://shop.example/done?a=1&b=2","fee":1.50}"#,
            "fee=1.50&returnUrl=https%3A%2F%2Fshop.example%2Fdone%3Fa%3D1%26b%3D2",
        ),
        (
            r#"{"walletAddressTag":"a b+c~d_e-f.g","walletAddress":"rN7n",
                "returnUrl":"app:x","fee":0,"callbackUrl":"https://a.example/é"}"#,
            "callbackUrl=https%3A%2F%2Fa.example%2F%C3%A9&fee=0&returnUrl=app%3Ax\
             &walletAddress=rN7n&walletAddressTag=a%20b%2Bc~d_e-f.g",
        ),
        (r#"{"fee":1E0,"baseCurrency":"BTC","partnerOrderIdentifier":"x"}"#, "fee=1E0"),
        (r#"{"f\u0065e": 2.0e-1 , "returnUrl":null,"callbackUrl":""}"#, "fee=2.0e-1"),
        (r#"{"fee":"1","walletAddress":7}"#, ""),
    ] {
        assert_eq!(signable(body).canonical(), text, "{body}");
    }
}

#[test]
fn a_tag_alone_needs_no_signature() {
    assert!(!signable(r#"{"walletAddressTag":"1","returnUrl":null}"#).needs_signature());
    for body in [
        r#"{"walletAddress":"a"}"#,
        r#"{"fee":0}"#,
        r#"{"returnUrl":"app:x"}"#,
        r#"{"callbackUrl":"https://a.example"}"#,
    ] {
        assert!(signable(body).needs_signature(), "{body}");
    }
}

#[test]
fn the_signature_is_hmac_sha256_in_hex_or_base64() {
    // RFC 4231, test case 2.
    let (secrets, text) = ([secret("Jefe")], "what do ya want for nothing?");
    let hex = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert_eq!(sign(&secrets[0], text), hex);
    for good in [
        hex,
        "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=",
        "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM",
    ] {
        assert!(fits(&secrets, text, good).is_ok(), "{good}");
    }
    let upper = hex.to_uppercase();
    for bad in
        ["", "x", &upper, &hex[2..], "5bdc", "AAAA", "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEI="]
    {
        assert!(fits(&secrets, text, bad).unwrap_err().is(Code::SignatureInvalid), "{bad}");
    }
}

#[test]
fn every_live_secret_counts_and_no_other() {
    let until = |seconds| DateTime::from_timestamp(seconds, 0);
    let old = TimedSecret { valid_until: until(10), ..secret("old") };
    let over = TimedSecret { valid_until: until(0), ..secret("over") };
    let secrets = [secret("new"), old.clone(), over.clone()];
    let signed = |by: &TimedSecret| fits(&secrets, "fee=1", &sign(by, "fee=1"));
    assert!(signed(&secrets[0]).is_ok() && signed(&old).is_ok());
    assert!(signed(&over).unwrap_err().is(Code::SignatureInvalid));
    assert!(fits(&[over], "fee=1", "00").unwrap_err().is(Code::SigningSecretMissing));
    assert!(fits(&[], "fee=1", "00").unwrap_err().is(Code::SigningSecretMissing));
}

/// Values of the five covered fields, each set or not.
fn values() -> impl Strategy<Value = Vec<Option<String>>> {
    let value = proptest::option::of("[ -~é€]{1,12}");
    proptest::collection::vec(value, COVERED.len())
}

fn of(values: &[Option<String>]) -> String {
    let set = COVERED.iter().zip(values);
    canonical(set.filter_map(|(name, value)| Some((*name, value.as_deref()?))))
}

proptest! {
    #[test]
    fn a_change_of_any_covered_field_breaks_the_signature(
        values in values(), at in 0..COVERED.len(), other in proptest::option::of("[ -~é€]{1,12}"),
    ) {
        prop_assume!(values[at] != other);
        let secrets = [secret("s")];
        let signature = sign(&secrets[0], &of(&values));
        prop_assert!(fits(&secrets, &of(&values), &signature).is_ok());
        let mut changed = values;
        changed[at] = other;
        prop_assert!(fits(&secrets, &of(&changed), &signature).is_err());
    }

    #[test]
    fn a_signature_of_the_fields_in_another_order_is_wrong(
        a in "[ -~]{1,8}", b in "[ -~]{1,8}", other_secret in "[a-z]{2,8}",
    ) {
        let secrets = [secret("s")];
        let text = canonical([("returnUrl", a.as_str()), ("fee", b.as_str())]);
        prop_assert_eq!(&text, &canonical([("fee", b.as_str()), ("returnUrl", a.as_str())]));
        let (first, second) = text.split_once('&').unwrap();
        let swapped = format!("{second}&{first}");
        prop_assert!(fits(&secrets, &text, &sign(&secrets[0], &swapped)).is_err());
        prop_assert!(fits(&secrets, &text, &sign(&secret(&other_secret), &text)).is_err());
    }

    #[test]
    fn any_claimed_signature_is_answered(text in ".{0,100}") {
        prop_assert!(fits(&[secret("s")], "", &text).is_err());
    }
}
