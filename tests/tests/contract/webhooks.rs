//! Webhook endpoints: registering them, who is told what, and when nobody is any more.

use http::Method;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::partner::Partner;
use rampart_tests::receiver::{Reaction, Receiver};
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};
use standardwebhooks::Webhook;

const WEBHOOKS: &str = "/api/v2/webhooks";
const NOBODY: &str = "00000000-0000-7000-8000-000000000000";
const ENDPOINTS_MAX: usize = 50;

async fn register(partner: &Partner, body: Value) -> Value {
    partner.post(WEBHOOKS, body).await.assert_status(200).json()
}

async fn listed(partner: &Partner) -> Vec<Value> {
    partner.get(WEBHOOKS).await.assert_status(200).json().as_array().unwrap().clone()
}

fn path(endpoint: &Value) -> String {
    format!("{WEBHOOKS}/{}", endpoint["id"].as_str().unwrap())
}

async fn remove(partner: &Partner, endpoint: &Value) -> Value {
    let answer = partner.request(Method::DELETE, &path(endpoint)).send().await;
    answer.assert_status(200).json()
}

async fn deliver(context: &TestContext) -> usize {
    context.core().deliver_due().await.unwrap()
}

/// An order that is paid and then held: `order.paid` and `order.blocked`.
async fn paid_and_held(context: &TestContext, partner: &Partner) -> OrderFixture {
    let order = OrderFixture::order(context, partner, None, None).await;
    for event in ["payment-received", "hold"] {
        order.event(context, event).await.assert_status(200);
    }
    order
}

fn types(host: &Receiver) -> Vec<String> {
    let kind =
        |heard: &rampart_tests::receiver::Heard| heard.json()["type"].as_str().map(Into::into);
    let mut types: Vec<String> = host.heard().iter().filter_map(kind).collect();
    types.sort();
    types
}

#[tokio::test]
async fn an_endpoint_is_registered_listed_and_removed() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let url = "https://shop.example/hook?shop=7";
    let made = register(&acme, json!({"url": url, "events": ["order.paid", "user.created"]})).await;
    let mut members: Vec<_> = made.as_object().unwrap().keys().collect();
    members.sort();
    assert_eq!(members, ["createdAt", "disabled", "disabledAt", "events", "id", "url"]);
    assert_eq!(made["url"], url);
    assert_eq!(made["events"], json!(["order.paid", "user.created"]));
    assert_eq!((&made["disabled"], &made["disabledAt"]), (&json!(false), &Value::Null));
    let all = register(&acme, json!({"url": url, "events": null})).await;
    assert_eq!(all["events"], Value::Null);
    let ids = |endpoints: &[Value]| endpoints.iter().map(|e| e["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&listed(&acme).await), ids(&[made.clone(), all.clone()]));
    assert_eq!(remove(&acme, &made).await["id"], made["id"]);
    assert_eq!(ids(&listed(&acme).await), ids(&[all]));
    let answer = acme.request(Method::DELETE, &path(&made)).send().await;
    answer.assert_status(404).assert_codes(&["ER998"]);
}

#[tokio::test]
async fn what_is_no_endpoint_is_refused() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let live = context.partner_of(json!({"slug": "live", "name": "Live", "mode": "live"})).await;
    for url in [json!("http://shop.example"), json!("shop"), json!(""), json!(7), json!(null)] {
        acme.post(WEBHOOKS, json!({"url": url})).await.assert_codes(&["ER046"]);
    }
    let loopback = json!({"url": "http://127.0.0.1:8080/hook"});
    register(&acme, loopback.clone()).await;
    live.post(WEBHOOKS, loopback).await.assert_status(400).assert_codes(&["ER046"]);
    for events in [json!([]), json!("order.paid"), json!(["order.exploded"]), json!([7])] {
        let body = json!({"url": "https://shop.example", "events": events});
        let refused = acme.post(WEBHOOKS, body).await;
        refused.assert_status(400).assert_codes(&["ER048"]);
        assert_eq!(refused.json()["errors"]["ER048"]["field"], "events");
    }
    let both = json!({"url": "shop", "events": []});
    acme.post(WEBHOOKS, both).await.assert_codes(&["ER046", "ER048"]);
}

#[tokio::test]
async fn a_partner_has_fifty_endpoints_and_no_more_however_it_asks() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let hook = |number: usize| json!({"url": format!("https://shop.example/{number}")});
    for number in 0..ENDPOINTS_MAX - 10 {
        register(&acme, hook(number)).await;
    }
    let asked = (0..15).map(|number| {
        let (acme, body) = (acme.clone(), hook(ENDPOINTS_MAX + number));
        async move { acme.post(WEBHOOKS, body).await.status() }
    });
    let mut statuses = futures::future::join_all(asked).await;
    statuses.sort_unstable();
    assert_eq!(statuses[..10], [200; 10]);
    assert_eq!(statuses[10..], [409; 5]);
    remove(&acme, &listed(&acme).await[3]).await;
    register(&acme, json!({"url": "https://shop.example/again"})).await;
    assert_eq!(listed(&acme).await.len(), ENDPOINTS_MAX);
}

#[tokio::test]
async fn a_repeated_key_registers_one_endpoint() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for _ in 0..2 {
        let request = acme.request(Method::POST, WEBHOOKS).header("idempotency-key", "k1");
        let answer = request.json(&json!({"url": "https://shop.example"})).send().await;
        answer.assert_status(200);
    }
    assert_eq!(listed(&acme).await.len(), 1);
}

#[tokio::test]
async fn each_endpoint_is_told_of_what_it_listens_to() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let (all, some, other) =
        (Receiver::start().await, Receiver::start().await, Receiver::start().await);
    register(&acme, json!({"url": all.url("/all")})).await;
    register(&acme, json!({"url": some.url("/some?a=b"), "events": ["order.blocked"]})).await;
    register(&rival, json!({"url": other.url("/")})).await;
    let order = paid_and_held(&context, &acme).await;
    assert_eq!(deliver(&context).await, 3);
    assert_eq!(types(&all), ["order.blocked", "order.paid"]);
    assert_eq!(types(&some), ["order.blocked"]);
    assert_eq!(types(&other), [] as [&str; 0]);
    let heard = &some.heard()[0];
    assert_eq!(heard.target, "/some?a=b", "nothing is added to an endpoint's URL");
    assert_eq!(heard.json()["data"]["orderId"], order.id);
    let webhook = Webhook::new(&acme.webhook_secret).unwrap();
    webhook.verify(&heard.body, &heard.headers).unwrap();
}

#[tokio::test]
async fn a_confirm_is_told_to_the_endpoints_that_listen() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (created, paid) = (Receiver::start().await, Receiver::start().await);
    register(&acme, json!({"url": created.url("/"), "events": ["order.created"]})).await;
    register(&acme, json!({"url": paid.url("/"), "events": ["order.paid"]})).await;
    let token = acme.token().await;
    let order = OrderFixture::confirmed(&acme, &token, json!(100), json!({})).await;
    assert_eq!(deliver(&context).await, 1);
    let [heard] = &created.heard()[..] else { panic!("not one request") };
    assert_eq!(heard.json()["type"], "order.created");
    assert_eq!(heard.json()["data"]["orderId"], order.id);
    assert_eq!(paid.heard().len(), 0);
}

#[tokio::test]
async fn the_id_of_a_delivery_has_the_time_of_its_event_and_is_of_its_endpoint_alone() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for path in ["/one", "/two"] {
        register(&acme, json!({"url": format!("https://shop.example{path}")})).await;
    }
    let token = acme.token().await;
    OrderFixture::confirmed(&acme, &token, json!(100), json!({})).await;
    let pairs: Vec<(uuid::Uuid, uuid::Uuid)> =
        sqlx::query_as("select delivery_id, event_id from delivery")
            .fetch_all(context.db())
            .await
            .unwrap();
    let [(one, event), (other, _)] = pairs[..] else { panic!("{pairs:?}") };
    assert_ne!(one, other);
    for id in [one, other] {
        assert_eq!((id.get_version_num(), id.get_variant()), (8, uuid::Variant::RFC4122));
        assert_eq!(id.as_bytes()[..6], event.as_bytes()[..6], "the time in milliseconds");
    }
}

#[tokio::test]
async fn a_callback_is_sent_beside_the_endpoints() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    register(&acme, json!({"url": host.url("/endpoint"), "events": ["order.cancelled"]})).await;
    OrderFixture::ended(&context, &acme, &host.url("/callback")).await;
    assert_eq!(deliver(&context).await, 2);
    let mut targets: Vec<_> = host
        .heard()
        .iter()
        .map(|heard| heard.target.split('?').next().unwrap().to_owned())
        .collect();
    targets.sort();
    assert_eq!(targets, ["/callback", "/endpoint"]);
}

#[tokio::test]
async fn gone_disables_the_endpoint_and_what_waits_for_it() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    let endpoint = register(&acme, json!({"url": host.url("/hook")})).await;
    host.react(Reaction::status(500));
    paid_and_held(&context, &acme).await;
    assert_eq!(deliver(&context).await, 2);
    host.react(Reaction::status(410));
    OrderFixture::order(&context, &acme, None, None)
        .await
        .event(&context, "cancel")
        .await
        .assert_status(200);
    assert_eq!(deliver(&context).await, 1);
    let seen = &listed(&acme).await[0];
    assert_eq!((&seen["id"], &seen["disabled"]), (&endpoint["id"], &json!(true)));
    assert!(seen["disabledAt"].is_string());
    context.clock().advance(chrono::TimeDelta::days(1));
    deliver(&context).await;
    OrderFixture::order(&context, &acme, None, None)
        .await
        .event(&context, "cancel")
        .await
        .assert_status(200);
    assert_eq!(deliver(&context).await, 0, "nothing is written for it any more");
    assert_eq!(host.heard().len(), 3, "and what was written is not sent");
    let answer = context.admin(Method::GET, "/admin/v1/deliveries?partner=acme", json!({})).await;
    let told = answer.assert_status(200).json();
    assert!(told.as_array().unwrap().iter().all(|told| told["state"] == "disabled"), "{told}");
}

#[tokio::test]
async fn a_removed_endpoint_hears_no_more() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    let endpoint = register(&acme, json!({"url": host.url("/hook")})).await;
    paid_and_held(&context, &acme).await;
    remove(&acme, &endpoint).await;
    deliver(&context).await;
    assert_eq!(host.heard().len(), 0);
}

#[tokio::test]
async fn a_redelivery_reaches_endpoints_that_came_later_and_no_disabled_one() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (early, late) = (Receiver::start().await, Receiver::start().await);
    register(&acme, json!({"url": early.url("/"), "events": ["order.paid"]})).await;
    early.react(Reaction::status(410));
    paid_and_held(&context, &acme).await;
    assert_eq!(deliver(&context).await, 1);
    register(&acme, json!({"url": late.url("/"), "events": ["order.paid"]})).await;
    let events = acme.get("/api/v2/events").await.json();
    let [paid, blocked] = [0, 1].map(|at: usize| events[at]["id"].as_str().unwrap().to_owned());
    for (event, deliveries) in [(paid, 1), (blocked, 0)] {
        let path = format!("/api/v2/events/{event}/redeliver");
        let told = acme.post(&path, json!({})).await.assert_status(200).json();
        assert_eq!(told["deliveries"], deliveries);
    }
    deliver(&context).await;
    assert_eq!((early.heard().len(), types(&late)), (1, vec!["order.paid".to_owned()]));
}

#[tokio::test]
async fn an_operator_sends_nothing_again_to_an_endpoint_that_is_off() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    let endpoint = register(&acme, json!({"url": host.url("/"), "events": ["order.paid"]})).await;
    host.react(Reaction::status(410));
    paid_and_held(&context, &acme).await;
    assert_eq!(deliver(&context).await, 1);
    let first = async || {
        let answer = context.admin(Method::GET, "/admin/v1/deliveries", json!({})).await;
        answer.assert_status(200).json()[0].clone()
    };
    let failed = first().await;
    let path = format!("/admin/v1/deliveries/{}/redeliver", failed["id"].as_str().unwrap());
    for state in ["switched off", "removed"] {
        let again = context.admin(Method::POST, &path, json!({})).await;
        assert!(again.assert_status(409).text().contains(state), "{state}");
        assert_eq!(first().await, failed, "{state}");
        if state == "switched off" {
            remove(&acme, &endpoint).await;
        }
    }
}

#[tokio::test]
async fn endpoints_are_their_partners_alone() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let endpoint = register(&acme, json!({"url": "https://shop.example"})).await;
    assert_eq!(listed(&rival).await, [] as [Value; 0]);
    let delete = async |path: String| rival.request(Method::DELETE, &path).send().await;
    let foreign = delete(path(&endpoint)).await;
    let absent = delete(format!("{WEBHOOKS}/{NOBODY}")).await;
    foreign.assert_status(404).assert_codes(&["ER998"]);
    assert_eq!(foreign.text(), absent.text());
    assert_eq!(listed(&acme).await.len(), 1);
}
