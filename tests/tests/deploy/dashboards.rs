//! The dashboards for Grafana: each panel's query, put to a Prometheus that scrapes a running demo,
//! and to one that scrapes an edge that has done something of everything.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use http::Method;
use rampart_tests::buyer::{RETURN_URL, WALLET, quote};
use rampart_tests::caller::{Caller, Protocol};
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::{Edge, Folder};
use rampart_tests::guests::{self, component};
use rampart_tests::port::free;
use rampart_tests::process::{Process, binary};
use rampart_tests::receiver::Receiver;
use serde_json::{Value, json};
use url::Url;

use crate::prometheus::unknown_metrics;
use crate::{names, read, root};

const BOARDS: [&str; 5] = ["database", "edge", "money", "partner", "policies"];
/// The end of a query that shows 0 where nothing has happened yet.
const FALLBACK: &str = " or on() vector(0)";
/// Parts of the queries about events that the edge at work does not have.
const WITHOUT_EVENTS: [&str; 7] = [
    r#"outcome="failed""#,
    r#"outcome!~"ok|refused|clamped""#,
    r#"partner="acme", status=~"4..""#,
    r#"status=~"5..""#,
    "payment-late",
    "rampart_deposit_addresses_free",
    "rampart_policy_shadow_total",
];

fn board(name: &str) -> Value {
    serde_json::from_str(&read(&format!("grafana/{name}.json"))).unwrap()
}

/// The queries of a dashboard about this partner, with the title of their panel.
fn queries(board: &Value, partner: &str) -> Vec<(String, String)> {
    let variables = [("$__rate_interval", "1m"), ("$job", "rampart"), ("$partner", partner)];
    let panels = board["panels"].as_array().unwrap().iter();
    let queries = panels.flat_map(|panel| {
        let targets = panel["targets"].as_array().unwrap().iter();
        let title = format!("{}: {}", board["title"], panel["title"]);
        targets.map(move |target| (title.clone(), target["expr"].as_str().unwrap().to_owned()))
    });
    let filled = queries.map(|(title, query)| {
        let filled =
            variables.iter().fold(query, |query, (name, value)| query.replace(name, value));
        assert!(!filled.contains('$'), "{title}: {filled}");
        (title, filled)
    });
    filled.collect()
}

/// The queries of all dashboards about this partner.
fn all_queries(partner: &str) -> Vec<(String, String)> {
    BOARDS.iter().flat_map(|name| queries(&board(name), partner)).collect()
}

#[test]
fn the_dashboards_are_over_metrics_that_exist() {
    assert_eq!(names("grafana", "json"), BOARDS);
    let mut identifiers = BTreeSet::new();
    for name in BOARDS {
        let board = board(name);
        assert_eq!(unknown_metrics(&board.to_string()), BTreeSet::new(), "{name}");
        assert!(identifiers.insert(board["uid"].as_str().unwrap().to_owned()), "{name}");
        for panel in board["panels"].as_array().unwrap() {
            assert!(!panel["targets"].as_array().unwrap().is_empty(), "{name}: {panel}");
            assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{name}: {panel}");
        }
    }
}

/// Without `on()` the 0 is a line of its own beside every other one.
#[test]
fn no_fallback_is_shown_beside_other_series() {
    for (title, query) in all_queries("acme") {
        assert_eq!(query.contains("vector(0)"), query.ends_with(FALLBACK), "{title}: {query}");
    }
}

/// A Prometheus that scrapes one edge every second.
struct Prometheus {
    process: Process,
    address: SocketAddr,
    _folder: Folder,
}

impl Prometheus {
    fn start(ops: SocketAddr) -> Self {
        let folder = Folder::make();
        let settings = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\n\
             rule_files: ['{}']\n\
             scrape_configs:\n  - job_name: rampart\n    static_configs: [{{ targets: ['{}'] }}]\n",
            root().join("deploy/prometheus/rules.yaml").display(),
            ops
        );
        fs::write(folder.path().join("prometheus.yaml"), settings).unwrap();
        let address = free();
        let mut command = Command::new(root().join("deploy/validators"));
        command.args(["prometheus", "--config.file=prometheus.yaml", "--storage.tsdb.path=series"]);
        command.arg(format!("--web.listen-address={address}")).current_dir(folder.path());
        Self { process: Process::spawn(command), address, _folder: folder }
    }

    /// The number of series that a query gives; nothing while it does not answer.
    async fn series(&self, query: &str) -> Option<usize> {
        assert!(self.process.status().is_none(), "{:?}", self.process.err());
        let base = format!("http://{}/api/v1/query", self.address);
        let url = Url::parse_with_params(&base, [("query", query)]).unwrap();
        let answer = Protocol::Http1.client().get(url).send().await;
        let answer: Value = answer.ok()?.json().await.ok()?;
        assert_ne!(answer["errorType"], "bad_data", "{query}: {answer}");
        Some(answer["data"]["result"].as_array()?.len())
    }

    /// Waits until each of these queries of panels gives series.
    async fn shows(&self, mut missing: Vec<(String, String)>) {
        assert!(missing.len() > 50, "{missing:?}");
        let all = missing.len();
        until("every panel shows series", SOON * 2, async || {
            let mut empty = Vec::new();
            for (title, query) in missing.drain(..) {
                if self.series(&query).await.unwrap_or_default() == 0 {
                    empty.push((title, query));
                }
            }
            // What is said when the time is over.
            if empty.len() < 10 {
                eprintln!("without series of {all}: {empty:?}");
            }
            missing = empty;
            missing.is_empty().then_some(())
        })
        .await;
    }
}

/// Confirms an order that is then paid or denied.
async fn order(edge: &Edge, partner: &Caller, callback: &str, action: &str) {
    let quote = quote(partner).await;
    let body = json!({
        "quote": quote["quote"], "walletAddress": WALLET, "returnUrl": RETURN_URL,
        "callbackUrl": callback,
    });
    let confirmed = partner.post("/api/v1/buy/confirm", body).await.assert_status(200).json();
    let page = confirmed["paymentUrl"].as_str().unwrap().strip_prefix(&edge.url("")).unwrap();
    let press = partner.anonymous(Method::POST, page).form(&format!("action={action}"));
    press.send().await.assert_status(303);
}

/// Has an edge do something of everything that the dashboards show.
async fn work(edge: &Edge, receiver: &Receiver) {
    let partner = edge.partner("acme").await.authenticated().await;
    let path = "/admin/v1/partners/acme/policies/fee";
    edge.admin_bytes(Method::PUT, path, component("tiered-fee")).await.assert_status(200);
    order(edge, &partner, &receiver.url("/hook"), "pay").await;
    order(edge, &partner, &receiver.url("/hook"), "deny").await;
    receiver.heard_at_least(1).await;
    let chain = json!({"name": "chain", "capabilities": ["payout.send"]});
    let made = edge.admin(Method::POST, "/admin/v1/connectors", chain).await;
    let made = made.assert_status(201).json();
    let route = json!({"partner": null, "asset": "BTC", "direction": "out", "connector": "chain"});
    let routes = json!({ "routes": [route] });
    edge.admin(Method::PUT, "/admin/v1/routes", routes).await.assert_status(200);
    let health = json!({"id": "1", "kind": "health", "occurredAt": "2026-03-01T12:00:00Z",
        "asset": "BTC", "amount": 1.5});
    let url = format!("http://{}/connectors/v1/events", edge.connectors);
    let told = Protocol::Http1.client().post(url).bearer_auth(made["token"].as_str().unwrap());
    let told = told.body(health.to_string()).send().await.unwrap();
    assert_eq!(told.status().as_u16(), 200);
    let slow = json!({"rateLimits": {"client": "1/min burst 1"}});
    edge.admin(Method::PATCH, "/admin/v1/partners/acme", slow).await.assert_status(200);
    partner.get("/api/v1/prices").await;
    partner.get("/api/v1/prices").await.assert_status(429);
}

#[tokio::test]
async fn every_panel_shows_series_of_an_edge_at_work() {
    let (edge, receiver) = (Edge::start().await, Receiver::start().await);
    let prometheus = Prometheus::start(edge.ops);
    // A panel of increases needs what was counted before.
    let is_scraped = async || prometheus.series("up == 1").await.filter(|series| *series > 0);
    until("Prometheus scrapes the edge", SOON, is_scraped).await;
    work(&edge, &receiver).await;
    // A fallback would hide that a query finds nothing.
    let queries = all_queries("acme").into_iter().map(|(title, query)| {
        let is_without_events = WITHOUT_EVENTS.iter().any(|part| query.contains(part));
        (title, if is_without_events { query } else { query.replace(FALLBACK, "") })
    });
    prometheus.shows(queries.collect()).await;
}

#[tokio::test]
async fn every_panel_shows_series_of_a_running_demo() {
    let state = Folder::make();
    let mut command = Command::new(binary());
    command.arg("demo").arg("--state").arg(state.path()).arg("--guests").arg(guests::folder());
    let demo = Process::spawn(command);
    // Among the requests to try next, which it prints once its purchase is made.
    let metrics = demo.prints("curl http://").await;
    let prometheus = Prometheus::start(metrics.strip_suffix("/metrics").unwrap().parse().unwrap());
    prometheus.shows(all_queries("demo")).await;
}
