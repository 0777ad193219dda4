//! Deliveries that are sent again when their events are old.

use chrono::TimeDelta;
use http::Method;
use rampart_core::platform::settings::Settings;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::partner::Partner;
use rampart_tests::receiver::Receiver;
use rampart_tests::test_context::TestContext;
use serde_json::json;

use super::{count, execute};

/// A delivery that has ended, where deliveries are kept for 30 days.
async fn delivered() -> (TestContext, Partner) {
    let kept = |settings: &mut Settings| settings.retention.delivery_days = Some(30);
    let context = TestContext::with(kept).await;
    let acme = context.partner("acme").await;
    OrderFixture::ended(&context, &acme, "https://shop.example.com/hook").await;
    end(&context).await;
    (context, acme)
}

async fn end(context: &TestContext) {
    execute(context.db(), "update delivery set state = 'delivered'").await;
}

/// The number of those that a run leaves, so many days later.
async fn left_after(context: &TestContext, days: i64) -> i64 {
    context.clock().advance(TimeDelta::days(days));
    assert!(!context.core().delete_old_deliveries().await.unwrap());
    count(context.db(), "delivery").await
}

#[tokio::test]
async fn one_that_is_sent_again_is_kept_from_then_on() {
    let (context, acme) = delivered().await;
    let db = context.db();
    assert_eq!(left_after(&context, 29).await, 1);
    let delivery: String =
        sqlx::query_scalar("select delivery_id::text from delivery").fetch_one(db).await.unwrap();
    let path = format!("/admin/v1/deliveries/{delivery}/redeliver");
    context.admin(Method::POST, &path, json!({})).await.assert_status(200);
    end(&context).await;
    assert_eq!(left_after(&context, 29).await, 1);
    assert_eq!(left_after(&context, 2).await, 0);

    // Then it is made anew, for an endpoint that has not been told.
    let host = Receiver::start().await;
    let endpoint = json!({"url": host.url("/endpoint")});
    acme.post("/api/v2/webhooks", endpoint).await.assert_status(200);
    let event: String =
        sqlx::query_scalar("select min(event_id::text) from event").fetch_one(db).await.unwrap();
    let path = format!("/api/v2/events/{event}/redeliver");
    acme.post(&path, json!({})).await.assert_status(200);
    end(&context).await;
    assert_eq!(left_after(&context, 29).await, 1);
    assert_eq!(left_after(&context, 2).await, 0);
}

#[tokio::test]
async fn those_that_are_kept_hide_none_behind_them() {
    let (context, _acme) = delivered().await;
    // As many older ones as a run looks at.
    let sent_again = "insert into delivery (client_id, delivery_id, event_id, url, state, \
            next_attempt_at, created_at, ready, sent_again_at) \
        select client_id, lpad(to_hex(n), 32, '0')::uuid, event_id, url, state, next_attempt_at, \
            created_at, false, created_at + interval '31 days' \
        from delivery, generate_series(1, 20000) n";
    execute(context.db(), sent_again).await;
    assert_eq!(left_after(&context, 31).await, 20_001);
    assert_eq!(left_after(&context, 0).await, 20_000);
    assert_eq!(left_after(&context, 0).await, 20_000, "it begins anew");
    // Their time ends, too, and this run goes on behind them.
    assert_eq!(left_after(&context, 31).await, 20_000);
    assert!(context.core().delete_old_deliveries().await.unwrap(), "there may be more");
    assert_eq!(count(context.db(), "delivery").await, 0);
}
