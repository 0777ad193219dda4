//! The header for C: every input and output arrives in the field of its name.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rampart_plugins::contract::{
    Algorithm, ConfigEntry, ConfigType, ConfigValue, FeeKind, Field, Header, Level, Method,
    MethodKind, Money, PolicyKind, Purpose, RankRequest, Rejection, Side, SignedPayload, Stage,
    UserFacts, Verdict,
};
use rampart_plugins::{
    BoundKey, CallClass, Charge, FailureKind, KeyRing, LogLine, Policy, VerificationKey,
};
use ring::hmac;

use crate::{NOW, admitted, context, purchase, text, texts};

const SECRET: &[u8] = b"sixteen bytes or more of secret";

fn line(log: &[LogLine], level: Level) -> &str {
    assert_eq!(log.len(), 1);
    assert_eq!(log[0].level, level);
    &log[0].text
}

#[test]
fn every_field_of_a_fee_request_arrives_in_c_and_every_charge_comes_back() {
    let entry = |key: &str, value| ConfigEntry { key: key.into(), value };
    let config = vec![
        entry("decimal", ConfigValue::Decimal("-0.5".into())),
        entry("flag", ConfigValue::Flag(true)),
        entry("integer", ConfigValue::Integer(-42)),
        text("text", "a text"),
        texts("texts", &["é", ""]),
    ];
    let mirror = admitted(PolicyKind::Fee, "mirror-fee", config.clone());
    let fields: Vec<_> = mirror.info.config.iter().map(|f| (f.type_, f.required)).collect();
    let types = [
        (ConfigType::Decimal, false),
        (ConfigType::Flag, false),
        (ConfigType::Integer, true),
        (ConfigType::Text, false),
        (ConfigType::Texts, false),
    ];
    assert_eq!((fields, mirror.info.keys), (types.to_vec(), vec!["one".into(), "two".into()]));
    let Policy::Fee(policy) = mirror.policy else { panic!("another kind") };

    let mut context = context();
    context.attributes = vec![("a".into(), "b".into())];
    let mut request = purchase("99.90");
    request.stage = Stage::Order;
    request.side = Side::Sell;
    request.volume_30d = Some("1000.5".into());
    request.promo_code = Some("SPRING".into());
    let report = policy.price(CallClass::Live, &context, &config, &request);
    assert_eq!(
        line(&report.log, Level::Warn),
        "acme|r-1|1767225600|0|a|b|a text|-0.5|-42|1|é||1|1|99.90|EUR|BTC|0.00001|creditCard|DE|\
         basic|1|1000.5|1|SPRING|"
    );
    let schedule = report.outcome.expect("it has a price");
    let decimal = |text: &str| text.parse().expect("a decimal");
    let lines: Vec<_> =
        schedule.lines.iter().map(|line| (line.kind, line.code.as_str(), line.charge)).collect();
    let rate = Charge::Rate { ppm: -2_500, at_least: None, at_most: None };
    let (at_least, at_most) = (Some(decimal("-1.5")), Some(decimal("99.90")));
    let expected = [
        (FeeKind::Partner, "flat", Charge::Flat(decimal("0.25"))),
        (FeeKind::PaymentMethod, "rate", rate),
        (FeeKind::Partner, "bounded", Charge::Rate { ppm: -7, at_least, at_most }),
    ];
    assert_eq!(lines, expected);
    assert_eq!((schedule.spread_ppm, schedule.rule.as_str()), (-11, "mirrored"));

    request.country = "XX".into();
    let failure = policy
        .price(CallClass::Live, &context, &config, &request)
        .outcome
        .expect_err("no such country");
    assert_eq!(
        (failure.kind, &*failure.message),
        (FailureKind::Error, "unsupported: no such country")
    );
}

#[test]
fn every_field_of_a_rank_request_arrives_in_c_and_the_placements_come_back() {
    let mirror = admitted(PolicyKind::MethodOrder, "mirror-order", Vec::new());
    let Policy::MethodOrder(policy) = mirror.policy else { panic!("another kind") };
    let mut request = RankRequest {
        side: Side::Sell,
        amount: Some(Money { amount: "12.5".into(), currency: "CHF".into() }),
        user: UserFacts {
            country: "CH".into(),
            tier: "pro".into(),
            returning: true,
            last_used: Some("second".into()),
            channel: "ios".into(),
        },
        methods: vec![
            Method {
                id: "first".into(),
                kind: MethodKind::Other,
                currencies: vec!["EUR".into(), "CHF".into()],
                success_rate: Some(-1),
                cost: Some(i32::MIN),
                settles_in: Some(u32::MAX),
            },
            Method {
                id: "second".into(),
                kind: MethodKind::Card,
                currencies: Vec::new(),
                success_rate: None,
                cost: Some(3),
                settles_in: None,
            },
        ],
    };
    let report = policy.rank(CallClass::Live, &context(), &[], &request);
    assert_eq!(
        line(&report.log, Level::Info),
        "1|1|12.5|CHF|CH|pro|1|1|second|ios|first|5|EUR|CHF|1|-1|1|-2147483648|1|4294967295|\
         second|0|0|0|1|3|0|0|"
    );
    let ranking = report.outcome.expect("it has an order");
    let shown: Vec<_> = ranking.shown.iter().map(|p| (&*p.id, p.badge.as_deref())).collect();
    assert_eq!((shown, &*ranking.rule), (vec![("second", Some("last-used"))], "mirrored"));

    request.methods.truncate(1);
    let failure =
        policy.rank(CallClass::Live, &context(), &[], &request).outcome.expect_err("too few");
    assert_eq!(&*failure.message, "invalid-input: fewer than two methods");
}

#[test]
fn every_field_of_a_payload_arrives_in_c_and_the_signer_comes_back() {
    let mirror = admitted(PolicyKind::Signature, "mirror-signature", Vec::new());
    let Policy::Signature(policy) = mirror.policy else { panic!("another kind") };
    let parsed = VerificationKey::parse(Algorithm::HmacSha512, &STANDARD.encode(SECRET));
    let key = parsed.expect("it is a key");
    let keys = KeyRing::new([("ours".into(), BoundKey { key, not_before: None, not_after: None })]);
    let body = b"a body".to_vec();
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA512, SECRET), &body);
    let mac = STANDARD.encode(mac);
    let mut payload = SignedPayload {
        purpose: Purpose::Onboarding,
        fields: vec![Field { name: "fee".into(), value: "1.5".into() }],
        claimed: Some(mac.clone()),
        method: "GET".into(),
        path: "/sell/onboarding".into(),
        query: "fee=1.5".into(),
        headers: vec![Header { name: "x-time".into(), value: b"now".to_vec() }],
        body,
    };
    let report = policy.verify(CallClass::Live, &context(), &[], &payload, &keys);
    let expected =
        format!("1|fee|1.5|1|{mac}|GET|/sell/onboarding|fee=1.5|x-time|now|a body|32|64|2|3|4|0|");
    assert_eq!(line(&report.log, Level::Debug), expected);
    let Ok(Verdict::Authentic(signer)) = report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!((signer.key.as_str(), signer.algorithm), ("ours", Algorithm::HmacSha512));
    assert_eq!((signer.signed_at, signer.replay_token.as_deref()), (Some(NOW - 5), Some("a body")));

    payload.body = b"another".to_vec();
    let verdict = policy.verify(CallClass::Live, &context(), &[], &payload, &keys).outcome;
    assert_eq!(verdict, Ok(Verdict::Rejected(Rejection::NotCovered)));
    payload.claimed = Some("Zg".into());
    let failure = policy
        .verify(CallClass::Live, &context(), &[], &payload, &keys)
        .outcome
        .expect_err("no base64");
    assert_eq!(&*failure.message, "internal: not base64");
}
