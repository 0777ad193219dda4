//! Two edges over one database, two live partners, four connectors, two operators, and calls that may
//! die on their way.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method};
use rampart_api::operate::listener;
use rampart_core::platform::rate_limit::Quota;
use rampart_tests::deadline::after;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::{TestContext, head};
use serde_json::{Value, json};

use super::dice::Dice;
use super::truth::Shared;

/// Connectors and the kinds of commands that they take.
const CONNECTORS: [(&str, &[&str]); 4] = [
    ("cards", &["payment.create", "payment.cancel", "payment.refund"]),
    ("bank", &["payment.create", "payment.cancel", "payment.refund", "transfer.send"]),
    ("chain", &["payout.send", "deposit.address"]),
    ("screener", &["screening.check"]),
];
/// The partners' slugs.
pub(crate) const PARTNERS: [&str; 2] = ["acme", "other"];
/// Deposit addresses of a database: more than its sales.
const ADDRESSES: u32 = 300;
/// The largest payment that an operator reports or gives back alone, in euros.
const ALONE_MAX: u32 = 100;
/// Calls of a hundred that die, where faults are wanted.
const DEATHS: usize = 5;
/// Most attempts of a call that must be answered, and the pause between two.
const ATTEMPTS_MAX: usize = 3_000;
const PAUSE: Duration = Duration::from_millis(10);
/// Longest time that a call which dies has lived, in microseconds.
const LIFE_MICROS_MAX: usize = 15_000;

/// The API that a call is for, with the name of the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Caller {
    Connector(&'static str),
    /// The token of the configuration.
    Owner,
    /// One of the two operators.
    Operator(usize),
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) edge: usize,
    pub(crate) caller: Caller,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Value,
}

impl Call {
    pub(crate) fn post(edge: usize, caller: Caller, path: impl Into<String>, body: Value) -> Self {
        Self { edge, caller, method: Method::POST, path: path.into(), body }
    }
}

/// An answer: status and body.
pub(crate) type Heard = (u16, Value);

pub(crate) struct World {
    pub(crate) contexts: [TestContext; 2],
    pub(crate) seed: u64,
    pub(crate) truth: Shared,
    /// Calls of production code so far.
    pub(crate) steps: AtomicUsize,
    pub(crate) partners: Vec<Partner>,
    /// The index of each order in the run, by its number: choices about it follow from that.
    pub(crate) indexes: Mutex<BTreeMap<i64, u64>>,
    connectors: BTreeMap<&'static str, String>,
    operators: Vec<String>,
}

impl World {
    pub(crate) async fn start(seed: u64) -> Self {
        let plenty = Quota::new(1_000_000, 1, 1_000_000);
        let first = TestContext::with(|settings| {
            let rates = &mut settings.ratelimit;
            for rate in [&mut rates.address, &mut rates.client, &mut rates.quotes] {
                *rate = plenty;
            }
            rates.credentials = plenty;
            settings.operators.payment_alone_max = ALONE_MAX;
            settings.connectors.deposit_addresses_min = ADDRESSES;
        });
        let first = Box::pin(first).await;
        let mut partners = Vec::new();
        for slug in PARTNERS {
            let body = json!({"slug": slug, "name": slug, "mode": "live"});
            partners.push(Box::pin(first.partner_of(body)).await);
        }
        let mut connectors = BTreeMap::new();
        for (name, capabilities) in CONNECTORS {
            let body = json!({"name": name, "capabilities": capabilities});
            let made = first.admin(Method::POST, "/admin/v1/connectors", body).await;
            let token = made.assert_status(201).json()["token"].as_str().unwrap().to_owned();
            connectors.insert(name, token);
        }
        first.admin(Method::PUT, "/admin/v1/routes", routes()).await.assert_status(200);
        let mut operators = Vec::new();
        for name in ["ada", "bob"] {
            operators.push(first.operator(name, &["treasury", "compliance"]).await);
        }
        let second = Box::pin(first.second_edge()).await;
        let contexts = [first, second];
        let (truth, steps, indexes) = (Shared::default(), AtomicUsize::new(0), Mutex::default());
        let world = Self { contexts, seed, truth, steps, partners, indexes, connectors, operators };
        world.refresh().await;
        world
    }

    /// Has both edges see changed prices, routes and partners.
    pub(crate) async fn refresh(&self) {
        for context in &self.contexts {
            context.core().refresh().await.unwrap();
        }
    }

    pub(crate) fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// The index of an order in the run; orders of nobody have one as well.
    pub(crate) fn index(&self, order: i64) -> u64 {
        let indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        indexes.get(&order).copied().unwrap_or(u64::MAX)
    }

    /// Notes something that must not happen.
    pub(crate) fn violation(&self, violation: impl Into<String>) {
        self.truth.lock().violations.push(violation.into());
    }

    async fn send(&self, call: &Call) -> Heard {
        self.step();
        let token = match call.caller {
            Caller::Connector(name) => self.connectors[name].as_str(),
            Caller::Owner => "operator-of-the-test",
            Caller::Operator(one) => self.operators[one].as_str(),
        };
        let mut head = head(call.method.clone(), &call.path);
        let token = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
        head.headers.insert("authorization", token);
        let body = match &call.body {
            Value::Null => Bytes::new(),
            body => body.to_string().into(),
        };
        let core = self.contexts[call.edge].core();
        // On the heap: unoptimised, a call does not fit on its thread's stack beside others.
        let reply = match call.caller {
            Caller::Connector(_) => Box::pin(core.connectors(head, body)).await,
            _ => Box::pin(listener::answer(core, head, body)).await,
        };
        (reply.status.as_u16(), serde_json::from_slice(&reply.body).unwrap_or_default())
    }

    /// Calls, and gives the answer; `None` where the call dies after `life`, or the database was out
    /// of reach.
    pub(crate) async fn call(&self, call: &Call, life: Duration) -> Option<Heard> {
        let heard = tokio::time::timeout(life, self.send(call)).await.ok()?;
        match heard.0 {
            503 => None,
            500 => {
                self.violation(format!("500 to {} {}: {}", call.path, call.body, heard.1));
                Some(heard)
            }
            _ => Some(heard),
        }
    }

    /// Time that a call lives, by chance.
    pub(crate) fn life(dice: &mut Dice, has_faults: bool) -> Duration {
        if has_faults && dice.chance(DEATHS) {
            let micros = u64::try_from(dice.below(LIFE_MICROS_MAX)).unwrap_or(0);
            return Duration::from_micros(micros);
        }
        Duration::MAX
    }

    /// Calls until there is an answer. `true` if an earlier attempt had none.
    pub(crate) async fn insist(&self, call: &Call, life: Duration) -> (Heard, bool) {
        if let Some(heard) = self.call(call, life).await {
            return (heard, false);
        }
        for _ in 0..ATTEMPTS_MAX {
            if let Some(heard) = self.call(call, Duration::MAX).await {
                return (heard, true);
            }
            after(PAUSE).await;
        }
        panic!("not answered: {call:?}");
    }

    /// Ends every connection of the edges to the database.
    pub(crate) async fn disconnect(&self) {
        let end = "select pg_terminate_backend(pid) from pg_stat_activity where datname = \
                   current_database() and usename in ('rampart_edge', 'rampart_worker')";
        sqlx::query(end).execute(self.contexts[0].db()).await.unwrap();
    }

    /// Waits until both edges answer from the database again.
    pub(crate) async fn recovered(&self) {
        for edge in 0..self.contexts.len() {
            for caller in [Caller::Owner, Caller::Connector("chain")] {
                let (method, path) = match caller {
                    Caller::Owner => (Method::GET, "/admin/v1/routes"),
                    _ => (Method::GET, "/connectors/v1/openapi.json"),
                };
                let path = path.to_owned();
                let call = Call { edge, caller, method, path, body: Value::Null };
                self.insist(&call, Duration::MAX).await;
            }
        }
    }

    /// Everything that a check of the books finds, page by page.
    pub(crate) async fn ledger_check(&self) -> Vec<String> {
        let (mut found, mut query) = (Vec::new(), String::new());
        loop {
            let path = format!("/admin/v1/ledger/check{query}");
            let (caller, method, body) = (Caller::Owner, Method::GET, Value::Null);
            let call = Call { edge: 0, caller, method, path, body };
            let ((status, page), _) = self.insist(&call, Duration::MAX).await;
            assert_eq!(status, 200, "{page}");
            let text = |found: &Value| format!("{}: {}", found["subject"], found["problem"]);
            found.extend(page["problems"].as_array().unwrap().iter().map(text));
            let Some(next) = page["next"].as_str() else { return found };
            query = format!("?after={next}");
        }
    }
}

fn routes() -> Value {
    let route = |leg: &str, of: &str, direction: &str, connector: &str| json!({"partner": null, leg: of, "direction": direction, "connector": connector});
    json!({"routes": [
        route("method", "creditCard", "in", "cards"),
        route("method", "bankTransfer", "in", "bank"),
        route("method", "bankTransfer", "out", "bank"),
        route("asset", "BTC", "out", "chain"),
        route("asset", "ETH", "out", "chain"),
        route("asset", "ETH", "in", "chain"),
    ]})
}
