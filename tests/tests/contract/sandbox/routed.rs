//! Orders of a test client that a connector of its own serves: nothing about them is simulated, for the
//! coins and the money that follow are real. Without a route for those, the sandbox sends them.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::connector::Connector;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::partner::Partner;
use rampart_tests::staff::Staff;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::path;

const KINDS: [&str; 4] = ["payment.create", "payout.send", "deposit.address", "transfer.send"];
/// Valid, and nobody's.
const ADDRESS: &str = "0x52908400098527886E0F7030069857D2E4169EE7";

/// A test client whose purchases of BTC and sales of ETH its own connector serves.
async fn routed(context: &TestContext) -> (Partner, Connector) {
    let legs = [
        ("method", "creditCard", "in"),
        ("asset", "BTC", "out"),
        ("asset", "ETH", "in"),
        ("method", "bankTransfer", "out"),
    ];
    routed_by(context, &legs).await
}

/// A test client with these legs at its own connector.
async fn routed_by(context: &TestContext, legs: &[(&str, &str, &str)]) -> (Partner, Connector) {
    let acme = context.partner("acme").await;
    let own = Connector::new(context, "own", &KINDS).await;
    let route = |(leg, of, direction): &(&str, &str, &str)| json!({"partner": "acme", *leg: of, "direction": direction, "connector": "own"});
    let routes: Vec<_> = legs.iter().map(route).collect();
    let routes = json!({ "routes": routes });
    context.admin(Method::PUT, "/admin/v1/routes", routes).await.assert_status(200);
    (acme, own)
}

/// Commands of this kind, leased.
async fn leased(own: &Connector, kind: &str) -> Vec<Value> {
    let wanted = json!({ "kinds": [kind], "max": 10 });
    let leased = own.call(Method::POST, "/connectors/v1/commands/lease", wanted).await;
    leased.assert_status(200).json().as_array().unwrap().clone()
}

/// A guest's sale of 0.1 ETH to an address of the connector.
async fn sold(context: &TestContext, acme: &Partner, own: &Connector) -> Value {
    context.core().fill_deposit_pools().await.unwrap();
    let pool = leased(own, "deposit.address").await.remove(0);
    own.report(&pool, "done", json!([{ "address": ADDRESS }])).await.assert_status(200);
    let token = format!("Bearer {}", acme.token().await);
    let post = async |path: &str, body: Value| {
        let request = acme.anonymous(Method::POST, path).header("authorization", &token);
        request.json(&body).send().await.assert_status(200).json()
    };
    let asked = json!({"currencyPair": "ETH-EUR", "cryptoAmount": 0.1});
    let quote = post("/api/v1/sell/quote", asked).await;
    post("/api/v1/sell/confirm", json!({"quote": quote["quote"]})).await
}

/// A report that these 0.1 ETH have arrived.
fn deposited() -> Value {
    json!({"id": "d-1", "kind": "deposit.received", "asset": "ETH", "amount": 0.1,
        "occurredAt": "2026-03-01T12:00:00Z", "providerReference": "0xdead", "address": ADDRESS,
        "transactionId": "0xdead", "confirmations": 12})
}

/// A report that an order of 100 EUR was paid.
fn paid(order: &OrderFixture) -> Value {
    json!({"id": "p-1", "kind": "payment.received", "partner": "acme",
        "occurredAt": "2026-03-01T12:00:00Z", "orderId": order.id, "providerReference": "p-1",
        "amount": 100, "currency": "EUR"})
}

#[tokio::test]
async fn no_payment_is_simulated_that_real_coins_would_follow() {
    let context = TestContext::start().await;
    let (acme, own) = routed(&context).await;
    let mut staff = Staff::signed_in(&context, &acme, "developer").await;
    let token = acme.token().await;
    let order = OrderFixture::confirmed(&acme, &token, json!(100), json!({})).await;
    let refused = async |events: &[&str]| {
        for event in events {
            let answer = acme.post(&path(&order, event), json!({})).await;
            answer.assert_status(409).assert_codes(&["ER999"]);
        }
    };
    let of_pending = ["payment-received", "payment-late", "payment-amount-wrong", "payment-denied"];
    refused(&of_pending).await;
    let by_staff = format!("/portal/sandbox/orders/{}/payment-received", order.id);
    staff.submit(&by_staff, &[]).await.assert_status(409);
    assert_eq!(order.seen(&context).await["status"], "pending");
    assert!(leased(&own, "payout.send").await.is_empty());

    let create = leased(&own, "payment.create").await.remove(0);
    own.report(&create, "done", json!({})).await.assert_status(200);
    own.event(paid(&order)).await.assert_status(200);
    order.event(&context, "hold").await.assert_status(200);
    refused(&["release", "refund", "coins-sent"]).await;
    assert_eq!(order.seen(&context).await["status"], "blocked");
    assert!(leased(&own, "payout.send").await.is_empty());
    order.event(&context, "release").await.assert_status(200);
    assert_eq!(leased(&own, "payout.send").await.len(), 1, "an operator's word counts");
}

#[tokio::test]
async fn no_deposit_is_simulated_that_real_money_would_follow() {
    let context = TestContext::start().await;
    let (acme, own) = routed(&context).await;
    let sale = sold(&context, &acme, &own).await;
    assert_eq!(sale["walletAddress"], ADDRESS);
    let refused = async |events: &[&str]| {
        for event in events {
            let path = format!("/api/v2/sandbox/sell/orders/{}/{event}", sale["orderId"]);
            acme.post(&path, json!({})).await.assert_status(409).assert_codes(&["ER999"]);
        }
    };
    refused(&["deposit-received", "deposit-late", "deposit-amount-wrong"]).await;
    context.core().command_transfers().await.unwrap();
    assert!(leased(&own, "transfer.send").await.is_empty());

    own.event(deposited()).await.assert_status(200);
    let sale = OrderFixture { id: sale["orderId"].as_i64().unwrap(), pay_path: String::new() };
    sale.event(&context, "hold").await.assert_status(200);
    refused(&["release", "paid-out", "refund"]).await;
    assert_eq!(sale.seen(&context).await["status"], "blocked");
    assert!(leased(&own, "transfer.send").await.is_empty());
}

#[tokio::test]
async fn the_sandbox_sends_the_coins_of_a_payment_at_a_connector_without_a_route() {
    let context = TestContext::start().await;
    let (acme, own) = routed_by(&context, &[("method", "creditCard", "in")]).await;
    let token = acme.token().await;
    // A magic value decides nothing about money that has really come in.
    let members = json!({"partnerOrderIdentifier": "sandbox-returned"});
    let order = OrderFixture::confirmed(&acme, &token, json!(100), members).await;
    acme.post(&path(&order, "payment-received"), json!({})).await.assert_status(409);
    let create = leased(&own, "payment.create").await.remove(0);
    assert_eq!(create["body"]["orderId"], order.id);
    own.report(&create, "done", json!({})).await.assert_status(200);
    own.event(paid(&order)).await.assert_status(200);
    for _ in 0..2 {
        context.clock().advance(TimeDelta::seconds(1));
        context.core().settle_sandbox_orders().await.unwrap();
    }
    assert_eq!(order.seen(&context).await["status"], "completed");
    assert!(leased(&own, "payout.send").await.is_empty());
}

#[tokio::test]
async fn no_live_connector_sends_the_coins_of_what_a_test_client_was_paid() {
    let context = TestContext::start().await;
    let live = Connector::of_live(&context).await;
    let routes = "/admin/v1/routes";
    let of_live = context.admin(Method::GET, routes, json!({})).await.json();
    let (acme, own) = routed_by(&context, &[("method", "creditCard", "in")]).await;
    let token = acme.token().await;
    let order = OrderFixture::confirmed(&acme, &token, json!(100), json!({})).await;
    let create = leased(&own, "payment.create").await.remove(0);
    own.report(&create, "done", json!({})).await.assert_status(200);
    context.admin(Method::PUT, routes, of_live).await.assert_status(200);
    context.clock().advance(TimeDelta::seconds(1));
    let path = "/admin/v1/partners/acme";
    context.admin(Method::PATCH, path, json!({"mode": "live"})).await.assert_status(200);

    own.event(paid(&order)).await.assert_status(200);
    assert!(leased(&live, "payout.send").await.is_empty());
    for _ in 0..2 {
        context.clock().advance(TimeDelta::seconds(1));
        context.core().settle_sandbox_orders().await.unwrap();
    }
    assert_eq!(order.seen(&context).await["status"], "completed");
}

#[tokio::test]
async fn no_connector_sends_the_coins_of_a_simulated_payment() {
    let context = TestContext::start().await;
    let (acme, own) = routed_by(&context, &[("asset", "BTC", "out")]).await;
    let token = acme.token().await;
    let order = OrderFixture::confirmed(&acme, &token, json!(100), json!({})).await;
    acme.post(&path(&order, "payment-received"), json!({})).await.assert_status(200);
    assert!(leased(&own, "payout.send").await.is_empty());
}

#[tokio::test]
async fn the_sandbox_sends_the_money_of_coins_at_a_connector_without_a_route() {
    let context = TestContext::start().await;
    let (acme, own) = routed_by(&context, &[("asset", "ETH", "in")]).await;
    let sale = sold(&context, &acme, &own).await;
    assert_eq!(sale["walletAddress"], ADDRESS);
    own.event(deposited()).await.assert_status(200);
    context.core().command_transfers().await.unwrap();
    context.clock().advance(TimeDelta::seconds(1));
    context.core().settle_sales().await.unwrap();
    let sale = OrderFixture { id: sale["orderId"].as_i64().unwrap(), pay_path: String::new() };
    assert_eq!(sale.seen(&context).await["status"], "completed");
    assert!(leased(&own, "transfer.send").await.is_empty());
}
