//! The connectors' listener, and the commands about connectors and routes.

use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use rampart_tests::buyer;
use rampart_tests::caller::Protocol;
use rampart_tests::cluster;
use rampart_tests::deadline::until;
use rampart_tests::edge::{ADMIN_TOKEN, Edge, Setup};
use rampart_tests::process::Process;
use rampart_tests::repository::root;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::commands;

/// JSON that a command prints.
pub(crate) async fn printed(edge: &Edge, arguments: &[&str]) -> Value {
    commands::printed(&edge.command(arguments).await)
}

/// The status of a call with this token, and the answer.
async fn call(url: &str, token: &str, path: &str, body: Value) -> (u16, Value) {
    let request = Protocol::Http1.client().post(format!("{url}/connectors/v1/{path}"));
    let answer = request.bearer_auth(token).body(body.to_string()).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn a_connector_is_made_by_a_command_and_served_on_its_listener() {
    let edge = Edge::start().await;
    let made = ["connector", "add", "cards", "--capability", "payment.create", "--method"];
    let made = printed(&edge, &[&made[..], &["creditCard"]].concat()).await;
    let token = made["token"].as_str().unwrap();
    let url = format!("http://{}", edge.connectors);
    let lease = json!({"max": 1, "waitSeconds": 0, "leaseSeconds": 10});
    let leased = call(&url, token, "commands/lease", lease.clone()).await;
    assert_eq!(leased, (200, json!([])));
    assert_eq!(call(&url, ADMIN_TOKEN, "commands/lease", lease.clone()).await.0, 401);
    let rotated = printed(&edge, &["connector", "rotate", "cards", "--overlap", "0"]).await;
    assert_eq!(call(&url, token, "commands/lease", lease.clone()).await.0, 401);
    let token = rotated["token"].as_str().unwrap();
    assert_eq!(call(&url, token, "commands/lease", lease).await.0, 200);
    let shown = printed(&edge, &["connector", "show", "cards"]).await;
    assert!(shown["lastContactAt"].is_string());
    assert_eq!(printed(&edge, &["connector", "list"]).await[0]["name"], "cards");

    let file = edge.setup().folder().join("routes.json");
    let routes = json!([{"partner": null, "method": "creditCard", "direction": "in",
        "connector": "cards"}]);
    std::fs::write(&file, routes.to_string()).unwrap();
    let set = printed(&edge, &["route", "set", file.to_str().unwrap()]).await;
    assert_eq!(set, json!({ "routes": routes }));
    assert_eq!(printed(&edge, &["route", "list"]).await, set);
    assert_eq!(printed(&edge, &["route", "get", "--json"]).await, set);
    let table = edge.command(&["connector", "list", "--table"]).await.stdout;
    let table = String::from_utf8(table).unwrap();
    assert!(table.starts_with("NAME ") && table.lines().count() == 2, "{table}");
    assert!(!edge.command(&["connector", "show", "nobody"]).await.status.success());
}

#[tokio::test]
async fn payments_are_operated_by_commands() {
    let edge = Edge::start().await;
    let create = ["payment", "create", "received", "250", "EUR", "--reason", "seen"];
    let seen = |reference| [&create[..], &["--reference", reference]].concat();
    let stray = printed(&edge, &seen("bank-1")).await;
    assert_eq!((&stray["state"], &stray["amount"]), (&json!("unmatched"), &json!(250)));
    let again = printed(&edge, &seen("bank-1")).await;
    assert_eq!((&again["id"], &again["duplicate"]), (&stray["id"], &json!(true)));
    let unmatched = printed(&edge, &["payment", "list", "--state", "unmatched", "--json"]).await;
    assert_eq!(unmatched[0]["id"], stray["id"]);
    let id = stray["id"].as_str().unwrap();
    assert_eq!(printed(&edge, &["payment", "show", id]).await["providerReference"], "bank-1");
    let wrong = edge.command(&["payment", "match", id, "1234567890123456"]).await;
    assert_eq!(wrong.status.code(), Some(2), "no such order");
    let refund = ["payment", "refund", id, "--amount", "50", "--reason", "nobody's"];
    assert_eq!(printed(&edge, &refund).await["amount"], 50);
    let keyed = [&refund[..], &["--idempotency-key", "till-1"]].concat();
    let made = printed(&edge, &keyed).await;
    assert_eq!(printed(&edge, &keyed).await["id"], made["id"]);
    assert_eq!(printed(&edge, &["payment", "show", id]).await["refundRequested"], 100);
    let table = edge.command(&["payment", "list", "--table"]).await.stdout;
    assert!(String::from_utf8(table).unwrap().contains("bank-1"));
}

#[tokio::test]
async fn a_waiting_lease_does_not_hold_up_the_end_of_an_edge() {
    let edge = Edge::start().await;
    let made = ["connector", "add", "chain", "--capability", "payout.send"];
    let made = printed(&edge, &made).await;
    let token = made["token"].as_str().unwrap().to_owned();
    let url = format!("http://{}", edge.connectors);
    let waiting = tokio::spawn(async move {
        let lease = json!({"max": 1, "waitSeconds": 30, "leaseSeconds": 60});
        call(&url, &token, "commands/lease", lease).await
    });
    until("the lease waits", Duration::from_secs(20), async || {
        let shown = printed(&edge, &["connector", "show", "chain"]).await;
        shown["lastContactAt"].is_string().then_some(())
    })
    .await;
    edge.process.signal(Signal::SIGTERM);
    let ended = timeout(Duration::from_secs(20), waiting).await;
    assert_eq!(ended.expect("an edge that stops keeps nobody waiting").unwrap(), (200, json!([])));
}

#[tokio::test]
async fn beyond_loopback_the_listener_needs_a_certificate() {
    let mut setup = Setup::over(&cluster::database().await);
    setup.set("connectors.listen", "0.0.0.0:0");
    let process = setup.spawn();
    until("it refuses", Duration::from_secs(20), async || process.status().is_some().then_some(()))
        .await;
    let said = process.err().join("\n");
    assert!(said.contains("connectors.tls.cert"), "{said}");
}

#[tokio::test]
async fn connectors_are_served_over_tls() {
    let edge = Edge::with(|setup| {
        let folder = setup.folder().to_owned();
        setup.set("connectors.tls.cert", folder.join("cert.pem").display().to_string());
        setup.set("connectors.tls.key", folder.join("key.pem").display().to_string());
    })
    .await;
    let url = format!("https://localhost:{}", edge.connectors.port());
    let lease = json!({"max": 1, "waitSeconds": 0, "leaseSeconds": 10});
    assert_eq!(call(&url, "rcn_wrong", "commands/lease", lease).await.0, 401);
}

/// The program of the guide.
fn guides_program() -> String {
    let guide = std::fs::read_to_string(root().join("plugins/CONNECTORS.md")).unwrap();
    let (_, rest) = guide.split_once("```python\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

#[tokio::test]
async fn the_guides_connector_settles_a_purchase_as_it_stands() {
    let edge = Edge::start().await;
    let acme = edge.partner("acme").await;
    let made = ["connector", "add", "pretend", "--capability", "payment.create"];
    let made = printed(&edge, &[&made[..], &["--capability", "payout.send"]].concat()).await;
    let folder = edge.setup().folder().to_owned();
    let routes = json!([
        {"partner": "acme", "method": "creditCard", "direction": "in", "connector": "pretend"},
        {"partner": "acme", "asset": "BTC", "direction": "out", "connector": "pretend"}]);
    std::fs::write(folder.join("routes.json"), routes.to_string()).unwrap();
    let file = folder.join("routes.json").display().to_string();
    printed(&edge, &["route", "set", &file]).await;
    std::fs::write(folder.join("connector.py"), guides_program()).unwrap();
    let mut program = Command::new("python3");
    program.arg(folder.join("connector.py"));
    program.env("CONNECTORS_URL", format!("http://{}", edge.connectors));
    program.env("CONNECTOR_TOKEN", made["token"].as_str().unwrap());
    let program = Process::spawn(program);

    let buyer = acme.authenticated().await;
    let order = buyer::order_of(&buyer::order(&buyer).await);
    let order = format!("/api/v2/buy/orders/{order}");
    until("the order is complete", Duration::from_secs(60), async || {
        assert!(program.status().is_none(), "{:?}", program.err());
        (buyer.get(&order).await.json()["status"] == "completed").then_some(())
    })
    .await;
    // The order is complete before the command has its result.
    let queue = until("nothing is left to do", Duration::from_secs(20), async || {
        let queue = printed(&edge, &["connector", "show", "pretend"]).await;
        (queue["queueLength"] == 0).then_some(queue)
    })
    .await;
    assert_eq!(queue["failures"], 0);
}
