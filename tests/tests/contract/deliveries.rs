//! The delivery queue: several edges, edges that die, hosts that hang, operators who repeat.

mod lanes;
mod locked_rows;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use http::Method;
use rampart_api::workers;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::partner::Partner;
use rampart_tests::receiver::{Heard, Reaction, Receiver};
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

async fn deliveries(context: &TestContext) -> Vec<Value> {
    let answer = context.admin(Method::GET, "/admin/v1/deliveries", json!({})).await;
    answer.assert_status(200);
    answer.json().as_array().unwrap().clone()
}

fn ids(heard: &[Heard]) -> BTreeSet<String> {
    heard.iter().map(|heard| heard.header("webhook-id").to_owned()).collect()
}

#[tokio::test]
async fn two_edges_share_the_queue_without_a_duplicate() {
    const ORDERS: usize = 24;
    let context = TestContext::start().await;
    let other = context.second_edge().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    for _ in 0..ORDERS {
        OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    }
    let mut attempts = 0;
    while attempts < ORDERS {
        let (one, two) = tokio::join!(context.core().deliver_due(), other.core().deliver_due());
        let (one, two) = (one.unwrap(), two.unwrap());
        assert!(one + two > 0, "{attempts} of {ORDERS} were attempted");
        assert!(one <= 8 && two <= 8, "more in flight to one client than it has room for");
        attempts += one + two;
    }
    let heard = host.heard();
    assert_eq!((heard.len(), ids(&heard).len()), (ORDERS, ORDERS));
}

#[tokio::test]
async fn claims_are_a_workers_runs() {
    let context = TestContext::start().await;
    let core = Arc::clone(context.core());
    let runs = |outcome: &str| {
        let runs = &context.core().metrics.worker_runs;
        runs.with_label_values(&["deliveries", outcome]).get()
    };
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let working = tokio::spawn(workers::work(core, stopped));
    let run = async |outcome: &str| {
        until(outcome, SOON, async || (runs(outcome) > 0).then_some(())).await;
    };
    run("ok").await;
    assert_eq!(runs("failed"), 0);
    let now = || context.clock().monotonic_ns();
    assert!(context.core().heartbeats.age("deliveries", now()).unwrap() < SOON);
    let away = "alter table delivery rename to delivery_away";
    sqlx::query(away).execute(context.db()).await.unwrap();
    run("failed").await;
    drop(stop);
    working.abort();
}

#[tokio::test]
async fn what_a_dead_edge_had_claimed_is_sent_by_another() {
    let context = TestContext::start().await;
    let other = context.second_edge().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    host.react(Reaction::Silence);
    let core = Arc::clone(context.core());
    let dying = tokio::spawn(async move { core.deliver_due().await });
    host.heard_at_least(1).await;
    dying.abort();
    assert!(dying.await.unwrap_err().is_cancelled());
    host.react(Reaction::status(200));
    assert_eq!(other.core().deliver_due().await.unwrap(), 0, "its lease still runs");
    context.clock().advance(TimeDelta::seconds(31));
    assert_eq!(other.core().deliver_due().await.unwrap(), 1);
    let heard = host.heard();
    assert_eq!((heard.len(), ids(&heard).len()), (2, 1), "a duplicate carries the same id");
    assert_eq!(deliveries(&context).await[0]["state"], "delivered");
}

#[tokio::test]
async fn a_host_that_hangs_delays_nobody_else() {
    let context = TestContext::start().await;
    let (dead, alive) = (context.partner("dead").await, context.partner("alive").await);
    let (hanging, host) = (Receiver::start().await, Receiver::start().await);
    hanging.react(Reaction::Silence);
    for _ in 0..30 {
        OrderFixture::ended(&context, &dead, &hanging.url("/hook")).await;
    }
    OrderFixture::ended(&context, &alive, &host.url("/hook")).await;
    let core = Arc::clone(context.core());
    let turn = tokio::spawn(async move { core.deliver_due().await });
    host.heard_at_least(1).await;
    hanging.heard_at_least(8).await;
    // A run attempts what it has claimed: no ninth one is still to come.
    let claimed: i64 = sqlx::query_scalar(
        "select count(*) from delivery join client using (client_id) \
         where slug = 'dead' and leased_until is not null",
    )
    .fetch_one(context.db())
    .await
    .unwrap();
    assert_eq!((hanging.heard().len(), claimed), (8, 8), "it has eight places and no more");
    turn.abort();
}

#[tokio::test]
async fn an_operator_sends_one_again_under_the_same_id() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    context.core().deliver_due().await.unwrap();
    let id = deliveries(&context).await[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/admin/v1/deliveries/{id}/redeliver");
    let again = context.admin(Method::POST, &path, json!({})).await;
    assert_eq!(again.assert_status(200).json()["state"], "pending");
    assert_eq!(context.core().deliver_due().await.unwrap(), 1);
    assert_eq!((host.heard().len(), ids(&host.heard()).len()), (2, 1));
    let audit =
        context.admin(Method::GET, &format!("/admin/v1/audit?target={id}"), json!({})).await;
    assert_eq!(audit.json()[0]["action"], "delivery.redeliver");

    let unknown = "/admin/v1/deliveries/00000000-0000-7000-8000-000000000000/redeliver";
    context.admin(Method::POST, unknown, json!({})).await.assert_status(404);
    context
        .admin(Method::GET, "/admin/v1/deliveries?state=lost", json!({}))
        .await
        .assert_status(422);
    context.admin(Method::GET, "/admin/v1/deliveries?order=x", json!({})).await.assert_status(422);
}

#[tokio::test]
async fn an_operator_reads_the_request_and_its_attempts() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    host.react(Reaction::status(500));
    OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    context.core().deliver_due().await.unwrap();
    let listed = deliveries(&context).await[0].clone();
    let path = format!("/admin/v1/deliveries/{}", listed["id"].as_str().unwrap());
    let read = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
    for (member, value) in listed.as_object().unwrap() {
        assert_eq!(&read[member], value, "{member}");
    }
    let heard = host.heard();
    assert_eq!(read["requestBody"].as_str().unwrap().as_bytes(), &heard[0].body[..]);
    let attempt = &read["attemptLog"][0];
    assert_eq!((&attempt["status"], &attempt["error"]), (&json!(500), &json!("status")));
    assert!(attempt["sentAt"].is_string() && attempt["tookMs"].is_number(), "{attempt}");
    let unknown = "/admin/v1/deliveries/00000000-0000-7000-8000-000000000000";
    context.admin(Method::GET, unknown, json!({})).await.assert_status(404);
}

#[tokio::test]
async fn none_is_sent_again_while_an_attempt_is_under_way() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    host.react(Reaction::Silence);
    OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    let core = Arc::clone(context.core());
    let turn = tokio::spawn(async move { core.deliver_due().await });
    host.heard_at_least(1).await;
    let id = deliveries(&context).await[0]["id"].as_str().unwrap().to_owned();
    let path = format!("/admin/v1/deliveries/{id}/redeliver");
    context.admin(Method::POST, &path, json!({})).await.assert_status(409);
    turn.abort();
}

#[tokio::test]
async fn a_delivery_whose_event_is_archived_ends_and_is_not_sent_again() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    let endpoint = json!({"url": host.url("/endpoint")});
    acme.post("/api/v2/webhooks", endpoint).await.assert_status(200);
    OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    let id = deliveries(&context).await[0]["id"].as_str().unwrap().to_owned();
    // As the archive of a month leaves what is still pending, or is sent again later.
    sqlx::query("delete from event").execute(context.db()).await.unwrap();
    while context.core().deliver_due().await.unwrap() > 0 {}
    let states = async || -> Vec<String> {
        let states = "select distinct concat_ws(' ', state, last_error) from delivery";
        sqlx::query_scalar(states).fetch_all(context.db()).await.unwrap()
    };
    assert_eq!(states().await, ["disabled unwanted"]);
    let failing = "select count(*) from webhook_endpoint where failing_since is not null";
    let failing: i64 = sqlx::query_scalar(failing).fetch_one(context.db()).await.unwrap();
    assert_eq!(failing, 0, "it tells nothing of its endpoint");
    let path = format!("/admin/v1/deliveries/{id}/redeliver");
    context.admin(Method::POST, &path, json!({})).await.assert_status(404);
    assert_eq!(states().await, ["disabled unwanted"]);
    assert_eq!(host.heard().len(), 0);
}

#[tokio::test]
async fn an_old_event_that_is_sent_again_switches_its_endpoint_off_after_three_days_alone() {
    for path in ["/admin/v1/deliveries", "/api/v2/events"] {
        let context = TestContext::start().await;
        let acme = context.partner("acme").await;
        let host = Receiver::start().await;
        let endpoint = json!({"url": host.url("/hook")});
        acme.post("/api/v2/webhooks", endpoint).await.assert_status(200);
        host.react(Reaction::status(500));
        let order = OrderFixture::order(&context, &acme, None, None).await;
        order.event(&context, "cancel").await.assert_status(200);
        context.core().deliver_due().await.unwrap();
        // As one leaves it that its host refuses for good.
        sqlx::query("update delivery set state = 'failed'").execute(context.db()).await.unwrap();
        context.clock().advance(TimeDelta::days(4));
        let delivery = deliveries(&context).await.remove(0);
        if path == "/api/v2/events" {
            let path = format!("{path}/{}/redeliver", delivery["eventId"].as_str().unwrap());
            acme.post(&path, json!({})).await.assert_status(200);
        } else {
            let path = format!("{path}/{}/redeliver", delivery["id"].as_str().unwrap());
            context.admin(Method::POST, &path, json!({})).await.assert_status(200);
        }
        let is_disabled = async || {
            let listed = acme.get("/api/v2/webhooks").await.assert_status(200).json();
            listed[0]["disabled"].as_bool().unwrap()
        };
        for attempt in 2..=3 {
            context.core().deliver_due().await.unwrap();
            assert_eq!(host.heard().len(), attempt);
            context.clock().advance(TimeDelta::seconds(6));
        }
        assert!(!is_disabled().await, "{path}: it has failed for seconds");
        context.clock().advance(TimeDelta::days(3));
        context.core().deliver_due().await.unwrap();
        assert!(is_disabled().await, "{path}: it has failed for three days");
    }
}

/// Most events that are told one after the other until two were told within a second: other work may
/// have the processors, and the first may come before the worker's first look.
const TOLD_MAX: usize = 20;

#[tokio::test]
async fn a_delivery_whose_tenant_cannot_be_read_waits_and_is_no_failed_attempt() {
    let context = TestContext::start().await;
    // It has no worker that would look for changes.
    let other = context.second_edge().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    let endpoint = json!({"url": host.url("/hook")});
    acme.post("/api/v2/webhooks", endpoint).await.assert_status(200);
    let order = OrderFixture::order(&context, &acme, None, None).await;
    for event in ["payment-received", "hold"] {
        order.event(&context, event).await.assert_status(200);
    }
    let run = async |statement: &'static str| {
        sqlx::query(statement).execute(context.db()).await.unwrap();
    };
    run("alter table client_secret rename to client_secret_away").await;
    assert_eq!(other.core().deliver_due().await.unwrap(), 2, "they are claimed together");
    run("alter table client_secret_away rename to client_secret").await;
    assert_eq!(other.core().deliver_due().await.unwrap(), 0, "the second one waits for the first");
    context.clock().advance(TimeDelta::seconds(31));
    assert_eq!(other.core().deliver_due().await.unwrap(), 2);
    let told: Vec<_> = host.heard().iter().map(|heard| heard.json()["type"].clone()).collect();
    assert_eq!(told, ["order.paid", "order.blocked"]);
    assert_eq!(crate::orders::count(&context, "select sum(attempts) from delivery").await, 2);
}

#[tokio::test]
async fn an_edge_at_work_calls_within_a_second_and_stops_when_told() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let working = tokio::spawn(workers::work(Arc::clone(context.core()), stopped));
    let count = |series: &str| -> usize {
        let metrics = context.core().metrics.render();
        let line = metrics.lines().find_map(|line| line.strip_prefix(series));
        line.map_or(0, |count| count.trim().parse().unwrap())
    };
    let mut told = 0;
    while count(r#"rampart_callback_lag_seconds_bucket{le="1"}"#) < 2 {
        assert!(told < TOLD_MAX, "{}", context.core().metrics.render());
        told += 1;
        OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
        host.heard_at_least(told).await;
    }
    stop.send(true).unwrap();
    working.await.unwrap();
    assert_eq!(count(r#"rampart_callback_attempts_total{outcome="delivered"}"#), told);
}

/// Deliveries of one client that are due at once.
const BURST: i64 = 400;
/// Less than they would take with a look at the queue for every eight of them, four looks a second.
const BURST_MAX: Duration = Duration::from_secs(12);
/// Most bursts until one takes no longer: other work may have the processors.
const BURSTS_MAX: i64 = 8;

#[tokio::test]
async fn a_burst_does_not_wait_for_the_next_look_at_the_queue() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let working = tokio::spawn(workers::work(Arc::clone(context.core()), stopped));
    let (mut bursts, mut fastest) = (0, Duration::MAX);
    while fastest > BURST_MAX {
        assert!(bursts < BURSTS_MAX, "the fastest of {bursts} bursts took {fastest:?}");
        bursts += 1;
        let began = context.clock().monotonic_ns();
        burst(&context, &acme, &host).await;
        until("the burst is delivered and settled", BURST_MAX * 10, async || {
            let settled =
                "select count(*) from delivery where state = 'delivered' and attempts = 1";
            let settled: i64 = sqlx::query_scalar(settled).fetch_one(context.db()).await.unwrap();
            (settled == bursts * BURST).then_some(())
        })
        .await;
        fastest = fastest.min(Duration::from_nanos(context.clock().monotonic_ns() - began));
    }
    let (heard, all) = (host.heard(), usize::try_from(bursts * BURST).unwrap());
    assert_eq!((heard.len(), ids(&heard).len()), (all, all));
    stop.send(true).unwrap();
    working.await.unwrap();
}

/// Makes the deliveries of a burst.
async fn burst(context: &TestContext, acme: &Partner, host: &Receiver) {
    sqlx::query(
        "with told as ( \
             insert into event (client_id, event_id, type, order_id, payload, created_at) \
             select client_id, gen_random_uuid(), 'order.completed', n, '{}', $3 \
             from client, generate_series(1, $2) n where slug = $1 \
             returning client_id, event_id, order_id \
         ) insert into delivery \
             (client_id, delivery_id, event_id, order_id, url, next_attempt_at, created_at) \
         select client_id, gen_random_uuid(), event_id, order_id, $4, $3, $3 from told",
    )
    .bind(&acme.slug)
    .bind(BURST)
    .bind(context.clock().now())
    .bind(host.url("/hook"))
    .execute(context.db())
    .await
    .unwrap();
}
