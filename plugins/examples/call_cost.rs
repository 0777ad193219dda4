//! What one call of a policy costs: `cargo run --release -p rampart-plugins --example call_cost --
//! FOLDER`, with the folder that `plugins/build` fills (target/guests).
//!
//! A call is everything a request pays: slot, store, instance, the question in, the policy, the
//! answer out, checks, and the instance's end. `start` is the part without question and answer.

#![expect(clippy::disallowed_methods, reason = "it measures")]

use std::error::Error;
use std::path::Path;
use std::time::Instant;
use std::{env, fs};

use rampart_plugins::contract::{
    CallContext, FeeRequest, Field, Method, MethodKind, Money, OrderRequest, PolicyKind, Purpose,
    Side, SignedPayload, Stage, UserFacts,
};
use rampart_plugins::{KeyRing, Policy, PolicyEngine, PolicyLimits};

/// Calls that warm the pool, and calls that count.
const WARM: usize = 2_000;
const CALLS: usize = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args().nth(1).unwrap_or_else(|| "target/guests".into());
    let engine = PolicyEngine::new(PolicyLimits::default())
        .map_err(|error| format!("no engine: {error:#}"))?;
    println!(
        "{:<16} {:>9} {:>9} {:>9} {:>9}",
        "guest", "start p50", "call p50", "call p99", "fuel"
    );
    for (kind, guest) in [
        (PolicyKind::Fee, "tiered-fee"),
        (PolicyKind::Fee, "volume-fee"),
        (PolicyKind::MethodOrder, "country-order"),
        (PolicyKind::Signature, "ed25519-offer"),
    ] {
        let wasm = fs::read(Path::new(&folder).join(guest).with_extension("wasm"))?;
        let policy = engine.load(kind, &wasm)?;
        let (start, _, _) = measure(|| policy.start().fuel);
        let (median, worst, fuel) = measure(|| ask(&policy));
        println!("{guest:<16} {start:>6} ns {median:>6} ns {worst:>6} ns {fuel:>9}");
    }
    Ok(())
}

/// Median and 99th percentile in nanoseconds, and what the last call said of its fuel.
fn measure(call: impl Fn() -> u64) -> (u128, u128, u64) {
    let mut fuel = 0;
    for _ in 0..WARM {
        fuel = call();
    }
    let timed = || {
        let start = Instant::now();
        fuel = call();
        start.elapsed().as_nanos()
    };
    let mut times: Vec<u128> = std::iter::repeat_with(timed).take(CALLS).collect();
    times.sort_unstable();
    (times[CALLS / 2], times[CALLS * 99 / 100], fuel)
}

/// One ordinary call; its fuel.
fn ask(policy: &Policy) -> u64 {
    let context = CallContext {
        partner: "acme".into(),
        request_id: "0190a5f2-9f6e-7c3a-8f51-0d5c0f5e7a11".into(),
        now: 1_767_225_600,
        rehearsal: false,
        attributes: Vec::new(),
    };
    match policy {
        Policy::Fee(policy) => {
            let request = FeeRequest {
                stage: Stage::Quote,
                side: Side::Buy,
                pay: Money { amount: "100.00".into(), currency: "EUR".into() },
                receive_currency: "BTC".into(),
                mid_rate: "0.0000108".into(),
                payment_method: "creditCard".into(),
                country: "DE".into(),
                user_tier: "basic".into(),
                volume_30d: Some("2500.00".into()),
                promo_code: None,
            };
            policy.price(&context, &[], &request).fuel
        }
        Policy::MethodOrder(policy) => {
            let method = |id: &str, kind| Method {
                id: id.into(),
                kind,
                currencies: vec!["EUR".into()],
                success_rate: None,
                cost: None,
                settles_in: None,
            };
            let request = OrderRequest {
                side: Side::Buy,
                amount: None,
                user: UserFacts {
                    country: "DE".into(),
                    tier: "basic".into(),
                    returning: false,
                    last_used: None,
                    channel: "web".into(),
                },
                methods: vec![
                    method("walletpay", MethodKind::Wallet),
                    method("creditCard", MethodKind::Card),
                    method("bankTransfer", MethodKind::BankTransfer),
                ],
            };
            policy.rank(&context, &[], &request).fuel
        }
        Policy::Signature(policy) => {
            let field = |name: &str, value: &str| Field { name: name.into(), value: value.into() };
            let payload = SignedPayload {
                purpose: Purpose::Offer,
                fields: vec![field("fee", "1.5"), field("returnUrl", "https://partner.example/")],
                claimed: Some("t=1767225600,n=nonce-01,s=AAAA".into()),
                method: "POST".into(),
                path: "/api/v2/buy/offer".into(),
                query: String::new(),
                headers: Vec::new(),
                body: Vec::new(),
            };
            policy.verify(&context, &[], &payload, &KeyRing::default()).fuel
        }
    }
}
