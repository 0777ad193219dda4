//! Validity and lifetime of tokens. Forged tokens are in [`attacks`].

mod attacks;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::jwt::{self, Authority, Kind};
use super::{Holder, TOKEN_BYTES_MAX, Tokens};
use crate::platform::crypto::MasterKey;
use crate::platform::error::{Code, Error};
use crate::platform::settings::Lifetimes;
use rampart_types::{ClientId, UserKey};

/// Noon of day 20 000, in seconds since 1970.
const NOON: i64 = 20_000 * 86_400 + 43_200;
const HOUR: i64 = 3_600;
const KINDS: [Kind; 2] = [Kind::Client, Kind::User];

fn master() -> MasterKey {
    MasterKey::from_bytes(&[7; 32])
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

/// The keys and lifetime of an edge at this time.
fn edge(keys: &MasterKey, seconds: i64) -> Authority<'_> {
    Authority { keys, now: at(seconds), lifetime: HOUR }
}

/// An id with this time in it.
fn id_at(seconds: i64, milliseconds: i64) -> Uuid {
    let millis = u64::try_from(seconds * 1_000 + milliseconds).unwrap();
    uuid::Builder::from_unix_timestamp_millis(millis, &[5; 10]).into_uuid()
}

fn holder(kind: Kind) -> Holder {
    let (client, user) = (Uuid::from_u128(1), Uuid::from_u128(2));
    match kind {
        Kind::Client => Holder::Client(ClientId::from(client)),
        Kind::User => Holder::User(UserKey { client: client.into(), user: user.into() }),
    }
}

/// A valid token, issued at this second.
fn token(kind: Kind, issued: i64) -> String {
    let keys = master();
    jwt::issue(&edge(&keys, issued), id_at(issued, 0), holder(kind)).unwrap()
}

/// Verifies a token without a cache.
fn verify(kind: Kind, token: &str, now: i64) -> Result<Holder, Error> {
    let keys = master();
    let tokens = Tokens::new(&Lifetimes::default());
    tokens.verify(&edge(&keys, now), kind, token).map(|verified| verified.holder)
}

fn invalid(kind: Kind) -> Code {
    if kind == Kind::Client { Code::ClientTokenInvalid } else { Code::UserTokenInvalid }
}

fn expired(kind: Kind) -> Code {
    if kind == Kind::Client { Code::ClientTokenExpired } else { Code::UserTokenExpired }
}

/// Header and claims of a token as JSON.
fn parts(token: &str) -> (Value, Value) {
    let mut parts = token.split('.').map(|part| attacks::decode(part).unwrap_or_default());
    let mut json = || serde_json::from_slice(&parts.next().unwrap()).unwrap();
    (json(), json())
}

#[test]
fn a_token_has_the_claims_of_the_contract() {
    let (header, claims) = parts(&token(Kind::Client, NOON));
    assert_eq!(header, json!({"alg": "HS256", "typ": "client+jwt", "kid": "20000"}));
    assert_eq!(claims["iss"], "rampart");
    assert_eq!(claims["aud"], "rampart-api");
    assert_eq!(claims["sub"], Uuid::from_u128(1).to_string());
    assert_eq!(claims["jti"], id_at(NOON, 0).to_string());
    assert_eq!((claims["iat"].as_i64(), claims["exp"].as_i64()), (Some(NOON), Some(NOON + HOUR)));
    let (header, claims) = parts(&token(Kind::User, NOON));
    assert_eq!(header["typ"], "user+jwt");
    assert_eq!(claims["sub"], Uuid::from_u128(2).to_string());
    assert_eq!(claims["client_id"], Uuid::from_u128(1).to_string());
}

#[test]
fn a_token_proves_its_holder_to_the_end_of_its_last_second() {
    for kind in KINDS {
        let token = token(kind, NOON);
        for now in [NOON, NOON + 1, NOON + HOUR - 1, NOON + HOUR] {
            assert_eq!(verify(kind, &token, now).unwrap(), holder(kind), "{now}");
        }
        for now in [NOON + HOUR + 1, NOON + 2 * HOUR, NOON + 30 * 24 * HOUR] {
            assert!(verify(kind, &token, now).unwrap_err().is(expired(kind)), "{now}");
        }
        let much_later = NOON + 367 * 24 * HOUR;
        assert!(verify(kind, &token, much_later).unwrap_err().is(invalid(kind)));
    }
}

#[test]
fn a_token_lives_on_past_midnight() {
    let before_midnight = 20_001 * 86_400 - 10;
    let token = token(Kind::Client, before_midnight);
    assert!(verify(Kind::Client, &token, before_midnight + HOUR).is_ok());
    assert!(verify(Kind::Client, &token, before_midnight + HOUR + 1).is_err());
}

#[test]
fn another_edge_may_be_ahead_by_five_seconds() {
    for issued in [NOON, 20_001 * 86_400] {
        let token = token(Kind::Client, issued);
        assert!(verify(Kind::Client, &token, issued - 5).is_ok());
        assert!(verify(Kind::Client, &token, issued - 6).unwrap_err().is(Code::ClientTokenInvalid));
    }
}

#[test]
fn one_kind_is_never_accepted_as_the_other() {
    let keys = master();
    let tokens = Tokens::new(&Lifetimes::default());
    for (kind, other) in [(Kind::Client, Kind::User), (Kind::User, Kind::Client)] {
        let token = token(kind, NOON);
        let refused = |edge| tokens.verify(&edge, other, &token).unwrap_err().is(invalid(other));
        assert!(refused(edge(&keys, NOON)));
        assert!(tokens.verify(&edge(&keys, NOON), kind, &token).is_ok());
        assert!(refused(edge(&keys, NOON)), "cached as its own kind only");
        assert!(refused(edge(&keys, NOON + 2 * HOUR)), "nor reported as expired");
    }
}

#[test]
fn a_cached_token_still_expires() {
    let keys = master();
    let tokens = Tokens::new(&Lifetimes::default());
    let token = token(Kind::Client, NOON);
    let verify_cached = |now| tokens.verify(&edge(&keys, now), Kind::Client, &token);
    assert!(verify_cached(NOON).is_ok());
    assert!(verify_cached(NOON + HOUR).is_ok());
    assert!(verify_cached(NOON + HOUR + 1).unwrap_err().is(Code::ClientTokenExpired));
}

#[test]
fn a_shortened_lifetime_applies_to_issued_tokens() {
    let keys = master();
    let token = token(Kind::Client, NOON);
    let short = |now| Authority { lifetime: 60, ..edge(&keys, now) };
    assert!(jwt::verify(&short(NOON + 60), Kind::Client, &token).is_ok());
    assert!(
        jwt::verify(&short(NOON + 61), Kind::Client, &token)
            .unwrap_err()
            .is(Code::ClientTokenExpired)
    );
}

#[test]
fn the_time_of_issue_is_known_to_the_millisecond() {
    let keys = master();
    let token = jwt::issue(&edge(&keys, NOON), id_at(NOON, 789), holder(Kind::Client)).unwrap();
    let verified = jwt::verify(&edge(&keys, NOON), Kind::Client, &token).unwrap();
    assert_eq!(verified.issued_at, at(NOON) + TimeDelta::milliseconds(789));
}

#[test]
fn a_token_of_another_master_key_is_invalid() {
    let keys = MasterKey::from_bytes(&[8; 32]);
    let token = token(Kind::Client, NOON);
    assert!(
        jwt::verify(&edge(&keys, NOON), Kind::Client, &token)
            .unwrap_err()
            .is(Code::ClientTokenInvalid)
    );
}

#[test]
fn a_token_is_far_below_the_length_limit() {
    assert!(token(Kind::User, NOON).len() < TOKEN_BYTES_MAX / 4);
}

proptest! {
    #[test]
    fn garbage_is_refused_without_a_panic(text in "\\PC{0,200}", dotted in "[A-Za-z0-9_.=-]{0,300}") {
        for text in [text, dotted] {
            prop_assert!(verify(Kind::Client, &text, NOON).unwrap_err().is(Code::ClientTokenInvalid));
        }
    }

    #[test]
    fn signed_garbage_is_refused(header in "\\PC{0,80}", claims in "\\PC{0,80}") {
        let forged = attacks::sign(&header, &claims);
        prop_assert!(verify(Kind::Client, &forged, NOON).unwrap_err().is(Code::ClientTokenInvalid));
    }

    #[test]
    fn a_token_with_any_change_is_refused(index in any::<prop::sample::Index>(), with in "[A-Za-z0-9_.=-]?") {
        let genuine = token(Kind::Client, NOON);
        let index = index.index(genuine.len());
        let changed = format!("{}{with}{}", &genuine[..index], &genuine[index + 1..]);
        prop_assume!(changed != genuine);
        prop_assert!(verify(Kind::Client, &changed, NOON).unwrap_err().is(Code::ClientTokenInvalid));
    }
}
