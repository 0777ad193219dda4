//! The sandbox as a connector: orders of test clients go by commands and events, and its books are clean.

use chrono::TimeDelta;
use http::Method;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::path;
use crate::orders::count;
use crate::payments::problems;

/// A step's time passes, and the worker does what is due.
async fn settle(context: &TestContext) -> usize {
    context.clock().advance(TimeDelta::seconds(1));
    context.core().settle_sandbox_orders().await.unwrap()
}

#[tokio::test]
async fn orders_of_every_scenario_are_commanded_and_told_and_their_books_are_clean() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let token = acme.token().await;
    let names = [
        "completed",
        "denied",
        "expired",
        "cancelled",
        "blocked",
        "refunded",
        "held",
        "late",
        "returned",
    ];
    for name in names {
        let magic = json!({"partnerOrderIdentifier": format!("sandbox-{name}")});
        OrderFixture::confirmed(&acme, &token, json!(100), magic).await;
    }
    let created = "select count(*) from command where kind = 'payment.create' \
        and connector = 'sandbox' and state = 'done' and direction is null";
    assert_eq!(count(&context, created).await, 9);
    while settle(&context).await > 0 {
        assert_eq!(problems(&context).await, [Value::Null; 0]);
    }
    let open = "select count(*) from command where state = 'open' or report_due_at is not null";
    assert_eq!(count(&context, open).await, 0, "nothing waits for orders that have ended");
    let told = "select string_agg(kind || ' ' || n, ', ' order by kind) from ( \
        select kind, count(*) as n from connector_event where connector = 'sandbox' group by kind) k";
    let told: String = sqlx::query_scalar(told).fetch_one(context.db()).await.unwrap();
    assert_eq!(told, "payment.failed 1, payment.received 6, payout.confirmed 1");
    let sent = "select count(*) from command where kind = 'payout.send' and state = 'done'";
    assert_eq!(count(&context, sent).await, 1);
}

#[tokio::test]
async fn an_order_is_given_back_although_an_edge_died_with_its_payout() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let token = acme.token().await;
    let magic = json!({"partnerOrderIdentifier": "sandbox-returned"});
    let order = OrderFixture::confirmed(&acme, &token, json!(100), magic).await;
    assert_eq!(settle(&context).await, 1, "it is paid");
    let died = "update command set attempt = attempt + 1, lease_token = gen_random_uuid(), \
        leased_until = now() - interval '1 second' where kind = 'payout.send'";
    sqlx::query(died).execute(context.db()).await.unwrap();
    assert_eq!(settle(&context).await, 1);
    assert_eq!(order.seen(&context).await["status"], "refunded");
    let told = "select count(*) from event where type = 'order.refunded'";
    assert_eq!(count(&context, told).await, 1);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_payment_that_an_operator_gives_back_is_given_back_by_the_sandbox() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    acme.post(&path(&order, "payment-received"), json!({})).await.assert_status(200);
    let payment: uuid::Uuid =
        sqlx::query_scalar("select payment_id from payment").fetch_one(context.db()).await.unwrap();
    let refund = format!("/admin/v1/payments/{payment}/refund");
    let why = json!({"reason": "a mistake"});
    context.admin(Method::POST, &refund, why).await.assert_status(200);
    assert_eq!(order.seen(&context).await["status"], "blocked");
    assert_eq!(settle(&context).await, 1);
    assert_eq!(order.seen(&context).await["status"], "refunded");
    assert_eq!(settle(&context).await, 0);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn coins_that_were_sent_by_hand_are_not_sent_by_the_sandbox() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    acme.post(&path(&order, "payment-received"), json!({})).await.assert_status(200);
    let sent = json!({"partner": "acme", "kind": "payout-sent", "amount": 0.002, "currency": "BTC",
        "connector": "manual", "providerReference": "ab12", "reason": "by hand",
        "orderId": order.id});
    context.admin(Method::POST, "/admin/v1/payments", sent).await.assert_status(201);
    assert_eq!(settle(&context).await, 0);
    assert_eq!(order.seen(&context).await["transactionId"], "ab12");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn an_order_that_goes_on_after_its_coins_were_sent_is_completed() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    for event in ["payment-received", "coins-sent", "hold"] {
        acme.post(&path(&order, event), json!({})).await.assert_status(200);
    }
    assert_eq!(settle(&context).await, 1, "it looks, and the order waits");
    assert_eq!(order.seen(&context).await["status"], "blocked");
    assert_eq!(settle(&context).await, 0);
    acme.post(&path(&order, "release"), json!({})).await.assert_status(200);
    assert_eq!(settle(&context).await, 1);
    assert_eq!(order.seen(&context).await["status"], "completed");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn no_route_leads_to_the_sandbox_and_no_program_is_it() {
    let context = TestContext::with(|settings| settings.connectors.answer_seconds = 0).await;
    let live = context.partner_of(json!({"slug": "live", "name": "Live", "mode": "live"})).await;
    let connectors = context.admin(Method::GET, "/admin/v1/connectors", Value::Null).await;
    assert!(!connectors.assert_status(200).text().contains("\"sandbox\""));
    let one = "/admin/v1/connectors/sandbox";
    context.admin(Method::GET, one, Value::Null).await.assert_status(404);
    let rotate = format!("{one}/rotate");
    context.admin(Method::POST, &rotate, json!({})).await.assert_status(404);
    for partner in [json!(null), json!("live")] {
        let route = json!({"partner": partner, "method": "creditCard", "direction": "in",
            "connector": "sandbox"});
        let routes = json!({ "routes": [route] });
        context.admin(Method::PUT, "/admin/v1/routes", routes).await.assert_status(422);
    }
    // What a live client's user wants checked is for any connector that is capable of it, but this one.
    let lea = live.user("lea").await;
    let token = json!({"access_token": "A21AAF"});
    lea.post("/api/v1/user/verify/payprovider", &token).await.assert_status(503);
    assert_eq!(settle(&context).await, 0);
    assert_eq!(count(&context, "select count(*) from command where state = 'done'").await, 0);
}

#[tokio::test]
async fn a_partner_with_many_reports_delays_nobody_elses() {
    let context = TestContext::start().await;
    let (acme, other) = (context.partner("acme").await, context.partner("other").await);
    for (partner, count, minutes) in [(&acme, 60_i32, 5_i32), (&other, 1, 1)] {
        let commands = "insert into command (client_id, command_id, kind, order_id, \
                idempotency_key, connector, sealed_body, state, due_at, created_at, report_due_at) \
            select $1::uuid, gen_random_uuid(), 'payout.send', 7, n::text, 'sandbox', '\\x00', \
                'done', now(), now(), rampart_now() - $3 * interval '1 minute' \
            from generate_series(1, $2) n";
        let commands = sqlx::query(commands).bind(&partner.id).bind(count).bind(minutes);
        commands.execute(context.db()).await.unwrap();
    }
    context.core().settle_sandbox_orders().await.unwrap();
    let left = "select count(*) filter (where client_id = $1::uuid), \
            count(*) filter (where client_id = $2::uuid) \
        from command where report_due_at is not null";
    let left = sqlx::query_as(left).bind(&acme.id).bind(&other.id);
    let left: (i64, i64) = left.fetch_one(context.db()).await.unwrap();
    assert_eq!(left, (11, 0));
}
