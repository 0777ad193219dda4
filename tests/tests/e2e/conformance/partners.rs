//! The partners' API, as a test client uses it.

use http::Method;
use rampart_api::ENDPOINTS;
use rampart_tests::edge::Edge;
use rampart_tests::user::registration;
use serde_json::{Value, json};

use super::{Api, WALLET, hold, purchase, register, trade, unlimit, unlimited};

#[tokio::test]
async fn the_service_is_as_its_document_says() {
    let edge = unlimited().await;
    let api = Api {
        name: "partners",
        endpoints: ENDPOINTS,
        endless_operations: ENDPOINTS.len(),
        base: edge.url(""),
        document: "/openapi.json",
        cases_per_operation: 2,
    };
    let planted = plant(&edge).await;
    hold(&edge, api, planted).await;
}

/// Prepares the edge for the run; the run's inputs as members of one object.
async fn plant(edge: &Edge) -> Value {
    let partner = edge.partner("conformance").await;
    let (ann, bob) = (registration("ann"), registration("bob"));
    let user = register(&partner, &ann).await;
    register(&partner, &bob).await;
    unlimit(edge, &user).await;
    let admin = async |what: &str, body: Value| {
        let path = format!("/admin/v1/users/{user}/{what}");
        edge.admin(Method::POST, &path, body).await.assert_status(201).json()
    };
    let account = json!({"type": "bankTransfer", "identifier": "NL91ABNA0417164300",
        "name": "Ada Lovelace", "verified": true});
    admin("accounts", account).await;
    let plan = admin("dca-codes", json!({"cryptoCurrency": "BTC", "walletAddress": WALLET})).await;
    let identifier = ann["identifier"].as_str().unwrap();
    let order = purchase(&partner, identifier).await;
    let completed = purchase(&partner, identifier).await;
    for event in [
        json!({"event": "payment-received"}),
        json!({"event": "coins-sent", "transactionId": "ab".repeat(32)}),
        json!({"event": "confirmed-on-chain"}),
    ] {
        let path = format!("/admin/v1/orders/{completed}/events");
        edge.admin(Method::POST, &path, event).await.assert_status(200);
    }
    let sell = json!({"currencyPair": "BTC-EUR", "cryptoAmount": 0.01});
    let sell_order = trade(&partner, identifier, "sell", sell, json!({})).await;
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
