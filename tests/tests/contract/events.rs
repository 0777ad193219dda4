//! The event log: what it shows, how it is read on, and telling of an event again.

use chrono::TimeDelta;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::partner::Partner;
use rampart_tests::receiver::{Reaction, Receiver};
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

const EVENTS: &str = "/api/v2/events";
const NOBODY: &str = "00000000-0000-7000-8000-000000000000";

async fn log(partner: &Partner, query: &str) -> Vec<Value> {
    let answer = partner.get(&format!("{EVENTS}{query}")).await;
    answer.assert_status(200);
    answer.json().as_array().unwrap().clone()
}

async fn redeliver(partner: &Partner, event: &Value) -> Value {
    let path = format!("{EVENTS}/{}/redeliver", event["id"].as_str().unwrap());
    partner.post(&path, json!({})).await.assert_status(200).json()
}

/// The cursor of the log, once there is one: transactions of other tests end first.
async fn cursor(context: &TestContext, partner: &Partner) -> String {
    until("the cursor passes an event", SOON, async || {
        context.core().mark_transactions().await.unwrap();
        let page = partner.get(EVENTS).await;
        page.header("x-next-cursor").map(str::to_owned)
    })
    .await
}

/// An order that was paid, held and refunded.
async fn eventful(context: &TestContext, partner: &Partner) -> OrderFixture {
    let order = OrderFixture::order(context, partner, None, None).await;
    for event in ["payment-received", "hold", "refund"] {
        order.event(context, event).await.assert_status(200);
        context.clock().advance(TimeDelta::seconds(1));
    }
    order
}

#[tokio::test]
async fn the_log_tells_what_happened_oldest_first() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = eventful(&context, &acme).await;
    let events = log(&acme, "").await;
    let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["order.paid", "order.blocked", "order.refunded"]);
    let first = &events[0];
    let mut members: Vec<_> = first.as_object().unwrap().keys().collect();
    members.sort();
    assert_eq!(members, ["data", "id", "timestamp", "type"]);
    assert!(first["timestamp"].as_str().unwrap().ends_with('Z'));
    let data =
        json!({"orderId": order.id, "partnerOrderIdentifier": "shop-7", "status": "in progress"});
    assert_eq!(first["data"], data);
    let paid = log(&acme, "?type=order.paid").await;
    assert_eq!(paid, events[..1]);
}

#[tokio::test]
async fn the_log_is_read_on_after_the_last_event_seen() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    eventful(&context, &acme).await;
    let events = log(&acme, "").await;
    let after = |event: &Value| format!("?after={}", event["id"].as_str().unwrap());
    assert_eq!(log(&acme, &after(&events[0])).await, events[1..]);
    assert_eq!(log(&acme, &after(&events[2])).await, [] as [Value; 0]);
    // Longer than any transaction.
    context.clock().advance(TimeDelta::minutes(11));
    let page = acme.get(&format!("{EVENTS}?limit=2")).await;
    assert_eq!(page.json().as_array().unwrap()[..], events[..2]);
    assert_eq!(page.header("x-next-cursor"), events[1]["id"].as_str());
    let link = page.header("link").unwrap();
    let next = link.trim_start_matches('<').split('>').next().unwrap();
    let last = acme.get(next).await;
    assert_eq!(last.json().as_array().unwrap()[..], events[2..]);
    assert_eq!(last.header("link"), None);
}

#[tokio::test]
async fn the_cursor_waits_for_events_that_may_still_be_overtaken() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    order.event(&context, "cancel").await.assert_status(200);
    let page = acme.get(EVENTS).await;
    assert_eq!(page.json().as_array().unwrap().len(), 1, "it is shown at once");
    assert_eq!(page.header("x-next-cursor"), None);
    context.clock().advance(TimeDelta::minutes(1));
    assert_eq!(page.json()[0]["id"], cursor(&context, &acme).await);
}

#[tokio::test]
async fn an_event_that_is_committed_late_is_not_passed_over() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let late = context.clock().uuid().unwrap();
    let mut slow = context.db().begin().await.unwrap();
    sqlx::query(
        "insert into event (client_id, event_id, type, payload, created_at) \
         select client_id, $1, 'user.created', '{}', $2 from client where slug = 'acme'",
    )
    .bind(late)
    .bind(context.clock().now())
    .execute(&mut *slow)
    .await
    .unwrap();
    let order = OrderFixture::order(&context, &acme, None, None).await;
    order.event(&context, "cancel").await.assert_status(200);
    context.clock().advance(TimeDelta::minutes(1));
    context.core().mark_transactions().await.unwrap();
    let page = acme.get(EVENTS).await;
    let seen = page.json();
    assert_eq!(seen.as_array().unwrap().len(), 1);
    assert_eq!(page.header("x-next-cursor"), None, "an earlier one is still being written");

    slow.commit().await.unwrap();
    let cursor = cursor(&context, &acme).await;
    let events = log(&acme, "").await;
    let ids: Vec<_> = events.iter().map(|event| event["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [late.to_string().as_str(), seen[0]["id"].as_str().unwrap()]);
    assert_eq!(cursor, ids[1]);
    assert_eq!(log(&acme, &format!("?after={cursor}")).await, [] as [Value; 0]);
}

#[tokio::test]
async fn what_is_no_filter_is_refused() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for query in ["?after=7", "?type=order.exploded", "?limit=0", "?limit=101", "?limit=many"] {
        let answer = acme.get(&format!("{EVENTS}{query}")).await;
        answer.assert_status(400).assert_codes(&["ER048"]);
    }
}

#[tokio::test]
async fn nobody_sees_or_sends_anothers_events() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    eventful(&context, &acme).await;
    assert_eq!(log(&rival, "").await, [] as [Value; 0]);
    let event = log(&acme, "").await[0]["id"].as_str().unwrap().to_owned();
    let foreign = rival.post(&format!("{EVENTS}/{event}/redeliver"), json!({})).await;
    let absent = rival.post(&format!("{EVENTS}/{NOBODY}/redeliver"), json!({})).await;
    let malformed = rival.post(&format!("{EVENTS}/7/redeliver"), json!({})).await;
    foreign.assert_status(404).assert_codes(&["ER998"]);
    assert_eq!(foreign.text(), absent.text());
    assert_eq!(foreign.text(), malformed.text());
}

#[tokio::test]
async fn an_event_is_told_again_with_its_id() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    host.react(Reaction::status(410));
    assert_eq!(context.core().deliver_due().await.unwrap(), 1);
    host.react(Reaction::status(200));
    let event = &log(&acme, "").await[0];
    let again = redeliver(&acme, event).await;
    assert_eq!((&again["id"], &again["type"]), (&event["id"], &event["type"]));
    assert_eq!(again["deliveries"], 1);
    assert_eq!(redeliver(&acme, event).await["deliveries"], 1, "and no second one beside it");
    assert_eq!(context.core().deliver_due().await.unwrap(), 1);
    let [first, second] = &host.heard()[..] else { panic!("not two requests") };
    assert_eq!(first.header("webhook-id"), event["id"].as_str().unwrap());
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"));
    assert_eq!(first.body, second.body);
}

#[tokio::test]
async fn an_event_that_nobody_listens_to_is_told_to_nobody() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    eventful(&context, &acme).await;
    let event = &log(&acme, "").await[0];
    assert_eq!(redeliver(&acme, event).await["deliveries"], 0);
    assert_eq!(context.core().deliver_due().await.unwrap(), 0);
}
