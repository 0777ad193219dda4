//! Pages of one thing each, in the portal and in the console.

use http::Method;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use rampart_tests::guests::component;
use rampart_tests::receiver::Receiver;
use rampart_tests::user::registration;
use serde_json::{Value, json};

use super::console::sign_in;
use super::{Visitor, edge};
use crate::buyer::{WALLET, order, order_of};
use crate::portal::joins;

/// Things of the partner `portal`, each by its id.
struct Things {
    order: u64,
    user: String,
    endpoint: String,
    event: String,
    delivery: String,
}

impl Things {
    /// Makes a paid order whose events an endpoint has taken, a user and a policy.
    async fn make(edge: &Edge) -> Self {
        let partner = edge.partner("portal").await.authenticated().await;
        let host = Receiver::start().await;
        let endpoint = partner.post("/api/v2/webhooks", json!({"url": host.url("/hook")})).await;
        let login = partner.register(&registration("ada")).await;
        let order = order_of(&order(&partner).await);
        create(edge, &format!("orders/{order}/events"), json!({"event": "payment-received"})).await;
        let policy = "/admin/v1/partners/portal/policies/fee";
        let pushed = edge.admin_bytes(Method::PUT, policy, component("tiered-fee")).await;
        pushed.assert_status(200);
        let deliveries = "/admin/v1/deliveries?partner=portal&state=delivered";
        let delivery = until("the event is delivered", SOON, async || {
            id_of_created(&edge.admin(Method::GET, deliveries, Value::Null).await.json())
        })
        .await;
        Self {
            order,
            user: text(&login["uuid"]),
            endpoint: text(&endpoint.json()["id"]),
            event: id_of_created(&partner.get("/api/v2/events").await.json()).unwrap(),
            delivery,
        }
    }
}

/// Makes something by the operators' API.
async fn create(edge: &Edge, path: &str, body: Value) -> Value {
    let made = edge.admin(Method::POST, &format!("/admin/v1/{path}"), body).await;
    assert!(made.status() < 300, "{path}: {}", made.text());
    made.json()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The id of the list's row about an order that was made.
fn id_of_created(list: &Value) -> Option<String> {
    let rows = list.as_array().unwrap();
    rows.iter().find(|row| row["type"] == "order.created").map(|row| text(&row["id"]))
}

#[tokio::test]
async fn pages_of_one_thing_in_the_portal_look_as_they_should() {
    let edge = edge().await;
    let Things { order, user, endpoint, event, delivery } = Things::make(&edge).await;
    let mut visitor = Visitor::start().await;
    visitor.visit("portal-forgot-password", &edge.url("/portal/forgot-password")).await;
    joins(&visitor.browser, &edge, "owner").await;
    for (name, path) in [
        ("order", format!("orders/{order}")),
        ("user", format!("users/{user}")),
        ("webhook", format!("webhooks/{endpoint}")),
        ("event", format!("events/{event}")),
        ("delivery", format!("deliveries/{delivery}")),
        ("policy", "policies/fee/versions/1".to_owned()),
        ("missing", "orders/7".to_owned()),
    ] {
        visitor.visit(&format!("portal-{name}"), &edge.url(&format!("/portal/{path}"))).await;
    }
    visitor.end();
}

/// Pages of the console about these things and others, by the name of their picture.
async fn pages_of_console(edge: &Edge, things: Things) -> [(&'static str, String); 16] {
    let Things { order, user, delivery, .. } = things;
    create(edge, &format!("orders/{order}/events"), json!({"event": "hold", "reason": "look"}))
        .await;
    let payment = json!({"kind": "received", "amount": 77, "currency": "EUR",
        "providerReference": "no number", "reason": "on the statement"});
    let payment = text(&create(edge, "payments", payment).await["id"]);
    let plan = json!({"cryptoCurrency": "BTC", "walletAddress": WALLET});
    let plan = text(&create(edge, &format!("users/{user}/dca-codes"), plan).await["code"]);
    let window = json!({"pair": "BTC-EUR", "startsAt": "2999-03-01T12:00:00Z",
        "endsAt": "2999-03-01T14:00:00Z", "reason": "upgrade of the node"});
    let window = text(&create(edge, "maintenance-windows", window).await["id"]);
    let cards = json!({"name": "cards", "capabilities": ["payment.create"]});
    create(edge, "connectors", cards).await;
    [
        ("user", format!("users/{user}")),
        ("payment", format!("payments/{payment}")),
        ("review", format!("reviews/order/{order}")),
        ("review-of-user", format!("reviews/user/{user}")),
        ("delivery", format!("deliveries/{delivery}")),
        ("savings-plan", format!("savings-plans/{plan}")),
        ("policy", "partners/portal/policies/fee".to_owned()),
        ("verification-keys", "partners/portal/verification-keys".to_owned()),
        ("connector", "connectors/cards".to_owned()),
        ("guests", "partners/portal/guests".to_owned()),
        ("operator", "operators/ada".to_owned()),
        ("operator-keys", "operators/~/keys".to_owned()),
        ("pair", "market/BTC-EUR".to_owned()),
        ("method", "methods/creditCard".to_owned()),
        ("window", format!("maintenance/{window}")),
        ("missing", "orders/7".to_owned()),
    ]
}

#[tokio::test]
async fn pages_of_one_thing_in_the_console_look_as_they_should() {
    let edge = edge().await;
    let things = Things::make(&edge).await;
    let pages = pages_of_console(&edge, things).await;
    let mut visitor = Visitor::start().await;
    let console = sign_in(&visitor, &edge).await;
    for (name, path) in pages {
        visitor.visit(&format!("console-{name}"), &format!("{console}/{path}")).await;
    }
    // A call that waits for a second operator.
    visitor.browser.open(&format!("{console}/market/BTC-EUR/price")).await;
    visitor.browser.enter("input[name=price]", "41234.56").await;
    visitor.browser.click("main form button").await;
    visitor.browser.shows("Another operator must agree first").await;
    visitor.visit("console-approval", &format!("{console}/approvals")).await;
    visitor.end();
}
