use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use rust_decimal::Decimal;
use uuid::Uuid;

use std::sync::Arc;

use super::*;
use crate::platform::clock::Clock;
use crate::platform::crypto::day_key::DayKey;
use crate::platform::crypto::jwe::SealingKey;
use rampart_types::{Chain, DestinationTag, FeeBreakdown, TagKind, WalletAddress};

/// Noon of a day, so that seconds around it are of one day.
const NOON: i64 = 20_000 * SECONDS_PER_DAY + SECONDS_PER_DAY / 2;

fn keys() -> MasterKey {
    MasterKey::from_bytes(&[7; 32])
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

fn client(number: u128) -> ClientId {
    Uuid::from_u128(number).into()
}

fn user(number: u128) -> UserId {
    Uuid::from_u128(number).into()
}

fn quote() -> Quote {
    let address = "rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh";
    Quote {
        id: Uuid::from_u128(3).into(),
        client: client(1),
        user: None,
        side: Side::Buy,
        pair: "XRP-EUR".parse().unwrap(),
        payment_method: "creditCard".to_owned(),
        fiat: Decimal::new(10_000, 2),
        crypto: Decimal::new(47_12345678, 8),
        price: Decimal::new(2, 0),
        fees: FeeBreakdown { spread: Decimal::new(575, 2), ..FeeBreakdown::default() },
        partner_fee_percentage: Decimal::new(15, 1),
        requested_fee_percentage: None,
        wallet_address: Some(WalletAddress::parse(Chain::Xrp, address).unwrap()),
        destination_tag: Some(DestinationTag::parse(TagKind::Number, "12").unwrap()),
        country: Some("NL".parse().unwrap()),
        is_estimated: false,
        policy_decisions: serde_json::json!([{"policy": "fee", "version": 3, "fuel": 1234}]),
        catalogue_revision: 42,
        fee_rules: Some(vec![1_u8, 2, 3].into()),
        issued_at: at(NOON),
        expires_at: at(NOON + 300),
    }
}

fn sealed(quote: &Quote) -> Result<String> {
    let key = DayKey::default().get(&keys(), day_of(quote.issued_at), quote.client)?;
    key.seal(&Clock::system(), claims::write(quote)?)
}

/// Under the key of one day and the name of another.
fn sealed_as(name: i64, day: i64, plain: &[u8]) -> String {
    let key = keys().derive(Purpose::Quotes { day, client: client(1).uuid() }).unwrap();
    SealingKey::new(&name.to_string(), &key)
        .unwrap()
        .seal(&Clock::system(), plain.to_vec())
        .unwrap()
}

fn open_at(seconds: i64, token: &str) -> Result<Quote> {
    open_with(&keys(), at(seconds), client(1), None, Side::Buy, token)
}

fn assert_refused(token: &str) {
    let error = open_at(NOON, token).unwrap_err();
    assert!(error.is(Code::QuoteInvalid), "{error}: {token}");
}

#[test]
fn fuzz_quote_tokens() {
    let small = Quote { wallet_address: None, destination_tag: None, country: None, ..quote() };
    let sealed = [quote(), small].map(|quote| sealed(&quote).unwrap().into_bytes());
    for token in &sealed {
        open_at(NOON, std::str::from_utf8(token).unwrap()).unwrap();
    }
    rampart_fuzz::fuzz_with("quote-tokens", &sealed, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        match open_at(NOON, text) {
            Ok(quote) => assert!(sealed.iter().any(|token| token == input), "forged: {quote:?}"),
            Err(error) => assert!(error.is(Code::QuoteInvalid), "{error}"),
        }
    });
}

#[test]
fn what_is_sealed_opens_unchanged() {
    let token = sealed(&quote()).unwrap();
    assert_eq!(open_at(NOON, &token).unwrap(), quote());
    let memo = DestinationTag::parse(TagKind::Memo, "12").unwrap();
    let other = Quote { destination_tag: Some(memo), user: Some(user(9)), ..quote() };
    let token = sealed(&other).unwrap();
    assert_eq!(open_at(NOON, &token).unwrap(), other);
}

#[test]
fn no_altered_byte_is_accepted() {
    let token = sealed(&quote()).unwrap();
    for at in 0..token.len() {
        for mask in [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x03, 0x7f] {
            let mut bytes = token.clone().into_bytes();
            bytes[at] ^= mask;
            assert_refused(str::from_utf8(&bytes).unwrap());
        }
        assert_refused(&[&token[..at], &token[at + 1..]].concat());
        assert_refused(&[&token[..at], "A", &token[at..]].concat());
        assert_refused(&token[..at]);
    }
    assert_refused(&format!("{token} "));
    assert_refused(&format!("{token}="));
}

#[test]
fn parts_of_two_tokens_do_not_mix() {
    let (one, two) = (sealed(&quote()).unwrap(), sealed(&quote()).unwrap());
    assert_ne!(one, two);
    let (one, two): (Vec<&str>, Vec<&str>) = (one.split('.').collect(), two.split('.').collect());
    for part in 2..5 {
        let mut mixed = one.clone();
        mixed[part] = two[part];
        assert_refused(&mixed.join("."));
    }
    for (left, right) in (0..5).flat_map(|left| (0..left).map(move |right| (left, right))) {
        let mut swapped = one.clone();
        swapped.swap(left, right);
        assert_refused(&swapped.join("."));
    }
}

#[test]
fn a_signed_token_is_no_sealed_one() {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let claims = r#"{"jti":"00000000-0000-0000-0000-000000000003","side":"buy"}"#;
    let header = part(r#"{"alg":"HS256","typ":"quote+jwe","kid":"20000"}"#);
    assert_refused(&format!("{header}.{}.{}", part(claims), part("signature")));
    let header = part(r#"{"alg":"dir","enc":"A256GCM","typ":"quote+jwe","kid":"20000"}"#);
    assert_refused(&format!("{header}.{}.{}", part(claims), part("signature")));
    assert_refused(claims);
    assert_refused("");
}

#[test]
fn a_quote_is_of_its_client_and_its_master_key_alone() {
    let token = sealed(&quote()).unwrap();
    let other = open_with(&keys(), at(NOON), client(2), None, Side::Buy, &token);
    assert!(other.unwrap_err().is(Code::QuoteInvalid));
    let master = MasterKey::from_bytes(&[8; 32]);
    let other = open_with(&master, at(NOON), client(1), None, Side::Buy, &token);
    assert!(other.unwrap_err().is(Code::QuoteInvalid));
    // Sealed with the right key for the wrong client, which only we could do.
    let other = Quote { client: client(2), ..quote() };
    assert_refused(&sealed_as(20_000, 20_000, &claims::write(&other).unwrap()));
}

/// Edges of two versions read each other's quotes only as long as this holds. If it is meant to
/// change, so does the format's number.
#[test]
fn claims_are_written_as_before() {
    let before = [
        "02100000000000000000000000000000000310000000000000000000000000000000010080b8b5",
        "f6ca64c087daf6ca6400075852502d4555520a63726564697443617264a09c01029cc1858e2308",
        "04000000000000000000fe080200001e010001037872702272456238544b336742676b3561755a",
        "6b77633673486e777247564a48384475614c680102313201024e4c00405b7b22706f6c69637922",
        "3a22666565222c2276657273696f6e223a332c226675656c223a313233347d2c7b226665655275",
        "6c6573223a22303130323033227d5d54",
    ];
    assert_eq!(hex::encode(claims::write(&quote()).unwrap()), before.concat());
}

#[test]
fn claims_of_the_format_before_are_of_no_revision() {
    let mut claims = claims::write(&quote()).unwrap();
    claims[0] = 1;
    claims.pop();
    let read = open_at(NOON, &sealed_as(20_000, 20_000, &claims)).unwrap();
    assert_eq!(read, Quote { catalogue_revision: 0, ..quote() });
}

#[test]
fn a_quote_of_an_edge_that_kept_no_rules_has_none() {
    let without_rules = Quote { fee_rules: None, ..quote() };
    let claims = claims::write(&without_rules).unwrap();
    let read = open_at(NOON, &sealed_as(20_000, 20_000, &claims)).unwrap();
    assert_eq!(read, without_rules);
}

#[test]
fn claims_of_another_form_are_refused() {
    let claims = claims::write(&quote()).unwrap();
    assert!(open_at(NOON, &sealed_as(20_000, 20_000, &claims)).is_ok());
    let mut other = claims.clone();
    other[0] ^= 4;
    for bad in [&other, &claims[..claims.len() - 1], &[&claims[..], b"x"].concat(), b"", b"{}"] {
        assert_refused(&sealed_as(20_000, 20_000, bad));
    }
}

#[test]
fn the_key_of_another_day_opens_nothing() {
    let claims = claims::write(&quote()).unwrap();
    for (name, day) in [(20_000, 19_999), (19_999, 20_000), (19_998, 19_998), (20_001, 20_001)] {
        assert_refused(&sealed_as(name, day, &claims));
    }
}

#[test]
fn the_key_of_a_day_is_kept_for_that_day() {
    let cached = DayKey::default();
    let of = |day| cached.get(&keys(), day, client(1)).unwrap();
    let first = of(20_000);
    assert!(Arc::ptr_eq(&first, &of(20_000)));
    let token = of(20_001).seal(&Clock::system(), Vec::new()).unwrap();
    assert!(Sealed::parse(&token, "20001").is_some());
    assert!(!Arc::ptr_eq(&first, &of(20_000)));
}

#[test]
fn a_quote_ends_when_it_says_and_is_not_from_the_future() {
    let token = sealed(&quote()).unwrap();
    assert!(open_at(NOON + 299, &token).is_ok());
    assert!(open_at(NOON + 300, &token).unwrap_err().is(Code::QuoteExpired));
    assert!(open_at(NOON + SECONDS_PER_DAY, &token).unwrap_err().is(Code::QuoteExpired));
    assert!(open_at(NOON + 2 * SECONDS_PER_DAY, &token).unwrap_err().is(Code::QuoteInvalid));
    assert!(open_at(NOON - CLOCK_SKEW_SECONDS, &token).is_ok());
    assert!(open_at(NOON - CLOCK_SKEW_SECONDS - 1, &token).unwrap_err().is(Code::QuoteInvalid));
}

#[test]
fn a_quote_lives_across_midnight_also_where_clocks_differ() {
    let midnight = 20_001 * SECONDS_PER_DAY;
    for issued in [midnight - 1, midnight] {
        let times = Quote { issued_at: at(issued), expires_at: at(issued + 300), ..quote() };
        let token = sealed(&times).unwrap();
        for now in [midnight - 2, midnight + 2, midnight + 298] {
            assert!(open_at(now, &token).is_ok(), "issued {issued}, now {now}");
        }
    }
}

#[test]
fn the_other_side_has_its_own_codes_after_expiry() {
    for (side, wanted, code) in
        [(Side::Sell, Side::Buy, Code::NotBuyQuote), (Side::Buy, Side::Sell, Code::NotSellQuote)]
    {
        let token = sealed(&Quote { side, ..quote() }).unwrap();
        let open = |now| open_with(&keys(), at(now), client(1), None, wanted, &token).unwrap_err();
        assert!(open(NOON).is(code));
        assert!(open(NOON + 300).is(Code::QuoteExpired));
    }
}

#[test]
fn a_quote_made_for_a_user_serves_no_other() {
    let open = |bound: Option<UserId>, caller| {
        let token = sealed(&Quote { user: bound, ..quote() }).unwrap();
        open_with(&keys(), at(NOON), client(1), caller, Side::Buy, &token).map(|quote| quote.user)
    };
    assert_eq!(open(Some(user(1)), Some(user(1))).unwrap(), Some(user(1)));
    assert_eq!(open(Some(user(1)), None).unwrap(), Some(user(1)));
    assert_eq!(open(None, Some(user(1))).unwrap(), None);
    assert!(open(Some(user(1)), Some(user(2))).unwrap_err().is(Code::QuoteInvalid));
}

#[test]
fn a_quote_bound_to_a_wallet_serves_no_other() {
    let wallet = |text| WalletAddress::parse(Chain::Xrp, text).unwrap();
    let tag = |text| DestinationTag::parse(TagKind::Number, text).unwrap();
    let (one, two) =
        (wallet("rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh"), wallet("rvYAfWj5gh67oV6fW32ZzP3Aw4Eubs59B"));
    let bound = quote();
    assert!(bound.check_wallet(&one, Some(&tag("12"))).is_ok());
    assert!(bound.check_wallet(&two, Some(&tag("12"))).unwrap_err().is(Code::QuoteInvalid));
    assert!(bound.check_wallet(&one, Some(&tag("13"))).unwrap_err().is(Code::QuoteInvalid));
    assert!(bound.check_wallet(&one, None).unwrap_err().is(Code::QuoteInvalid));
    let free = Quote { wallet_address: None, destination_tag: None, ..quote() };
    assert!(
        free.check_wallet(&two, None).is_ok() && free.check_wallet(&one, Some(&tag("1"))).is_ok()
    );
}

#[test]
fn a_usual_token_fits_a_header_or_a_form() {
    let token = sealed(&quote()).unwrap();
    assert!(token.len() < 600, "{}", token.len());
    assert!(token.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')));
}

proptest! {
    #[test]
    fn any_quote_opens_as_it_was(
        fiat: u32,
        crypto: u64,
        price in 1_i64..,
        scale in 0_u32..=18,
        spread: i32,
        named in any::<Option<u128>>(),
        life in 1_i64..=3_600,
        method in "[a-zA-Z0-9]{1,24}",
    ) {
        let quote = Quote {
            user: named.map(user),
            payment_method: method,
            fiat: Decimal::new(i64::from(fiat), 2),
            crypto: Decimal::from_i128_with_scale(i128::from(crypto), 8),
            price: Decimal::new(price, scale),
            fees: FeeBreakdown { spread: Decimal::new(i64::from(spread), 2), ..quote().fees },
            expires_at: at(NOON + life),
            ..quote()
        };
        let token = sealed(&quote).unwrap();
        prop_assert_eq!(open_at(NOON, &token).unwrap(), quote);
    }

    #[test]
    fn any_text_is_refused_without_a_panic(text in "\\PC{0,200}", parts in "[A-Za-z0-9_.-]{0,300}") {
        assert_refused(&text);
        assert_refused(&parts);
    }
}
