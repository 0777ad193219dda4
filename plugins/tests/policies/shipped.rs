//! Decisions of the shipped guests.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rampart_plugins::contract::PolicyKind;
use rampart_plugins::contract::{
    Algorithm, ConfigEntry, ConfigValue, Field, Method, MethodKind, Purpose, Rejection, Side,
    SignedPayload, Verdict,
};
use rampart_plugins::{
    BoundKey, CallClass, Charge, FeePolicy, FeeSchedule, KeyRing, MethodOrderPolicy, Policy,
    Ranking, SignaturePolicy, VerificationKey,
};
use ring::signature::{Ed25519KeyPair, KeyPair};

use crate::{ENGINE, NOW, admitted, context, fee_policy, guest, offered, purchase, text, texts};

/// Each is compiled once for all tests of its decisions.
static TIERED_FEE: LazyLock<FeePolicy> = LazyLock::new(|| fee_policy(&ENGINE, "tiered-fee"));

static COUNTRY_ORDER: LazyLock<MethodOrderPolicy> =
    LazyLock::new(|| match admitted(PolicyKind::MethodOrder, "country-order", Vec::new()).policy {
        Policy::MethodOrder(policy) => policy,
        _ => panic!("country-order is another kind of policy"),
    });

static ED25519_OFFER: LazyLock<SignaturePolicy> =
    LazyLock::new(|| match admitted(PolicyKind::Signature, "ed25519-offer", Vec::new()).policy {
        Policy::Signature(policy) => policy,
        _ => panic!("ed25519-offer is another kind of policy"),
    });

fn price(config: &[ConfigEntry], request: &rampart_plugins::contract::FeeRequest) -> FeeSchedule {
    let report = TIERED_FEE.price(CallClass::Live, &context(), config, request);
    report.outcome.expect("it has a price")
}

#[test]
fn a_fee_falls_with_the_amount() {
    for (amount, ppm, rule) in [
        ("0.01", 15_000, "tier-1"),
        ("499.99", 15_000, "tier-1"),
        ("500.00", 10_000, "tier-2"),
        ("5000", 5_000, "tier-3"),
    ] {
        let schedule = price(&[], &purchase(amount));
        let expected = Charge::Rate { ppm, at_least: None, at_most: None };
        assert_eq!(schedule.lines[0].charge, expected, "{amount}");
        assert_eq!(schedule.rule, rule);
        assert_eq!(schedule.spread_ppm, 0);
    }
}

#[test]
fn a_promotion_reduces_the_rate_and_removes_the_floor() {
    let minimum = ConfigEntry { key: "minimum".into(), value: ConfigValue::Decimal("1.50".into()) };
    let config = [minimum, texts("promotions", &["SPRING=5000", "FREE=1000000"])];
    let with_code = |code: &str| {
        let mut request = purchase("100");
        request.promo_code = Some(code.into());
        let schedule = price(&config, &request);
        (schedule.lines[0].charge, schedule.rule)
    };
    let rate = |ppm| Charge::Rate { ppm, at_least: None, at_most: None };
    assert_eq!(with_code("SPRING"), (rate(10_000), "tier-1-promotion".into()));
    assert_eq!(with_code("FREE"), (rate(0), "tier-1-promotion".into()));

    let floor = "1.50".parse().ok();
    let usual = Charge::Rate { ppm: 15_000, at_least: floor, at_most: None };
    assert_eq!(with_code("spring"), (usual, "tier-1".into()));
}

#[test]
fn a_sale_has_one_rate() {
    let mut request = purchase("0.5");
    request.side = Side::Sell;
    let rate = ConfigEntry { key: "sell-rate".into(), value: ConfigValue::Integer(7_500) };
    let schedule = price(&[rate], &request);
    let expected = Charge::Rate { ppm: 7_500, at_least: None, at_most: None };
    assert_eq!((schedule.lines[0].charge, schedule.rule.as_str()), (expected, "sale"));
}

#[test]
fn tiers_that_do_not_ascend_are_refused_at_admission() {
    for tiers in [&["0=100", "0=50"][..], &["10=100"], &["0=1%"], &["0=2000000"]] {
        let config = vec![texts("tiers", tiers)];
        let result = ENGINE.admit(PolicyKind::Fee, guest("tiered-fee"), config);
        let reason = result.err().expect("it cannot be used").to_string();
        assert!(reason.contains("`tiers`"), "{reason}");
    }
}

#[test]
fn a_fee_in_c_falls_with_the_volume() {
    let decimal = |key: &str, value: &str| ConfigEntry {
        key: key.into(),
        value: ConfigValue::Decimal(value.into()),
    };
    let policy = fee_policy(&ENGINE, "volume-fee");
    for (volume, from, ppm, rule) in [
        (None, None, 15_000, "usual"),
        (Some("9999.99"), None, 15_000, "usual"),
        (Some("10000.00"), None, 7_500, "large-volume"),
        (Some("0.30"), Some("0.3"), 7_500, "large-volume"),
        (Some("0.29999"), Some("0.3"), 15_000, "usual"),
        (Some("1200"), Some("999.5"), 7_500, "large-volume"),
    ] {
        let mut request = purchase("100");
        request.volume_30d = volume.map(Into::into);
        let config: Vec<_> = from.map(|from| decimal("from", from)).into_iter().collect();
        let schedule = policy
            .price(CallClass::Live, &context(), &config, &request)
            .outcome
            .expect("it has a price");
        let expected = Charge::Rate { ppm, at_least: None, at_most: None };
        assert_eq!(schedule.lines[0].charge, expected, "{volume:?} from {from:?}");
        assert_eq!(schedule.rule, rule);
    }
}

#[test]
fn a_policy_in_c_refuses_a_configuration_with_its_own_message() {
    let rate = ConfigEntry { key: "rate".into(), value: ConfigValue::Integer(7_000) };
    let refused = ENGINE.admit(PolicyKind::Fee, guest("volume-fee"), vec![rate]).err();
    let expected = "the policy does not accept the configuration: \
                    `lower-rate` must not be above `rate`";
    assert_eq!(refused.expect("it cannot be used").to_string(), expected);
}

fn rank(config: &[ConfigEntry], country: &str, last_used: Option<&str>) -> Ranking {
    let method = |id: &str, kind| Method {
        id: id.into(),
        kind,
        currencies: vec!["EUR".into()],
        success_rate: None,
        cost: None,
        settles_in: None,
    };
    let mut request = offered(vec![
        method("walletpay", MethodKind::Wallet),
        method("creditCard", MethodKind::Card),
        method("bankTransfer", MethodKind::BankTransfer),
        method("instant1", MethodKind::InstantTransfer),
    ]);
    request.user.country = country.into();
    request.user.returning = last_used.is_some();
    request.user.last_used = last_used.map(Into::into);
    COUNTRY_ORDER
        .rank(CallClass::Live, &context(), config, &request)
        .outcome
        .expect("it has an order")
}

fn ids(ranking: &Ranking) -> Vec<&str> {
    ranking.shown.iter().map(|placement| placement.id.as_str()).collect()
}

#[test]
fn the_order_is_that_of_the_country() {
    let german = rank(&[], "DE", None);
    assert_eq!(ids(&german), ["instant1", "bankTransfer", "creditCard", "walletpay"]);
    assert_eq!(german.rule, "country-de");
    assert_eq!(german.shown[0].badge.as_deref(), Some("recommended"));

    let other = rank(&[], "US", None);
    assert_eq!(ids(&other), ["creditCard", "walletpay", "instant1", "bankTransfer"]);
    assert_eq!(other.rule, "any-country");
}

#[test]
fn the_method_last_used_comes_first() {
    let ranking = rank(&[], "DE", Some("walletpay"));
    assert_eq!(ids(&ranking), ["walletpay", "instant1", "bankTransfer", "creditCard"]);
    assert_eq!(ranking.shown[0].badge.as_deref(), Some("last-used"));
}

#[test]
fn a_hidden_method_is_gone_unless_nothing_would_be_left() {
    let ranking = rank(&[texts("hide", &["creditCard"])], "DE", None);
    assert_eq!(ids(&ranking), ["instant1", "bankTransfer", "walletpay"]);

    let all = ["bankTransfer", "creditCard", "instant1", "walletpay"];
    let ranking = rank(&[texts("hide", &all)], "DE", None);
    assert_eq!(ids(&ranking), ["walletpay", "creditCard", "bankTransfer", "instant1"]);
}

fn pair() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("32 bytes are a seed")
}

/// The fixed part of an Ed25519 `SubjectPublicKeyInfo` (RFC 8410).
const ED25519_INFO: &[u8] = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";

fn ring(name: &str, not_after: Option<u32>) -> KeyRing {
    let info = [ED25519_INFO, pair().public_key().as_ref()].concat();
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        STANDARD.encode(info)
    );
    let key = VerificationKey::parse(Algorithm::Ed25519, &pem).expect("it is a key");
    KeyRing::new([(name.to_owned(), BoundKey { key, not_before: None, not_after })])
}

/// An offer whose signature is over `covered`, signed at `at`.
fn offer(covered: &str, at: u32) -> SignedPayload {
    let field = |name: &str, value: &str| Field { name: name.into(), value: value.into() };
    let signature = pair().sign(format!("{covered}t={at}&n=nonce-01").as_bytes());
    SignedPayload {
        purpose: Purpose::Offer,
        fields: vec![
            field("fee", "1.5"),
            field("partnerOrderIdentifier", "not covered"),
            field("returnUrl", "https://partner.example/ü"),
        ],
        claimed: Some(format!("t={at},n=nonce-01,s={}", STANDARD.encode(signature))),
        method: "POST".into(),
        path: "/api/v2/buy/offer".into(),
        query: String::new(),
        headers: Vec::new(),
        body: Vec::new(),
    }
}

const COVERED: &str = "fee=1.5&returnUrl=https%3A%2F%2Fpartner.example%2F%C3%BC&";

fn verdict(config: &[ConfigEntry], payload: &SignedPayload, keys: &KeyRing) -> Verdict {
    let report = ED25519_OFFER.verify(CallClass::Live, &context(), config, payload, keys);
    report.outcome.expect("it has a verdict")
}

#[test]
fn a_signed_offer_is_authentic_and_names_its_nonce() {
    let keys = ring("partner-ed25519", None);
    match verdict(&[], &offer(COVERED, NOW - 299), &keys) {
        Verdict::Authentic(signer) => {
            assert_eq!(signer.key, "partner-ed25519");
            assert_eq!(signer.algorithm, Algorithm::Ed25519);
            assert_eq!(signer.signed_at, Some(NOW - 299));
            assert_eq!(signer.replay_token.as_deref(), Some("nonce-01"));
        }
        Verdict::Rejected(rejection) => panic!("{rejection:?}"),
    }
}

#[test]
fn an_offer_changed_after_signing_is_refused() {
    let keys = ring("partner-ed25519", None);
    let changes: [fn(&mut SignedPayload); 3] = [
        |offer| offer.fields[0].value = "2.5".into(),
        |offer| offer.fields.truncate(2),
        |offer| offer.claimed = offer.claimed.take().map(|c| c.replace("nonce-01", "nonce-02")),
    ];
    for change in changes {
        let mut offer = offer(COVERED, NOW);
        change(&mut offer);
        assert_eq!(verdict(&[], &offer, &keys), Verdict::Rejected(Rejection::BadSignature));
    }
}

#[test]
fn an_offer_is_refused_for_its_own_reason() {
    let keys = ring("partner-ed25519", None);
    let refused = |offer: &SignedPayload, keys: &KeyRing, expected| {
        assert_eq!(verdict(&[], offer, keys), Verdict::Rejected(expected));
    };
    refused(&offer(COVERED, NOW - 301), &keys, Rejection::Stale);
    refused(&offer(COVERED, NOW + 301), &keys, Rejection::Stale);
    refused(&offer(COVERED, NOW), &ring("another", None), Rejection::UnknownKey);
    refused(&offer(COVERED, NOW), &ring("partner-ed25519", Some(NOW - 1)), Rejection::UnknownKey);
    refused(&offer(COVERED, NOW), &KeyRing::default(), Rejection::UnknownKey);

    let mut unsigned = offer(COVERED, NOW);
    unsigned.claimed = None;
    refused(&unsigned, &keys, Rejection::MissingSignature);
    for claimed in ["", "t=1", "t=01,n=nonce-01,s=AAAA", "t=1,n=short,s=AAAA", "t=1,n=nonce-01,s=!"]
    {
        unsigned.claimed = Some(claimed.into());
        refused(&unsigned, &keys, Rejection::MalformedSignature);
    }
}

#[test]
fn the_key_and_the_tolerance_are_the_operators() {
    let tolerance = ConfigEntry { key: "tolerance".into(), value: ConfigValue::Integer(10) };
    let config = [text("key", "backup"), tolerance];
    let keys = ring("backup", None);
    assert!(matches!(verdict(&config, &offer(COVERED, NOW - 10), &keys), Verdict::Authentic(_)));
    assert_eq!(
        verdict(&config, &offer(COVERED, NOW - 11), &keys),
        Verdict::Rejected(Rejection::Stale)
    );
}

#[test]
fn an_assertion_covers_its_order_and_its_reason() {
    let keys = ring("partner-ed25519", None);
    let assertion = |covered: &str| {
        let field = |name: &str, value: &str| Field { name: name.into(), value: value.into() };
        let mut assertion = offer(covered, NOW);
        assertion.fields =
            vec![field("orderId", "7"), field("reason", "seen"), field("walletAddress", "0xab")];
        assertion
    };
    let whole = assertion("orderId=7&reason=seen&walletAddress=0xab&");
    assert!(matches!(verdict(&[], &whole, &keys), Verdict::Authentic(_)));
    // The signature of an offer to the same wallet.
    let part = assertion("walletAddress=0xab&");
    assert_eq!(verdict(&[], &part, &keys), Verdict::Rejected(Rejection::BadSignature));
}

#[test]
fn an_onboarding_link_covers_all_its_parameters() {
    let keys = ring("partner-ed25519", None);
    let covered = format!("fee=1.5&partnerOrderIdentifier=not%20covered&{}", &COVERED[8..]);
    let mut link = offer(&covered, NOW);
    link.purpose = Purpose::Onboarding;
    assert!(matches!(verdict(&[], &link, &keys), Verdict::Authentic(_)));
}
