//! Deliveries and mails that wait in the database, as metrics.

use chrono::TimeDelta;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::receiver::Receiver;
use rampart_tests::test_context::TestContext;

fn shown(context: &TestContext, name: &str, queue: &str) -> i64 {
    let text = context.core().metrics.render();
    let line = format!(r#"rampart_{name}{{queue="{queue}"}} "#);
    let value = text.lines().find_map(|text| text.strip_prefix(&line));
    value.unwrap_or_else(|| panic!("{line}: {text}")).parse().unwrap()
}

#[tokio::test]
async fn what_waits_in_the_database_is_measured() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let shown = |name, queue| shown(&context, name, queue);
    context.core().measure_backlogs().await.unwrap();
    assert_eq!((shown("backlog", "deliveries"), shown("backlog", "mail")), (0, 0));

    acme.user("ada").await;
    let host = Receiver::start().await;
    OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    context.core().measure_backlogs().await.unwrap();
    assert_eq!((shown("backlog", "deliveries"), shown("backlog", "mail")), (1, 1));
    // Just written, and not in 1970.
    assert!(shown("backlog_overdue_seconds", "mail") < 100);
    context.clock().advance(TimeDelta::seconds(100));
    context.core().measure_backlogs().await.unwrap();
    assert!((100..200).contains(&shown("backlog_overdue_seconds", "mail")));

    assert_eq!(context.core().deliver_due().await.unwrap(), 1);
    context.core().measure_backlogs().await.unwrap();
    assert_eq!(shown("backlog", "deliveries"), 0);
}

#[tokio::test]
async fn a_late_delivery_is_seen_behind_any_number_of_retries() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    for statement in [
        "insert into delivery (client_id, delivery_id, event_id, url, next_attempt_at, created_at, \
             ready) \
         select client_id, gen_random_uuid(), event_id, url, next_attempt_at + interval '1 hour', \
             created_at, false \
         from delivery, generate_series(1, 100000)",
        // Behind them on disk, too.
        "update delivery set url = url where ready",
    ] {
        sqlx::query(statement).execute(context.db()).await.unwrap();
    }
    context.clock().advance(TimeDelta::seconds(100));
    context.core().measure_backlogs().await.unwrap();
    assert_eq!(shown(&context, "backlog", "deliveries"), 100_000);
    assert!((100..200).contains(&shown(&context, "backlog_overdue_seconds", "deliveries")));
}

#[tokio::test]
async fn a_slow_endpoint_is_not_taken_for_our_own_lateness() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let host = Receiver::start().await;
    OrderFixture::ended(&context, &acme, &host.url("/hook")).await;
    let further = "insert into delivery \
             (client_id, delivery_id, event_id, url, next_attempt_at, created_at) \
         select client_id, gen_random_uuid(), event_id, url, next_attempt_at, created_at \
         from delivery";
    sqlx::query(further).execute(context.db()).await.unwrap();
    context.clock().advance(TimeDelta::seconds(100));
    let unclaimed = async || {
        context.core().measure_backlogs().await.unwrap();
        let text = context.core().metrics.render();
        let name = "rampart_deliveries_unclaimed_seconds ";
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value.unwrap_or_else(|| panic!("{text}")).parse::<i64>().unwrap()
    };
    assert!((100..200).contains(&unclaimed().await), "no edge attempts any");

    let attempted = "update delivery set ready = false, leased_until = $1 \
         where delivery_id = (select delivery_id from delivery limit 1)";
    let lease = |seconds| context.clock().now() + TimeDelta::seconds(seconds);
    sqlx::query(attempted).bind(lease(25)).execute(context.db()).await.unwrap();
    assert_eq!(unclaimed().await, 0, "the others wait for the endpoint");
    assert!((100..200).contains(&shown(&context, "backlog_overdue_seconds", "deliveries")));

    context.clock().advance(TimeDelta::seconds(30));
    assert!((130..230).contains(&unclaimed().await), "the edge that held it is gone");
}
