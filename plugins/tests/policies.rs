//! The host and real components, those of `plugins/guests`.

#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "policies/admission.rs"]
mod admission;
#[path = "policies/compatibility.rs"]
mod compatibility;
#[path = "policies/compiler.rs"]
mod compiler;
#[path = "policies/floods.rs"]
mod floods;
#[path = "policies/forged.rs"]
mod forged;
#[path = "policies/generated.rs"]
mod generated;
#[path = "policies/guest.rs"]
mod guest;
#[path = "policies/hostile.rs"]
mod hostile;
#[path = "policies/isolation.rs"]
mod isolation;
#[path = "policies/javascript.rs"]
mod javascript;
#[path = "policies/mirror.rs"]
mod mirror;
#[path = "policies/native_code.rs"]
mod native_code;
#[path = "policies/shipped.rs"]
mod shipped;

use std::sync::LazyLock;

use rampart_plugins::contract::{
    CallContext, ConfigEntry, ConfigValue, FeeRequest, Method, Money, PolicyKind, RankRequest,
    Side, Stage, UserFacts,
};
use rampart_plugins::{Admitted, FeePolicy, Policy, PolicyEngine, PolicyLimits};

use self::guest::guest;

/// 2026-01-01T00:00:00Z.
const NOW: u32 = 1_767_225_600;

/// Generous deadlines: tests share the machine, and only the tests of the deadline are about time.
fn generous_limits() -> PolicyLimits {
    PolicyLimits {
        deadline_ms: 5_000,
        admission_deadline_ms: 5_000,
        admission_ms_max: 60_000,
        admissions_max: 8,
        ..PolicyLimits::for_threads(4)
    }
}

/// The extent of a test: what `make attack` sets this variable to, and otherwise `short`.
#[expect(clippy::disallowed_methods, reason = "a test has no configuration to read it from")]
fn extent(variable: &str, short: usize) -> usize {
    std::env::var(variable).map_or(short, |text| text.parse().expect("it is a number"))
}

static ENGINE: LazyLock<PolicyEngine> = LazyLock::new(|| engine(generous_limits()));

fn engine(limits: PolicyLimits) -> PolicyEngine {
    PolicyEngine::new(limits).expect("an engine starts with these limits")
}

fn admitted(kind: PolicyKind, name: &str, config: Vec<ConfigEntry>) -> Admitted {
    ENGINE.admit(kind, guest(name), config).unwrap_or_else(|reason| panic!("{name}: {reason}"))
}

fn fee_policy(engine: &PolicyEngine, name: &str) -> FeePolicy {
    match engine.load(PolicyKind::Fee, &guest(name)) {
        Ok(Policy::Fee(policy)) => policy,
        Ok(_) => panic!("{name} is another kind of policy"),
        Err(reason) => panic!("{name}: {reason}"),
    }
}

fn context() -> CallContext {
    CallContext {
        partner: "acme".into(),
        request_id: "r-1".into(),
        now: NOW,
        rehearsal: false,
        attributes: Vec::new(),
    }
}

fn text(key: &str, value: &str) -> ConfigEntry {
    ConfigEntry { key: key.into(), value: ConfigValue::Text(value.into()) }
}

fn texts(key: &str, values: &[&str]) -> ConfigEntry {
    let values = values.iter().map(|value| (*value).into()).collect();
    ConfigEntry { key: key.into(), value: ConfigValue::Texts(values) }
}

fn purchase(amount: &str) -> FeeRequest {
    FeeRequest {
        stage: Stage::Quote,
        side: Side::Buy,
        pay: Money { amount: amount.into(), currency: "EUR".into() },
        receive_currency: "BTC".into(),
        mid_rate: "0.00001".into(),
        payment_method: "creditCard".into(),
        country: "DE".into(),
        user_tier: "basic".into(),
        volume_30d: None,
        promo_code: None,
    }
}

/// The methods that a new user from Germany is offered.
fn offered(methods: Vec<Method>) -> RankRequest {
    RankRequest {
        side: Side::Buy,
        amount: None,
        user: UserFacts {
            country: "DE".into(),
            tier: "basic".into(),
            returning: false,
            last_used: None,
            channel: "web".into(),
        },
        methods,
    }
}
