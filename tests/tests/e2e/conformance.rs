//! The edge held to its own OpenAPI document by Schemathesis: no 5xx, no status, shape or header
//! that the document does not name, no credential that is not looked at, nothing accepted that the
//! document refuses; and every operation was seen to succeed. `tests/conformance/` says how.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use http::Method;
use rampart_core::api::ENDPOINTS;
use rampart_tests::caller::Caller;
use rampart_tests::edge::{Edge, UNLIMITED};
use rampart_tests::process::Process;
use rampart_tests::user::registration;
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
/// Random cases of one operation in a run without it. Those that the document itself makes come on
/// top, some 60 for an operation, and are the same in every run.
const CASES_PER_OPERATION: usize = 5;
/// Longest run. It bounds a run that hangs; 20,000 cases take some minutes.
const RUN_MAX: Duration = Duration::from_secs(1800);

#[expect(clippy::disallowed_methods, reason = "a test has no configuration to read it from")]
#[tokio::test]
async fn the_service_is_as_its_document_says() {
    let asked: Option<usize> = env::var(CASES).ok().map(|text| text.parse().unwrap());
    let per_operation = asked.map_or(CASES_PER_OPERATION, |cases| cases.div_ceil(ENDPOINTS.len()));
    let edge = Edge::with(|setup| {
        for bucket in ["client", "quotes", "login", "uploads"] {
            setup.set(&format!("ratelimit.{bucket}"), UNLIMITED);
        }
    })
    .await;
    let run = schemathesis(&edge, &plant(&edge).await, per_operation);
    let status = run.ended_within(RUN_MAX).await;
    let report = run.out().join("\n");
    assert!(status.success(), "{report}\n{}", run.err().join("\n"));
    let generated = generated(&report).unwrap_or_else(|| panic!("no count in {report}"));
    assert!(generated >= asked.unwrap_or(1), "only {generated} cases were generated");
    println!("{report}");

    let metrics = edge.ops("/metrics").await;
    let granted = granted(metrics.text());
    let never: Vec<_> =
        ENDPOINTS.iter().map(|route| route.path).filter(|path| !granted.contains(path)).collect();
    assert!(never.is_empty(), "never seen to succeed: {never:?}");
}

/// Prepares the edge for the run; returns the run's inputs as members of one object.
async fn plant(edge: &Edge) -> Value {
    let partner = edge.partner("conformance").await;
    let (ann, bob) = (registration("ann"), registration("bob"));
    for user in [&ann, &bob] {
        partner.post("/api/v2/user", user.clone()).await.assert_status(200);
    }
    let log_in = json!({"emailAddress": ann["email"], "password": ann["password"]});
    let session = partner.post("/api/v1/user/login", log_in).await.assert_status(200).json();
    let user = format!("/admin/v1/users/{}", session["uuid"].as_str().unwrap());
    let limits = LIMITS.map(|name| (name.to_owned(), json!(1_000_000_000)));
    let change = json!({"limitOverrides": Map::from_iter(limits)});
    edge.admin(Method::PATCH, &user, change).await.assert_status(200);
    let admin = async |what: &str, body: Value| {
        let path = format!("{user}/{what}");
        edge.admin(Method::POST, &path, body).await.assert_status(201).json()
    };
    let account = json!({"type": "bankTransfer", "identifier": "NL91ABNA0417164300",
        "name": "Ada Lovelace", "verified": true});
    admin("accounts", account).await;
    let wallet = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq";
    let plan = admin("dca-codes", json!({"cryptoCurrency": "BTC", "walletAddress": wallet})).await;
    let identifier = ann["identifier"].as_str().unwrap();
    let buy = json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    let confirm = json!({"walletAddress": wallet, "returnUrl": "https://shop.example/back"});
    let order = trade(&partner, identifier, ("buy", buy.clone()), confirm.clone()).await;
    let completed = trade(&partner, identifier, ("buy", buy), confirm).await;
    for event in [
        json!({"event": "payment-received"}),
        json!({"event": "coins-sent", "transactionId": "ab".repeat(32)}),
        json!({"event": "confirmed-on-chain"}),
    ] {
        let path = format!("/admin/v1/orders/{completed}/events");
        edge.admin(Method::POST, &path, event).await.assert_status(200);
    }
    let sell = json!({"currencyPair": "BTC-EUR", "cryptoAmount": 0.01});
    let sell_order = trade(&partner, identifier, ("sell", sell), json!({})).await;
    json!({
        "apiKey": partner.secret("apiKey"),
        "username": partner.secret("username"),
        "password": partner.secret("password"),
        "signingSecret": partner.secret("signingSecret"),
        "identifier": identifier,
        "loginEmail": bob["email"],
        "loginPassword": bob["password"],
        "plan": plan["code"],
        "order": order,
        "completedOrder": completed,
        "sellOrder": sell_order,
    })
}

/// The number of an order: a quote, and its confirm with these members.
async fn trade(
    partner: &Caller,
    identifier: &str,
    (side, quote): (&str, Value),
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

/// The tool at work, in the folder of the edge, which goes with it.
fn schemathesis(edge: &Edge, planted: &Value, per_operation: usize) -> Process {
    let setup = edge.setup();
    let (certificate, file) =
        (setup.folder().join("cert.pem"), setup.folder().join("planted.json"));
    let mut planted = planted.clone();
    planted["base"] = json!(edge.url(""));
    planted["certificate"] = json!(certificate);
    fs::write(&file, planted.to_string()).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut command = Command::new(root.join("deploy/conformance"));
    command.current_dir(setup.folder());
    command.env("RAMPART_PLANTED", &file).env("REQUESTS_CA_BUNDLE", &certificate);
    command.env("RAMPART_API_KEY", planted["apiKey"].as_str().unwrap());
    command.env("RAMPART_IDENTIFIER", planted["identifier"].as_str().unwrap());
    command.arg("run").arg(edge.url("/openapi.json")).arg("--no-color");
    command.arg("--tls-verify").arg(&certificate);
    command.arg("--max-examples").arg(per_operation.to_string());
    Process::spawn(command)
}

/// Number of cases in a run, from its report: `Test cases:` and `3832 generated` below.
fn generated(report: &str) -> Option<usize> {
    let mut lines = report.lines().skip_while(|line| *line != "Test cases:").skip(1);
    lines.next()?.split_whitespace().next()?.replace(',', "").parse().ok()
}

/// The routes that have answered a success.
fn granted(metrics: &str) -> BTreeSet<&str> {
    let counts = metrics.lines().filter(|line| line.starts_with("rampart_requests_total{"));
    counts
        .filter(|line| label(line, "status=\"").is_some_and(|status| status.starts_with('2')))
        .filter_map(|line| label(line, "route=\""))
        .collect()
}

fn label<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_once(name)?.1.split('"').next()
}
