//! Decisions of the shipped guests in JavaScript. Each is compiled once: it has QuickJS within.

use std::sync::LazyLock;

use rampart_plugins::contract::{
    ConfigEntry, ConfigValue, FeeKind, FeeRequest, Method, MethodKind, PolicyKind,
};
use rampart_plugins::{
    CallClass, Charge, FailureKind, FeeLine, FeePolicy, METHODS_MAX, MethodOrderPolicy, Policy,
    Ranking,
};

use crate::{ENGINE, admitted, context, guest, offered, purchase, texts};

static METHOD_FEE: LazyLock<FeePolicy> =
    LazyLock::new(|| match admitted(PolicyKind::Fee, "method-fee", Vec::new()).policy {
        Policy::Fee(policy) => policy,
        _ => panic!("method-fee is another kind of policy"),
    });

static SUCCESS_ORDER: LazyLock<MethodOrderPolicy> =
    LazyLock::new(|| match admitted(PolicyKind::MethodOrder, "success-order", Vec::new()).policy {
        Policy::MethodOrder(policy) => policy,
        _ => panic!("success-order is another kind of policy"),
    });

fn rate(ppm: i32) -> Charge {
    Charge::Rate { ppm, at_least: None, at_most: None }
}

fn line(kind: FeeKind, code: &str, charge: Charge) -> FeeLine {
    FeeLine { kind, code: code.into(), charge }
}

/// The cost of the two methods of these tests, and no partner fee from 1,000 EUR.
fn costs() -> [ConfigEntry; 2] {
    let free_from = ConfigValue::Decimal("1000".into());
    [
        ConfigEntry { key: "free-from".into(), value: free_from },
        texts("methods", &["creditCard/EUR=9000+0.25", "bankTransfer/EUR=0+0.35"]),
    ]
}

fn price(request: &FeeRequest) -> (Vec<FeeLine>, String) {
    let report = METHOD_FEE.price(CallClass::Live, &context(), &costs(), request);
    let schedule = report.outcome.expect("it has a price");
    assert_eq!(schedule.spread_ppm, 0);
    (schedule.lines, schedule.rule)
}

#[test]
fn a_payment_method_has_its_cost() {
    let partner = || line(FeeKind::Partner, "rate", rate(12_500));
    let flat = |amount: &str| Charge::Flat(amount.parse().expect("it is a decimal"));
    let card = vec![
        partner(),
        line(FeeKind::PaymentMethod, "method-rate", rate(9_000)),
        line(FeeKind::PaymentMethod, "method-amount", flat("0.25")),
    ];
    assert_eq!(price(&purchase("100")), (card, "usual".into()));

    let mut transfer = purchase("100");
    transfer.payment_method = "bankTransfer".into();
    assert_eq!(price(&transfer).0[2].charge, flat("0.35"));

    let mut francs = purchase("100");
    francs.pay.currency = "CHF".into();
    assert_eq!(price(&francs), (vec![partner()], "usual".into()));
}

#[test]
fn amounts_are_compared_exactly() {
    for (amount, rule) in [
        ("999.999999999999999999", "usual"),
        ("1000", "large-amount"),
        ("1000.00", "large-amount"),
        ("1000.000000000000000001", "large-amount"),
        ("999999999999.99", "large-amount"),
    ] {
        let (lines, fired) = price(&purchase(amount));
        assert_eq!(fired, rule, "{amount}");
        let is_free = lines.iter().all(|line| line.kind != FeeKind::Partner);
        assert_eq!(is_free, rule == "large-amount", "{amount}");
    }
}

#[test]
fn a_configuration_is_refused_with_the_message_of_the_policy() {
    let config = vec![texts("methods", &["creditCard/EUR=9000+0.25", "creditCard=1"])];
    let refused = ENGINE.admit(PolicyKind::Fee, guest("method-fee"), config).err();
    let expected = "the policy does not accept the configuration: `methods` has `creditCard=1`";
    assert_eq!(refused.expect("it cannot be used").to_string(), expected);
}

#[test]
fn an_exception_is_a_trap_with_a_line_in_the_log() {
    // No configuration that the policy would have accepted.
    let config = [texts("methods", &["creditCard/EUR=free"])];
    let report = METHOD_FEE.price(CallClass::Live, &context(), &config, &purchase("100"));
    assert_eq!(report.outcome.expect_err("it throws").kind, FailureKind::Trap);
    let [line] = &report.log[..] else { panic!("{:?}", report.log) };
    assert!(line.text.starts_with("TypeError") && line.text.contains("method-fee.js:"), "{line:?}");
}

fn method(id: &str, success_rate: Option<i32>, cost: Option<i32>) -> Method {
    let currencies = vec!["EUR".into(), "USD".into()];
    let kind = MethodKind::Other;
    Method { id: id.into(), kind, currencies, success_rate, cost, settles_in: None }
}

fn rank(config: &[ConfigEntry], methods: Vec<Method>) -> Ranking {
    SUCCESS_ORDER
        .rank(CallClass::Live, &context(), config, &offered(methods))
        .outcome
        .expect("it has an order")
}

fn ids(ranking: &Ranking) -> Vec<&str> {
    ranking.shown.iter().map(|placement| placement.id.as_str()).collect()
}

#[test]
fn the_method_that_succeeds_most_often_is_first() {
    let methods = || {
        vec![
            method("creditCard", Some(871_000), Some(29_000)),
            method("walletpay", Some(914_000), Some(15_000)),
            method("instant1", Some(918_000), Some(5_000)),
            method("cash", Some(402_000), None),
        ]
    };
    let ranking = rank(&[], methods());
    assert_eq!(ids(&ranking), ["instant1", "creditCard", "walletpay", "cash"]);
    assert_eq!(ranking.shown[0].badge.as_deref(), Some("recommended"));
    assert_eq!(ranking.rule, "by-success");

    let hide_below = ConfigEntry { key: "hide-below".into(), value: ConfigValue::Integer(500_000) };
    let ranking = rank(&[hide_below], methods());
    assert_eq!(ids(&ranking), ["instant1", "creditCard", "walletpay"]);

    let assumed = ConfigEntry { key: "assumed".into(), value: ConfigValue::Integer(950_000) };
    let unknown = [methods(), vec![method("bankTransfer", None, None)]].concat();
    assert_eq!(ids(&rank(&[assumed], unknown))[0], "bankTransfer");
}

#[test]
fn the_most_methods_of_a_request_are_ranked_within_the_fuel_of_a_call() {
    let methods = (0..METHODS_MAX).map(|index| method(&format!("method{index}"), None, None));
    let ranking = rank(&[], methods.collect());
    assert_eq!(ranking.shown.len(), METHODS_MAX);
    assert!(rank(&[], Vec::new()).shown.is_empty());
}

#[test]
fn nothing_but_the_contract_is_imported() {
    for policy in [Policy::Fee(METHOD_FEE.clone()), Policy::MethodOrder(SUCCESS_ORDER.clone())] {
        let expected = ["rampart:policy/log@0.1.0", "rampart:policy/types@0.1.0"];
        assert_eq!(policy.imports(), expected, "{}", policy.kind().as_str());
    }
}
