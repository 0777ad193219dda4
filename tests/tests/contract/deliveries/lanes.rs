//! A lane per endpoint: what one host does is felt by nobody else, and an order is told of in order.

use std::sync::Arc;

use chrono::TimeDelta;
use http::Method;
use rampart_api::workers;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::partner::Partner;
use rampart_tests::receiver::{Heard, Reaction, Receiver};
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};
use standardwebhooks::Webhook;

async fn listen(partner: &Partner, host: &Receiver) -> Value {
    let body = json!({"url": host.url("/hook")});
    partner.post("/api/v2/webhooks", body).await.assert_status(200).json()
}

async fn event(context: &TestContext, order: &OrderFixture, event: &str) {
    order.event(context, event).await.assert_status(200);
}

/// Two events of one order, told one after the other.
async fn paid_and_held(context: &TestContext, partner: &Partner) {
    let order = OrderFixture::order(context, partner, None, None).await;
    event(context, &order, "payment-received").await;
    event(context, &order, "hold").await;
}

async fn cancelled(context: &TestContext, partner: &Partner) {
    let order = OrderFixture::order(context, partner, None, None).await;
    event(context, &order, "cancel").await;
}

async fn deliver(context: &TestContext) -> usize {
    context.core().deliver_due().await.unwrap()
}

fn kinds(heard: &[Heard]) -> Vec<String> {
    heard.iter().map(|heard| heard.json()["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_dead_endpoint_costs_its_siblings_nothing() {
    const ORDERS: usize = 24;
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (dead, alive) = (Receiver::start().await, Receiver::start().await);
    dead.react(Reaction::Silence);
    listen(&acme, &dead).await;
    listen(&acme, &alive).await;
    for _ in 0..ORDERS {
        cancelled(&context, &acme).await;
    }
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let working = tokio::spawn(workers::work(Arc::clone(context.core()), stopped));
    until("the healthy endpoint is told of everything", SOON, async || {
        (alive.heard().len() == ORDERS).then_some(())
    })
    .await;
    assert!(dead.heard().len() < ORDERS, "a lane has places of its own");
    drop(stop);
    working.abort();
}

#[tokio::test]
async fn a_client_has_a_bounded_part_of_an_edge_in_which_its_endpoints_take_turns() {
    const ENDPOINTS: usize = 10;
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let host = Receiver::start().await;
    for number in 0..ENDPOINTS {
        let body = json!({"url": host.url(&format!("/hook/{number}"))});
        acme.post("/api/v2/webhooks", body).await.assert_status(200);
    }
    let beside = Receiver::start().await;
    listen(&rival, &beside).await;
    for _ in 0..8 {
        cancelled(&context, &acme).await;
    }
    cancelled(&context, &rival).await;
    assert_eq!(deliver(&context).await, 64 + 1);
    assert_eq!(beside.heard().len(), 1);
    for number in 0..ENDPOINTS {
        let target = format!("/hook/{number}");
        let told = host.heard().iter().filter(|heard| heard.target == target).count();
        assert!((6..=8).contains(&told), "{told} to {target}");
    }
    assert_eq!(deliver(&context).await, ENDPOINTS * 8 - 64);
}

#[tokio::test]
async fn an_events_first_attempt_waits_for_the_one_before_it() {
    let context = TestContext::start().await;
    let other = context.second_edge().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    listen(&acme, &host).await;
    host.react(Reaction::Silence);
    let order = OrderFixture::order(&context, &acme, None, None).await;
    event(&context, &order, "payment-received").await;
    let core = Arc::clone(context.core());
    let first = tokio::spawn(async move { core.deliver_due().await });
    host.heard_at_least(1).await;
    event(&context, &order, "hold").await;
    assert_eq!(deliver(&other).await, 0, "the one before it is under way on another edge");
    first.abort();
    host.react(Reaction::status(200));
    context.clock().advance(TimeDelta::seconds(31));
    assert_eq!(deliver(&other).await, 2);
    assert_eq!(kinds(&host.heard()), ["order.paid", "order.paid", "order.blocked"]);
}

#[tokio::test]
async fn what_was_claimed_for_a_host_that_is_away_waits_for_no_lease() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    listen(&acme, &host).await;
    host.react(Reaction::Close);
    paid_and_held(&context, &acme).await;
    assert_eq!(deliver(&context).await, 2, "the second one is claimed along with the first");
    assert_eq!(kinds(&host.heard()), ["order.paid"]);
    host.react(Reaction::status(200));
    assert_eq!(deliver(&context).await, 1);
    assert_eq!(kinds(&host.heard()), ["order.paid", "order.blocked"]);
}

#[tokio::test]
async fn what_a_stopping_edge_has_not_begun_waits_for_no_lease() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    listen(&acme, &host).await;
    host.react(Reaction::Silence);
    paid_and_held(&context, &acme).await;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let working = tokio::spawn(workers::work(Arc::clone(context.core()), stopped));
    host.heard_at_least(1).await;
    let leased = "select count(*) from delivery where leased_until is not null";
    let leased = async || crate::orders::count(&context, leased).await;
    assert_eq!(leased().await, 2, "the second one is claimed along with the first");
    stop.send_replace(true);
    until("the second one is released", SOON, async || (leased().await == 1).then_some(())).await;
    working.abort();
}

#[tokio::test]
async fn orders_are_told_of_in_their_order_by_two_edges() {
    const ORDERS: usize = 12;
    let context = TestContext::start().await;
    let other = context.second_edge().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    listen(&acme, &host).await;
    let mut stops = Vec::new();
    for edge in [&context, &other] {
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let core = Arc::clone(edge.core());
        stops.push((stop, tokio::spawn(workers::work(core, stopped))));
    }
    let mut orders = Vec::new();
    for _ in 0..ORDERS {
        let order = OrderFixture::order(&context, &acme, None, None).await;
        for kind in ["payment-received", "hold", "release"] {
            event(&context, &order, kind).await;
        }
        orders.push(order);
    }
    let logged = acme.get("/api/v2/events?limit=100").await.assert_status(200).json();
    let logged = logged.as_array().unwrap();
    // The sandbox goes on with the orders, and what follows is told of too.
    let has_come = |heard: &[Heard], event: &Value| {
        heard.iter().any(|heard| heard.header("webhook-id") == event["id"].as_str().unwrap())
    };
    let mut heard = host.heard_at_least(logged.len()).await;
    while !logged.iter().all(|event| has_come(&heard, event)) {
        heard = host.heard_at_least(heard.len() + 1).await;
    }
    for order in orders {
        let is_its = |event: &Value| event["data"]["orderId"] == order.id;
        let expected: Vec<_> = logged.iter().filter(|event| is_its(event)).collect();
        let mut told: Vec<_> = heard.iter().filter(|heard| is_its(&heard.json())).collect();
        // One that came twice does not matter.
        told.dedup_by_key(|heard| heard.header("webhook-id").to_owned());
        let told: Vec<_> = told.iter().map(|heard| heard.header("webhook-id")).collect();
        let expected: Vec<_> = expected.iter().map(|event| event["id"].as_str().unwrap()).collect();
        assert_eq!(told[..expected.len()], expected);
    }
    for (stop, working) in stops {
        stop.send(true).unwrap();
        working.await.unwrap();
    }
}

#[tokio::test]
async fn an_endpoint_that_fails_for_three_days_is_switched_off_and_its_partner_told() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let contact = json!({"contactEmail": "hooks@acme.example"});
    let shown = context.admin(Method::PATCH, "/admin/v1/partners/acme", contact).await;
    assert_eq!(shown.assert_status(200).json()["contactEmail"], "hooks@acme.example");
    let (dead, alive) = (Receiver::start().await, Receiver::start().await);
    let endpoint = listen(&acme, &dead).await;
    listen(&acme, &alive).await;
    let disabled = async || {
        let listed = acme.get("/api/v2/webhooks").await.assert_status(200).json();
        [0, 1].map(|at: usize| listed[at]["disabled"].as_bool().unwrap())
    };
    let pass = async |time: TimeDelta| {
        context.clock().advance(time);
        cancelled(&context, &acme).await;
        deliver(&context).await;
    };
    dead.react(Reaction::status(500));
    pass(TimeDelta::zero()).await;
    pass(TimeDelta::hours(71)).await;
    dead.react(Reaction::status(204));
    pass(TimeDelta::minutes(1)).await;
    dead.react(Reaction::status(500));
    pass(TimeDelta::hours(2)).await;
    assert_eq!(disabled().await, [false, false], "a success begins anew");
    pass(TimeDelta::hours(71)).await;
    assert_eq!(disabled().await, [false, false]);
    pass(TimeDelta::hours(2)).await;
    assert_eq!(disabled().await, [true, false]);
    let told = dead.heard().len();
    pass(TimeDelta::hours(24)).await;
    assert_eq!(dead.heard().len(), told, "nothing is sent there any more");

    let events = acme.get("/api/v2/events?type=webhook.disabled").await.assert_status(200).json();
    assert_eq!(events.as_array().unwrap().len(), 1);
    let data = &events[0]["data"];
    assert_eq!((&data["endpointId"], &data["url"]), (&endpoint["id"], &endpoint["url"]));
    assert!(kinds(&alive.heard()).contains(&"webhook.disabled".to_owned()));
    let path = "/admin/v1/mail?kind=webhook-disabled";
    let mails = context.admin(Method::GET, path, json!({})).await.assert_status(200).json();
    assert_eq!(mails.as_array().unwrap().len(), 1);
    assert_eq!(
        (&mails[0]["to"], &mails[0]["state"]),
        (&json!("hooks@acme.example"), &json!("pending"))
    );
    assert!(mails[0]["text"].as_str().unwrap().contains(endpoint["url"].as_str().unwrap()));
    // Who works for several partners is told which one it is.
    let partner = context.admin(Method::GET, "/admin/v1/partners/acme", json!({})).await.json();
    let subject = mails[0]["subject"].as_str().unwrap();
    assert!(subject.contains(partner["name"].as_str().unwrap()), "{subject} names {partner}");
}

#[tokio::test]
async fn a_quiet_endpoint_is_not_switched_off_by_its_next_failure() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    listen(&acme, &host).await;
    host.react(Reaction::status(500));
    cancelled(&context, &acme).await;
    deliver(&context).await;
    // As one leaves it that its host refuses for good, after the last success of the others.
    sqlx::query("update delivery set state = 'failed'").execute(context.db()).await.unwrap();
    context.clock().advance(TimeDelta::days(4));
    cancelled(&context, &acme).await;
    for attempt in 2..=3 {
        deliver(&context).await;
        assert_eq!(host.heard().len(), attempt);
        context.clock().advance(TimeDelta::seconds(6));
    }
    let listed = acme.get("/api/v2/webhooks").await.assert_status(200).json();
    assert_eq!(listed[0]["disabled"], false, "it has failed for seconds");
}

#[tokio::test]
async fn an_endpoint_that_answers_410_is_switched_off_and_its_partner_told() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (gone, alive) = (Receiver::start().await, Receiver::start().await);
    let endpoint = listen(&acme, &gone).await;
    listen(&acme, &alive).await;
    gone.react(Reaction::status(410));
    for _ in 0..2 {
        cancelled(&context, &acme).await;
        deliver(&context).await;
        deliver(&context).await;
    }
    assert_eq!(gone.heard().len(), 1, "nothing is sent there any more");
    let events = acme.get("/api/v2/events?type=webhook.disabled").await.assert_status(200).json();
    assert_eq!(events.as_array().unwrap().len(), 1);
    assert_eq!(events[0]["data"]["endpointId"], endpoint["id"]);
    assert!(events[0]["data"]["failingSince"].is_string());
    assert!(kinds(&alive.heard()).contains(&"webhook.disabled".to_owned()));
    let path = "/admin/v1/mail?kind=webhook-disabled";
    let mails = context.admin(Method::GET, path, json!({})).await.assert_status(200).json();
    assert_eq!(mails.as_array().unwrap().len(), 1);
    assert!(mails[0]["text"].as_str().unwrap().contains("410"), "{mails}");
}

#[tokio::test]
async fn a_mail_to_a_partner_without_an_address_is_withheld() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let dead = Receiver::start().await;
    dead.react(Reaction::status(500));
    listen(&acme, &dead).await;
    for time in [TimeDelta::zero(), TimeDelta::days(3)] {
        context.clock().advance(time);
        cancelled(&context, &acme).await;
        deliver(&context).await;
    }
    let mails = context.admin(Method::GET, "/admin/v1/mail", json!({})).await.json();
    assert_eq!(
        (&mails[0]["kind"], &mails[0]["state"]),
        (&json!("webhook-disabled"), &json!("withheld"))
    );
    for contact in [json!("nobody"), json!(7)] {
        let body = json!({"contactEmail": contact});
        context.admin(Method::PATCH, "/admin/v1/partners/acme", body).await.assert_status(422);
    }
    let taken = json!({"contactEmail": null});
    let shown = context.admin(Method::PATCH, "/admin/v1/partners/acme", taken).await;
    assert_eq!(shown.assert_status(200).json()["contactEmail"], Value::Null);
}

#[tokio::test]
async fn a_rotated_secret_signs_at_once_on_every_edge() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    // It has no worker that would look for changes.
    let other = context.second_edge().await;
    let host = Receiver::start().await;
    listen(&acme, &host).await;
    let rotate = json!({"kind": "webhook", "overlapSeconds": 0});
    let path = "/admin/v1/partners/acme/secrets/rotate";
    let rotated = context.admin(Method::POST, path, rotate).await.assert_status(200).json();
    cancelled(&context, &acme).await;
    assert_eq!(deliver(&other).await, 1);
    let heard = &host.heard()[0];
    let webhook = Webhook::new(rotated["secret"].as_str().unwrap()).unwrap();
    webhook.verify(&heard.body, &heard.headers).unwrap();
}

/// Partners whose deliveries wait for their next attempt.
const WAITING: i64 = 2_000;
/// Most looks into indexes of deliveries for one claim, whoever waits.
const LOOKS_MAX: i64 = 40;

#[tokio::test]
async fn a_claim_costs_what_it_claims_and_not_what_waits() {
    let context = TestContext::start().await;
    sqlx::query(
        "with partner as ( \
             insert into client (client_id, slug, name, mode, username, revision, created_at) \
             select gen_random_uuid(), 'p' || n, 'p', 'test', 'p' || n, 1, now() \
             from generate_series(1, $1) n returning client_id \
         ), told as ( \
             insert into event (client_id, event_id, type, payload, created_at) \
             select client_id, gen_random_uuid(), 'order.paid', '{}', now() from partner \
             returning client_id, event_id \
         ) insert into delivery (client_id, delivery_id, event_id, endpoint_id, url, attempts, ready, \
             next_attempt_at, created_at) \
         select client_id, gen_random_uuid(), event_id, gen_random_uuid(), 'https://a.example', 3, \
             false, now() + interval '1 day', now() from told",
    )
    .bind(WAITING)
    .execute(context.db())
    .await
    .unwrap();
    sqlx::query("analyze delivery").execute(context.db()).await.unwrap();
    let looks = async || {
        // What the backends have counted is there once they have ended; a pooler would keep them.
        until("the edge's connections have ended", SOON, async || {
            let open: i64 = sqlx::query_scalar(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity \
                 where datname = current_database() and application_name = 'rampart'",
            )
            .fetch_one(context.db())
            .await
            .unwrap();
            (open == 0).then_some(())
        })
        .await;
        let looks = "select coalesce(sum(idx_scan), 0)::bigint from pg_stat_user_indexes \
                     where relname = 'delivery'";
        sqlx::query_scalar::<_, i64>(looks).fetch_one(context.db()).await.unwrap()
    };
    let other = context.second_edge().await;
    context.core().db.close().await;
    assert_eq!(deliver(&other).await, 0);
    other.core().db.close().await;
    let looks = looks().await;
    assert!(looks <= LOOKS_MAX, "{looks} looks for nothing");
}
