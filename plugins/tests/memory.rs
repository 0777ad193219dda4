//! Memory of a partner's policy. Alone in its process, whose memory it measures.

#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "policies/guest.rs"]
mod guest;

use rampart_plugins::contract::{CallContext, FeeRequest, Money, PolicyKind, Side, Stage};
use rampart_plugins::{CallClass, Policy, PolicyEngine, PolicyLimits};

use self::guest::guest;

/// Partners with a component of their own, after the first ones.
const PARTNERS: usize = 50;
/// Partners before the measurement, which cover shared costs: arenas, the pool's first pages.
const FIRST: usize = 50;
/// Most resident memory of one partner, in bytes.
const PARTNER_BYTES_MAX: usize = 200 << 10;

/// The same component with another digest: a custom section that names the partner.
fn component_of(partner: usize, guest: &[u8]) -> Vec<u8> {
    let payload = [&[7][..], b"partner", format!("{partner:08}").as_bytes()].concat();
    let size = u8::try_from(payload.len()).expect("one byte of LEB128");
    [guest, &[0, size], &payload].concat()
}

/// Resident memory of this process, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = statm.split(' ').nth(1).expect("pages").parse().expect("a number");
    pages * 4096
}

fn input() -> (CallContext, FeeRequest) {
    let context = CallContext {
        partner: "acme".into(),
        request_id: "r-1".into(),
        now: 1_767_225_600,
        rehearsal: false,
        attributes: Vec::new(),
    };
    let request = FeeRequest {
        stage: Stage::Quote,
        side: Side::Buy,
        pay: Money { amount: "100".into(), currency: "EUR".into() },
        receive_currency: "BTC".into(),
        mid_rate: "0.00001".into(),
        payment_method: "creditCard".into(),
        country: "DE".into(),
        user_tier: "basic".into(),
        volume_30d: None,
        promo_code: None,
    };
    (context, request)
}

#[test]
fn a_partner_with_a_policy_of_its_own_costs_little_memory() {
    let limits = PolicyLimits { deadline_ms: 5_000, ..PolicyLimits::for_threads(2) };
    let engine = PolicyEngine::new(limits).expect("an engine");
    let guest = guest("tiered-fee");
    let (context, request) = input();
    let mut digests = std::collections::HashSet::new();
    let mut install = |partner: usize| {
        let loaded = engine.load(PolicyKind::Fee, &component_of(partner, &guest));
        let policy = loaded.expect("a custom section changes nothing");
        assert!(digests.insert(policy.digest().to_owned()));
        let Policy::Fee(fees) = &policy else { panic!("a fee policy") };
        let schedule =
            fees.price(CallClass::Live, &context, &[], &request).outcome.expect("an answer");
        assert_eq!(schedule.rule, "tier-1");
        policy
    };
    let first: Vec<_> = (0..FIRST).map(&mut install).collect();
    let before = resident();
    let others: Vec<_> = (FIRST..FIRST + PARTNERS).map(&mut install).collect();
    let each = resident().saturating_sub(before) / PARTNERS;
    let files = std::fs::read_dir("/proc/self/fd").expect("Linux").count();
    println!("a partner's policy: {} KiB resident; {files} files open", each >> 10);
    assert!(each <= PARTNER_BYTES_MAX, "{each} bytes a partner");
    assert_eq!(first.len() + others.len(), digests.len());
}
