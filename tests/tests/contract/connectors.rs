//! Connectors: their tokens, the queue of commands, and events.

mod bank_transfer;
mod capabilities;
mod card_form;
mod connections;
mod deadlocks;
mod deposit_pool;
mod deposits;
mod disputes;
mod disputes_won;
mod earlier_names;
mod early_reports;
mod hostile;
mod owed;
mod payouts;
mod purchase;
mod queue;
mod receipts_by_hand;
mod refund_races;
mod refunds;
mod refunds_alone;
mod refunds_at_the_provider;
mod refunds_by_hand;
mod refunds_by_name;
mod refunds_without_connector;
mod return_fees;
mod returns;
mod routes;
mod sale;
mod same_number;
mod transfers_by_hand;
mod unmatched;

use bytes::Bytes;
use http::{HeaderValue, Method};
use rampart_core::money::connectors::commands::{Command, CommandKind, Direction, Target, enqueue};
use rampart_tests::connector::Connector;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::{TestContext, head};
use rampart_types::{ClientId, OrderId};
use serde_json::{Value, json};

/// Enqueues a command of a partner under this idempotency key.
async fn command(
    context: &TestContext,
    partner: &Partner,
    kind: CommandKind,
    key: &str,
    order: Option<i64>,
    target: Target,
) -> bool {
    let core = context.core();
    let mut tx = core.db.begin().await.unwrap();
    let command = new_command(partner, kind, key, order, target);
    let enqueued = enqueue(&mut tx, core, command).await.unwrap();
    tx.commit().await.unwrap();
    enqueued
}

/// A command of a partner under this idempotency key.
fn new_command(
    partner: &Partner,
    kind: CommandKind,
    key: &str,
    order: Option<i64>,
    target: Target,
) -> Command {
    let id: uuid::Uuid = partner.id.parse().unwrap();
    Command {
        client: ClientId::from(id),
        order: order.and_then(OrderId::new),
        user: None,
        kind,
        idempotency_key: key.to_owned(),
        target,
        body: json!({"amount": 1.25, "name": "Ada", "key": key}),
    }
}

fn to(connector: &str) -> Target {
    Target::Connector(connector.to_owned())
}

async fn read(context: &TestContext, name: &str) -> Value {
    let path = format!("/admin/v1/connectors/{name}");
    context.admin(Method::GET, &path, json!({})).await.assert_status(200).json()
}

#[tokio::test]
async fn a_wrong_token_is_401_a_partners_and_an_operators_too() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let cards = Connector::new(&context, "cards", &["payment.create"]).await;
    let wrong = [
        acme.api_key.clone(),
        acme.token().await,
        acme.password.clone(),
        "operator-of-the-test".to_owned(),
        format!("{}x", cards.token),
        "rcn_unknown".to_owned(),
        String::new(),
    ];
    for token in wrong {
        let stranger = cards.with_token(token);
        for (method, path) in [
            (Method::POST, "/connectors/v1/commands/lease"),
            (Method::POST, "/connectors/v1/events"),
            (Method::GET, "/connectors/v1/openapi.json"),
            (Method::GET, "/connectors/v1/nothing"),
        ] {
            let answer = stranger.call(method, path, json!({})).await;
            let error = answer.assert_status(401).json();
            assert_eq!(error, json!({"error": "the connector's token is missing or wrong"}));
        }
    }
    assert_eq!(cards.lease(1).await, Vec::<Value>::new());
    let document = cards.call(Method::GET, "/connectors/v1/openapi.json", json!({})).await;
    assert_eq!(document.assert_status(200).json()["openapi"], "3.1.0");
}

#[tokio::test]
async fn an_address_with_too_many_wrong_tokens_is_given_the_seconds_to_wait() {
    let context = TestContext::start().await;
    let cards = Connector::new(&context, "cards", &["payment.create"]).await;
    let stranger = cards.with_token("guess");
    let mut wrong = 0;
    let limited = loop {
        let answer = stranger.call(Method::GET, "/connectors/v1/openapi.json", json!({})).await;
        if answer.status() != 401 {
            break answer;
        }
        wrong += 1;
    };
    assert_eq!(limited.assert_status(429).header("retry-after"), Some("1"));
    let metrics = context.core().metrics_text();
    for (cause, failures) in [("missing", 0), ("wrong", wrong), ("limited", 1)] {
        let line =
            format!("rampart_connector_login_failures_total{{cause=\"{cause}\"}} {failures}\n");
        assert!(metrics.contains(&line), "{line}");
    }
}

#[tokio::test]
async fn wrong_tokens_of_a_neighbour_do_not_stop_a_connector_that_is_known() {
    let context = TestContext::start().await;
    let cards = Connector::new(&context, "cards", &["payment.create"]).await;
    let status = async |token: &str| {
        let caller = cards.with_token(token);
        caller.call(Method::GET, "/connectors/v1/openapi.json", json!({})).await.status()
    };
    assert_eq!(status(&cards.token).await, 200);
    while status("rcn_old").await == 401 {}
    assert_eq!(status(&cards.token).await, 200);
    sqlx::query("delete from connector_token").execute(context.db()).await.unwrap();
    assert_ne!(status(&cards.token).await, 200, "it is asked for each time");
}

#[tokio::test]
async fn neighbours_in_one_ipv6_network_share_their_wrong_tokens() {
    let context = TestContext::start().await;
    let cards = Connector::new(&context, "cards", &["payment.create"]).await;
    let status = async |peer: &str, token: &str| {
        let mut head = head(Method::GET, "/connectors/v1/openapi.json");
        head.peer = peer.parse().unwrap();
        let token = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
        head.headers.insert("authorization", token);
        Box::pin(context.core().connectors(head, Bytes::new())).await.status.as_u16()
    };
    let mut refused = 401;
    for host in 1..=200 {
        refused = status(&format!("2001:db8::{host:x}"), "guess").await;
        if refused != 401 {
            break;
        }
    }
    assert_eq!(refused, 429);
    assert_eq!(status("2001:db8:0:1::1", &cards.token).await, 200);
}

#[tokio::test]
async fn tokens_overlap_when_they_are_rotated() {
    let context = TestContext::start().await;
    let first = Connector::new(&context, "cards", &["payment.create"]).await;
    let rotate = async |overlap: i32| {
        let path = "/admin/v1/connectors/cards/rotate";
        let body = json!({ "overlapSeconds": overlap });
        let rotated = context.admin(Method::POST, path, body).await.assert_status(200).json();
        first.with_token(rotated["token"].as_str().unwrap())
    };
    let works = async |connector: &Connector| {
        let path = "/connectors/v1/openapi.json";
        connector.call(Method::GET, path, json!({})).await.status() == 200
    };
    let second = rotate(3_600).await;
    assert!(works(&first).await && works(&second).await);
    let third = rotate(0).await;
    assert!(!works(&first).await && !works(&second).await && works(&third).await);
    let nobody = "/admin/v1/connectors/nobody/rotate";
    context.admin(Method::POST, nobody, json!({})).await.assert_status(404);
}

#[tokio::test]
async fn an_operator_sees_contact_queue_and_failures() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let cards = Connector::new(&context, "cards", &["payment.create"]).await;
    let fresh = read(&context, "cards").await;
    assert_eq!((&fresh["lastContactAt"], &fresh["queueLength"]), (&Value::Null, &json!(0)));
    for key in ["a", "b"] {
        let kind = CommandKind::PaymentCreate;
        assert!(command(&context, &acme, kind, key, None, to("cards")).await);
    }
    let leased = cards.lease(1).await;
    cards.report(&leased[0], "rejected", Value::Null).await.assert_status(200);
    let seen = read(&context, "cards").await;
    assert!(seen["lastContactAt"].is_string() && seen["oldestCommandAt"].is_string());
    assert_eq!((&seen["queueLength"], &seen["failures"]), (&json!(1), &json!(1)));
    let listed = context.admin(Method::GET, "/admin/v1/connectors", json!({})).await.json();
    assert_eq!(listed, json!([seen]));
    let again = json!({"name": "cards", "capabilities": ["payment.create"]});
    context.admin(Method::POST, "/admin/v1/connectors", again).await.assert_status(409);
    for wrong in [
        json!({"name": "Cards", "capabilities": ["payment.create"]}),
        json!({"name": "manual", "capabilities": ["payment.create"]}),
        json!({"name": "edge", "capabilities": ["payment.create"]}),
        json!({"name": "none", "capabilities": []}),
        json!({"name": "none", "capabilities": ["payment.guess"]}),
        json!({"name": "none", "capabilities": ["payment.create"], "methods": ["cowries"]}),
        json!({"name": "none", "capabilities": ["payment.create"], "assets": ["EUR"]}),
    ] {
        context.admin(Method::POST, "/admin/v1/connectors", wrong).await.assert_status(422);
    }
}

#[tokio::test]
async fn routes_are_replaced_as_a_whole_and_lead_commands() {
    let context = TestContext::start().await;
    let (acme, other) = (context.partner("acme").await, context.partner("other").await);
    let one = Connector::new(&context, "one", &["payout.send"]).await;
    let two = Connector::new(&context, "two", &["payout.send"]).await;
    let put = async |routes: Value, status: u16| {
        let body = json!({ "routes": routes });
        context.admin(Method::PUT, "/admin/v1/routes", body).await.assert_status(status).json()
    };
    let to_one = json!({"partner": "acme", "asset": "ETH", "direction": "out", "connector": "one"});
    let routes = json!([to_one, {"partner": null, "method": "creditCard", "direction": "in",
        "connector": "two"}]);
    put(routes.clone(), 200).await;
    let read = context.admin(Method::GET, "/admin/v1/routes", json!({})).await.json();
    assert_eq!(read, json!({ "routes": routes }));
    let out = |asset: &str| Target::Asset { direction: Direction::Out, asset: asset.to_owned() };
    let payout = CommandKind::PayoutSend;
    assert!(command(&context, &acme, payout, "a", None, out("ETH")).await);
    assert!(command(&context, &acme, payout, "b", None, out("ETH")).await);
    assert!(command(&context, &other, payout, "c", None, out("ETH")).await);
    let leased = one.lease(1).await;
    assert_eq!(leased[0]["body"]["key"], "a");
    assert!(two.lease(10).await.is_empty(), "no route leads to it");
    // A route for all is none of a test client, whose money may be simulated.
    let for_all = json!({"partner": null, "asset": "ETH", "direction": "out", "connector": "two"});
    let to_two = json!({"partner": "acme", "asset": "ETH", "direction": "out", "connector": "two"});
    put(json!([to_two, for_all]), 200).await;
    let moved = two.lease(10).await;
    assert_eq!(moved.len(), 1, "{moved:?}");
    assert_eq!(moved[0]["body"]["key"], "b", "what was leased stays, the rest follows");
    for wrong in [
        json!([{"partner": null, "direction": "out", "connector": "two"}]),
        json!([{"partner": null, "method": "creditCard", "asset": "ETH", "direction": "out",
            "connector": "two"}]),
        json!([{"partner": "nobody", "asset": "ETH", "direction": "out", "connector": "two"}]),
        json!([{"partner": null, "asset": "ETH", "direction": "out", "connector": "nobody"}]),
        json!([{"partner": null, "asset": "COWRY", "direction": "out", "connector": "two"}]),
        json!([{"partner": null, "asset": "ETH", "direction": "up", "connector": "two"}]),
    ] {
        put(wrong, 422).await;
    }
    let kept = context.admin(Method::GET, "/admin/v1/routes", json!({})).await.json();
    assert_eq!(kept["routes"][0], to_two, "what is refused has changed nothing");
}

#[tokio::test]
async fn an_event_is_taken_once_and_its_id_is_for_one_body() {
    let context = TestContext::start().await;
    let (cards, chain) = (
        Connector::new(&context, "cards", &["payment.create"]).await,
        Connector::new(&context, "chain", &["payout.send"]).await,
    );
    let event = json!({"id": "evt-1", "kind": "health", "occurredAt": "2026-03-01T12:00:00Z",
        "outcome": "well", "unknown": {"b": 1, "a": [true, null]}});
    assert_eq!(cards.event(event.clone()).await.json(), json!({"duplicate": false}));
    assert_eq!(cards.event(event.clone()).await.json(), json!({"duplicate": true}));
    let reordered = r#"{"unknown": {"a": [true, null], "b": 1}, "outcome": "well", "id": "evt-1",
        "occurredAt": "2026-03-01T12:00:00Z", "kind": "health"}"#;
    let again = cards.call_bytes(Method::POST, "/connectors/v1/events", reordered.into()).await;
    assert_eq!(again.json(), json!({"duplicate": true}));
    let mut other = event.clone();
    other["outcome"] = json!("ill");
    cards.event(other.clone()).await.assert_status(409);
    assert_eq!(chain.event(other).await.json(), json!({"duplicate": false}), "ids are its own");
    let mut large = json!({"id": "evt-2", "kind": "health", "occurredAt": "2999-01-01T00:00:00Z"});
    for number in 0..10_000 {
        large[format!("unknown{number}")] = json!(number);
    }
    cards.event(large).await.assert_status(200);
    for wrong in [json!({}), json!([]), json!({"id": "e", "kind": "guess"})] {
        let refused = cards.event(wrong).await;
        assert!(refused.assert_status(422).json()["error"].is_string());
    }
}

#[tokio::test]
async fn of_many_reports_at_once_one_is_the_first() {
    let context = TestContext::start().await;
    let cards = Connector::new(&context, "cards", &["payment.create"]).await;
    let event = json!({"id": "evt-1", "kind": "health", "occurredAt": "2026-03-01T12:00:00Z"});
    let reports = (0..12).map(|_| {
        let (cards, event) = (cards.clone(), event.clone());
        tokio::spawn(async move { cards.event(event).await.assert_status(200).json() })
    });
    let answers = futures::future::join_all(reports.collect::<Vec<_>>()).await;
    let firsts = answers.into_iter().filter(|a| a.as_ref().unwrap()["duplicate"] == false);
    assert_eq!(firsts.count(), 1);
}
