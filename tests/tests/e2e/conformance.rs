//! The edge held to its OpenAPI documents by Schemathesis: no 5xx, no status, shape or header that
//! the document does not name, no credential that is not looked at, nothing accepted that the
//! document refuses; and every operation was seen to succeed. `tests/conformance/` says how.

mod connectors;
mod operators;
mod partners;

use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use http::Method;
use rampart_core::endpoint::Route;
use rampart_tests::buyer::WALLET;
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::edge::{Edge, UNLIMITED};
use rampart_tests::process::Process;
use rampart_tests::repository::root;
use serde_json::{Map, Value, json};

/// Limits that hundreds of orders of one user would reach.
const LIMITS: [&str; 5] = [
    "user_day_limit",
    "user_day_limit_fiat_to_coin",
    "user_day_limit_coin_to_fiat",
    "non_raised_limit_account_limit",
    "new_limited_account_limit",
];
/// With this variable set, so many cases are generated at least.
const CASES: &str = "RAMPART_CASES";
/// Longest run. It bounds a run that hangs; 20,000 cases take some minutes.
const RUN_MAX: Duration = Duration::from_secs(3600);
/// The file of the document, in the folder of the edge.
const DOCUMENT: &str = "openapi.json";

/// An API of the edge.
struct Api {
    /// Name of its file in `tests/conformance`.
    name: &'static str,
    endpoints: &'static [Route],
    /// Operations with more different requests than a run has; with the others the tool ends early.
    endless_operations: usize,
    /// URL of its listener.
    base: String,
    /// Path of its document.
    document: &'static str,
    /// Random cases of one operation in a run without a number of cases. Those that the document
    /// itself makes come on top, some 55 for an operation, and are the same in every run.
    cases_per_operation: usize,
}

/// Holds the edge to the document of one of its APIs. `planted` is what `tests/conformance` plants.
#[expect(clippy::disallowed_methods, reason = "a test has no configuration to read it from")]
async fn hold(edge: &Edge, api: Api, planted: Value) {
    let asked: Option<usize> = env::var(CASES).ok().map(|text| text.parse().unwrap());
    let each = |cases: usize| cases.div_ceil(api.endless_operations);
    let per_operation = asked.map_or(api.cases_per_operation, each);
    // The document itself is for those alone who have a token, so the tool cannot fetch it.
    let mut request = Protocol::Http1.client().get(format!("{}{}", api.base, api.document));
    if let Some(token) = planted["token"].as_str() {
        request = request.bearer_auth(token);
    }
    let document = request.send().await.unwrap().error_for_status().unwrap().bytes().await.unwrap();
    fs::write(edge.setup().folder().join(DOCUMENT), document).unwrap();
    let run = schemathesis(edge, &api, planted, per_operation);
    let status = run.ended_within(RUN_MAX).await;
    let report = run.out().join("\n");
    assert!(status.success(), "{report}\n{}", run.err().join("\n"));
    let generated = generated(&report).unwrap_or_else(|| panic!("no count in {report}"));
    assert!(generated >= asked.unwrap_or(1), "only {generated} cases were generated");
    println!("{report}");

    let granted = fs::read_to_string(edge.setup().folder().join("granted")).unwrap_or_default();
    let operations = api.endpoints.iter().map(|route| format!("{} {}", route.method, route.path));
    let never: Vec<_> =
        operations.filter(|operation| !granted.lines().any(|line| line == operation)).collect();
    assert!(never.is_empty(), "never seen to succeed: {never:?}");
}

/// An edge whose rates a run does not reach.
async fn unlimited() -> Edge {
    Edge::with(|setup| {
        for bucket in ["client", "quotes", "login", "uploads", "operators"] {
            setup.set(&format!("ratelimit.{bucket}"), UNLIMITED);
        }
        // A live partner needs a way for mail. Nobody is there, and none is sent.
        setup.set("mail.smtp_url", "smtp://127.0.0.1:9");
        setup.set("mail.from", "run@example.com");
    })
    .await
}

/// The tool at work, in the folder of the edge, which goes with it.
fn schemathesis(edge: &Edge, api: &Api, mut planted: Value, per_operation: usize) -> Process {
    let setup = edge.setup();
    let (certificate, file) =
        (setup.folder().join("cert.pem"), setup.folder().join("planted.json"));
    planted["api"] = json!(api.name);
    planted["base"] = json!(edge.url(""));
    planted["private"] = json!(api.base);
    planted["certificate"] = json!(certificate);
    planted["granted"] = json!(setup.folder().join("granted"));
    fs::write(&file, planted.to_string()).unwrap();
    let mut command = Command::new(root().join("deploy/conformance"));
    command.current_dir(setup.folder());
    command.env("RAMPART_PLANTED", &file).env("REQUESTS_CA_BUNDLE", &certificate);
    for (variable, name) in [
        ("RAMPART_API_KEY", "apiKey"),
        ("RAMPART_IDENTIFIER", "identifier"),
        ("RAMPART_TOKEN", "token"),
    ] {
        command.env(variable, planted[name].as_str().unwrap_or_default());
    }
    command.arg("run").arg(DOCUMENT).arg("--url").arg(&api.base).arg("--no-color");
    command.arg("--tls-verify").arg(&certificate);
    command.arg("--max-examples").arg(per_operation.to_string());
    Process::spawn(command)
}

/// Number of cases in a run, from its report: `Test cases:` and `3832 generated` below.
fn generated(report: &str) -> Option<usize> {
    let mut lines = report.lines().skip_while(|line| *line != "Test cases:").skip(1);
    lines.next()?.split_whitespace().next()?.replace(',', "").parse().ok()
}

/// Registers a user; the user's id.
async fn register(partner: &Caller, user: &Value) -> String {
    partner.register(user).await["uuid"].as_str().unwrap().to_owned()
}

/// Lifts a user's limits.
async fn unlimit(edge: &Edge, user: &str) {
    let limits = LIMITS.map(|name| (name.to_owned(), json!(1_000_000_000)));
    let change = json!({"limitOverrides": Map::from_iter(limits)});
    let path = format!("/admin/v1/users/{user}");
    edge.admin(Method::PATCH, &path, change).await.assert_status(200);
}

/// The number of an order: a quote, and its confirm with these members.
async fn trade(
    partner: &Caller,
    identifier: &str,
    side: &str,
    quote: Value,
    mut confirm: Value,
) -> Value {
    let post = async |what: &str, body: &Value| {
        let request = partner.request(Method::POST, &format!("/api/v1/{side}/{what}"));
        let answer = request.header("user-identifier", identifier).json(body).send().await;
        answer.assert_status(200).json()
    };
    confirm["quote"] = post("quote", &quote).await["quote"].take();
    post("confirm", &confirm).await["orderId"].take()
}

/// An order of coins by card.
async fn purchase(partner: &Caller, identifier: &str) -> Value {
    let quote =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    let confirm = json!({"walletAddress": WALLET, "returnUrl": "https://shop.example/back"});
    trade(partner, identifier, "buy", quote, confirm).await
}
