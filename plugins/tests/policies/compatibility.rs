//! Policies built when version 0.1.0 of the contract was published, stored as text: they must run
//! unchanged on every later host.

use rampart_plugins::contract::{
    Algorithm, Field, Method, MethodKind, PolicyKind, Purpose, SignedPayload, Verdict,
};
use rampart_plugins::{Admitted, BoundKey, CallClass, Charge, KeyRing, Policy, VerificationKey};

use crate::{ENGINE, context, offered, purchase};

fn admitted(kind: PolicyKind, text: &str) -> Admitted {
    let component = wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"));
    let admitted = ENGINE
        .admit(kind, component, Vec::new())
        .unwrap_or_else(|reason| panic!("the contract has changed: {reason}"));
    assert_eq!(admitted.info.name, format!("older/{}", kind.as_str()));
    assert_eq!((admitted.info.version.as_str(), admitted.info.policies.len()), ("1.0.0", 1));
    assert!(!admitted.info.config.is_empty());
    admitted
}

#[test]
fn a_fee_policy_of_the_first_contract_still_prices() {
    let text = include_str!("../fixtures/contract-0.1.0/fee.wat");
    let Policy::Fee(policy) = admitted(PolicyKind::Fee, text).policy else { panic!("a kind") };
    let report = policy.price(CallClass::Live, &context(), &[], &purchase("100"));
    let schedule = report.outcome.expect("it has a price");
    let rate = Charge::Rate { ppm: 12_500, at_least: None, at_most: None };
    assert_eq!((schedule.lines[0].charge, schedule.rule.as_str()), (rate, "everyone"));
    assert_eq!(report.log[0].text, "acme");
}

#[test]
fn a_method_order_policy_of_the_first_contract_still_ranks() {
    let text = include_str!("../fixtures/contract-0.1.0/method-order.wat");
    let Policy::MethodOrder(policy) = admitted(PolicyKind::MethodOrder, text).policy else {
        panic!("a kind")
    };
    let method = |id: &str, kind| Method {
        id: id.into(),
        kind,
        currencies: vec!["EUR".into()],
        success_rate: Some(950_000),
        cost: None,
        settles_in: Some(60),
    };
    let request = offered(vec![
        method("creditCard", MethodKind::Card),
        method("bankTransfer", MethodKind::BankTransfer),
    ]);
    let ranking =
        policy.rank(CallClass::Live, &context(), &[], &request).outcome.expect("it has an order");
    let shown: Vec<_> = ranking.shown.iter().map(|p| (&*p.id, p.badge.as_deref())).collect();
    assert_eq!(shown, [("bankTransfer", Some("recommended")), ("creditCard", None)]);
}

#[test]
fn a_signature_policy_of_the_first_contract_still_verifies() {
    let text = include_str!("../fixtures/contract-0.1.0/signature.wat");
    let Policy::Signature(policy) = admitted(PolicyKind::Signature, text).policy else {
        panic!("a kind")
    };
    // The vector of `plugins/templates/signature.json`.
    let key = "YSBzaGFyZWQga2V5IG9mIDMyIGJ5dGVzLCBwYWRkZWQ=";
    let key = VerificationKey::parse(Algorithm::HmacSha256, key).expect("it is a key");
    let bound = BoundKey { key, not_before: None, not_after: None };
    let keys = KeyRing::new([("partner-hmac".to_owned(), bound)]);
    let field = |name: &str, value: &str| Field { name: name.into(), value: value.into() };
    let payload = SignedPayload {
        purpose: Purpose::Offer,
        fields: vec![field("fee", "1.5"), field("returnUrl", "https://partner.example/ü")],
        claimed: Some("k9W2NH4sx+RrE7XlzJ+jNo7Yi0B236lv7Vy0bIqQZbI=".into()),
        method: "POST".into(),
        path: "/api/v2/buy/offer".into(),
        query: String::new(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    let verdict = policy.verify(CallClass::Live, &context(), &[], &payload, &keys).outcome;
    match verdict.expect("it has a verdict") {
        Verdict::Authentic(signer) => assert_eq!(signer.key, "partner-hmac"),
        Verdict::Rejected(rejection) => panic!("{rejection:?}"),
    }
}
