//! The operators' console.

use http::Method;
use rampart_tests::edge::Edge;
use serde_json::json;

use super::{Visitor, edge};
use crate::buyer::{order, order_of};

/// Pages of the console, by the name of their picture. `{order}` is an order's number,
/// `{reconciliation}` the id of one with differences.
const PAGES: [(&str, &str); 32] = [
    ("overview", ""),
    ("orders", "/orders"),
    ("order", "/orders/{order}"),
    ("order-hold", "/orders/{order}/hold"),
    ("reviews", "/reviews"),
    ("payments", "/payments"),
    ("payment-record", "/payments/~/record"),
    ("users", "/users"),
    ("savings-plans", "/savings-plans"),
    ("partners", "/partners"),
    ("partner", "/partners/shop"),
    ("partner-settings", "/partners/shop/settings"),
    ("staff", "/partners/shop/staff"),
    ("market", "/market"),
    ("methods", "/market/~/methods"),
    ("currencies", "/market/~/currencies"),
    ("maintenance", "/market/~/maintenance"),
    ("maintenance-plan", "/market/~/maintenance/plan"),
    ("routes", "/market/~/routes"),
    ("routes-replace", "/market/~/routes/replace"),
    ("ledger", "/ledger"),
    ("ledger-entries", "/ledger/entries"),
    ("reconciliations", "/ledger/reconciliations"),
    ("reconciliation", "/ledger/reconciliations/{reconciliation}"),
    ("reconciliation-upload", "/ledger/reconciliations/~/upload"),
    ("deliveries", "/deliveries"),
    ("mail", "/deliveries/~/mail"),
    ("connectors", "/connectors"),
    ("approvals", "/approvals"),
    ("operators", "/operators"),
    ("audit", "/audit"),
    ("audit-verification", "/audit/verification"),
];

/// The number of an order that is paid.
async fn paid_order(edge: &Edge) -> u64 {
    let partner = edge.partner("shop").await.authenticated().await;
    let order = order_of(&order(&partner).await);
    let paid = json!({"event": "payment-received"});
    let path = format!("/admin/v1/orders/{order}/events");
    edge.admin(Method::POST, &path, paid).await.assert_status(200);
    order
}

/// The id of a reconciliation with a difference.
async fn reconciliation(edge: &Edge) -> String {
    let statement = "date,amount,currency,reference,providerReference,name,iban\n\
                     2026-03-01,-20,EUR,fee,bank-2,Bank,NL91ABNA0417164300\n";
    let path = "/admin/v1/reconciliations?connector=manual";
    let made = edge.admin_bytes(Method::POST, path, statement.into()).await;
    made.assert_status(201).json()["id"].as_str().unwrap().to_owned()
}

/// Leads the cards of the partner `shop` to a connector, and has it invite somebody.
async fn set_up(edge: &Edge) {
    let cards = json!({"name": "cards", "capabilities": ["payment.create"]});
    edge.admin(Method::POST, "/admin/v1/connectors", cards).await.assert_status(201);
    let routes = json!({"routes": [
        {"partner": "shop", "method": "creditCard", "direction": "in", "connector": "cards"}]});
    edge.admin(Method::PUT, "/admin/v1/routes", routes).await.assert_status(200);
    let invited = json!({"email": "sue@shop.example", "role": "support"});
    let staff = "/admin/v1/partners/shop/staff";
    edge.admin(Method::POST, staff, invited).await.assert_status(201);
}

/// Signs in as a new operator who may do everything; the start of the console's URLs.
pub(super) async fn sign_in(visitor: &Visitor, edge: &Edge) -> String {
    let new = json!({"name": "ada", "roles": ["owner"]});
    let made = edge.admin(Method::POST, "/admin/v1/operators", new).await.assert_status(201).json();
    let console = format!("http://{}/console", edge.admin);
    visitor.browser.open(&console).await;
    visitor.browser.enter("input[name=token]", made["token"].as_str().unwrap()).await;
    visitor.browser.click("button.main").await;
    visitor.browser.shows("Overview").await;
    console
}

#[tokio::test]
async fn the_console_looks_as_it_should() {
    let edge = edge().await;
    let order = paid_order(&edge).await.to_string();
    let reconciliation = reconciliation(&edge).await;
    set_up(&edge).await;
    let mut visitor = Visitor::start().await;
    visitor.visit("console-sign-in", &format!("http://{}/console", edge.admin)).await;
    let console = sign_in(&visitor, &edge).await;
    for (name, path) in PAGES {
        let path = path.replace("{order}", &order).replace("{reconciliation}", &reconciliation);
        let url = format!("{console}{path}");
        visitor.visit(&format!("console-{name}"), &url).await;
    }
    visitor.end();
}
