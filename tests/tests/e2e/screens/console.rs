//! The operators' console.

use http::Method;
use rampart_tests::edge::Edge;
use serde_json::json;

use super::{Visitor, edge};
use crate::buyer::{WALLET, order_of, quote};

/// Pages of the console, by the name of their picture. `{order}` is an order's number.
const PAGES: [(&str, &str); 20] = [
    ("overview", ""),
    ("orders", "/orders"),
    ("order", "/orders/{order}"),
    ("order-hold", "/orders/{order}/hold"),
    ("reviews", "/reviews"),
    ("payments", "/payments"),
    ("payment-record", "/payments/~/record"),
    ("users", "/users"),
    ("partners", "/partners"),
    ("partner", "/partners/shop"),
    ("partner-settings", "/partners/shop/settings"),
    ("market", "/market"),
    ("ledger", "/ledger"),
    ("ledger-entries", "/ledger/entries"),
    ("deliveries", "/deliveries"),
    ("connectors", "/connectors"),
    ("approvals", "/approvals"),
    ("operators", "/operators"),
    ("audit", "/audit"),
    ("audit-verification", "/audit/verification"),
];

/// The number of an order that is paid.
async fn paid_order(edge: &Edge) -> u64 {
    let partner = edge.partner("shop").await.authenticated().await;
    let quote = quote(&partner).await["quote"].take();
    let body =
        json!({"quote": quote, "walletAddress": WALLET, "returnUrl": "https://shop.example"});
    let order = order_of(&partner.post("/api/v1/buy/confirm", body).await);
    let paid = json!({"event": "payment-received"});
    let path = format!("/admin/v1/orders/{order}/events");
    edge.admin(Method::POST, &path, paid).await.assert_status(200);
    order
}

#[tokio::test]
async fn the_console_looks_as_it_should() {
    let edge = edge().await;
    let order = paid_order(&edge).await.to_string();
    let new = json!({"name": "ada", "roles": ["owner"]});
    let made = edge.admin(Method::POST, "/admin/v1/operators", new).await.assert_status(201).json();
    let mut visitor = Visitor::start().await;
    let console = format!("http://{}/console", edge.admin);
    visitor.visit("console-sign-in", &console).await;
    visitor.browser.enter("input[name=token]", made["token"].as_str().unwrap()).await;
    visitor.browser.click("button.main").await;
    visitor.browser.shows("Overview").await;
    for (name, path) in PAGES {
        let url = format!("{console}{}", path.replace("{order}", &order));
        visitor.visit(&format!("console-{name}"), &url).await;
    }
    visitor.end();
}
