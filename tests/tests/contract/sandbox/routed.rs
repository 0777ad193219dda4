//! Orders of a test client that a connector of its own serves: nothing about them is simulated, for the
//! coins and the money that follow are real.

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
    let acme = context.partner("acme").await;
    let own = Connector::new(context, "own", &KINDS).await;
    let route = |leg: &str, of: &str, direction: &str| json!({"partner": "acme", leg: of, "direction": direction, "connector": "own"});
    let routes = json!({"routes": [
        route("method", "creditCard", "in"),
        route("asset", "BTC", "out"),
        route("asset", "ETH", "in"),
        route("method", "bankTransfer", "out"),
    ]});
    context.admin(Method::PUT, "/admin/v1/routes", routes).await.assert_status(200);
    (acme, own)
}

/// Commands of this kind, leased.
async fn leased(own: &Connector, kind: &str) -> Vec<Value> {
    let wanted = json!({ "kinds": [kind], "max": 10 });
    let leased = own.call(Method::POST, "/connectors/v1/commands/lease", wanted).await;
    leased.assert_status(200).json().as_array().unwrap().clone()
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
    let paid = json!({"id": "p-1", "kind": "payment.received", "partner": "acme",
        "occurredAt": "2026-03-01T12:00:00Z", "orderId": order.id, "providerReference": "p-1",
        "amount": 100, "currency": "EUR"});
    own.event(paid).await.assert_status(200);
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
    context.core().fill_deposit_pools().await.unwrap();
    let pool = leased(&own, "deposit.address").await.remove(0);
    own.report(&pool, "done", json!([{ "address": ADDRESS }])).await.assert_status(200);
    let token = format!("Bearer {}", acme.token().await);
    let post = async |path: &str, body: Value| {
        let request = acme.anonymous(Method::POST, path).header("authorization", &token);
        request.json(&body).send().await.assert_status(200).json()
    };
    let asked = json!({"currencyPair": "ETH-EUR", "cryptoAmount": 0.1});
    let quote = post("/api/v1/sell/quote", asked).await;
    let sale = post("/api/v1/sell/confirm", json!({"quote": quote["quote"]})).await;
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

    let deposit = json!({"id": "d-1", "kind": "deposit.received", "asset": "ETH", "amount": 0.1,
        "occurredAt": "2026-03-01T12:00:00Z", "providerReference": "0xdead", "address": ADDRESS,
        "transactionId": "0xdead", "confirmations": 12});
    own.event(deposit).await.assert_status(200);
    let sale = OrderFixture { id: sale["orderId"].as_i64().unwrap(), pay_path: String::new() };
    sale.event(&context, "hold").await.assert_status(200);
    refused(&["release", "paid-out", "refund"]).await;
    assert_eq!(sale.seen(&context).await["status"], "blocked");
    assert!(leased(&own, "transfer.send").await.is_empty());
}
