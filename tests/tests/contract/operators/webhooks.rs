//! Webhook endpoints of partners, as operators see, test and remove them.

use rampart_tests::receiver::{Reaction, Receiver};

use super::*;

const PATH: &str = "/admin/v1/partners/acme/webhooks";

async fn listed(context: &TestContext) -> Vec<Value> {
    let list = context.admin(Method::GET, PATH, Value::Null).await;
    list.assert_status(200).json().as_array().unwrap().clone()
}

/// Registers an endpoint; its path.
async fn registered(context: &TestContext, host: &Receiver) -> String {
    let acme = context.partner("acme").await;
    let body = json!({"url": host.url("/hook"), "events": ["order.completed"]});
    let made = acme.post("/api/v2/webhooks", body).await.assert_status(200).json();
    format!("{PATH}/{}", made["id"].as_str().unwrap())
}

#[tokio::test]
async fn an_endpoint_is_listed_without_its_secret_and_tested_alone() {
    let context = TestContext::start().await;
    let host = Receiver::start().await;
    let path = registered(&context, &host).await;
    let support = Operator::new(&context, "ada", &["support"]).await;
    let sent = support.call(Method::POST, &format!("{path}/test"), Value::Null).await;
    let event = sent.assert_status(201).json()["eventId"].clone();
    host.react(Reaction::status(500));
    context.core().deliver_due().await.unwrap();
    let heard = host.heard();
    assert_eq!((heard.len(), &heard[0].json()["type"]), (1, &json!("webhook.test")));
    assert_eq!(heard[0].header("webhook-id"), event);
    let endpoint = &listed(&context).await[0];
    assert_eq!((&endpoint["state"], &endpoint["disabledAt"]), (&json!("active"), &Value::Null));
    assert!(endpoint["failingSince"].is_string(), "{endpoint}");
    assert_eq!(endpoint["events"], json!(["order.completed"]));
    assert!(!endpoint.to_string().contains("whsec_"), "{endpoint}");
    assert_eq!(audited(&context, "webhook.test").await, [("ada".into(), "acme".into())]);
}

#[tokio::test]
async fn a_disabled_endpoint_is_not_tested_and_a_removed_one_is_gone() {
    let context = TestContext::start().await;
    let host = Receiver::start().await;
    let path = registered(&context, &host).await;
    let test = format!("{path}/test");
    host.react(Reaction::status(410));
    context.admin(Method::POST, &test, Value::Null).await.assert_status(201);
    context.core().deliver_due().await.unwrap();
    assert_eq!(listed(&context).await[0]["state"], "disabled");
    let refused = context.admin(Method::POST, &test, Value::Null).await;
    assert!(refused.assert_status(409).text().contains("disabled"), "{}", refused.text());

    context.partner("beta").await;
    let elsewhere = path.replace("acme", "beta");
    context.admin(Method::DELETE, &elsewhere, Value::Null).await.assert_status(404);
    let viewer = Operator::new(&context, "eve", &["viewer"]).await;
    viewer.call(Method::DELETE, &path, Value::Null).await.assert_status(403);
    let ada = Operator::new(&context, "ada", &["platform"]).await;
    ada.call(Method::DELETE, &path, Value::Null).await.assert_status(204);
    assert!(listed(&context).await.is_empty());
    for (method, path) in [(Method::DELETE, &path), (Method::POST, &test)] {
        context.admin(method, path, Value::Null).await.assert_status(404);
    }
    assert_eq!(audited(&context, "webhook.remove").await, [("ada".into(), "acme".into())]);
}

#[tokio::test]
async fn the_query_of_an_address_is_shown_to_those_alone_who_may_send_there() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let url = "https://shop.example/hook?token=abc";
    let made = acme.post("/api/v2/webhooks", json!({ "url": url })).await.assert_status(200).json();
    let test = format!("{PATH}/{}/test", made["id"].as_str().unwrap());
    context.admin(Method::POST, &test, Value::Null).await.assert_status(201);
    let masked = "https://shop.example/hook?…";
    for (name, role, shown) in [("eve", "viewer", masked), ("ada", "support", url)] {
        let operator = Operator::new(&context, name, &[role]).await;
        for path in [PATH, "/admin/v1/deliveries"] {
            let rows = operator.get(path).await.assert_status(200).json();
            assert_eq!(rows[0]["url"], shown, "{role}: {path}");
        }
    }
}
