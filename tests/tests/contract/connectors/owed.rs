//! Money that is with us and is somebody else's: it waits for an operator until it is given back.

use chrono::TimeDelta;
use rampart_tests::order_fixture::OrderFixture;

use super::disputes::{of_payment, stray};
use super::purchase::{live, paid_order, status};
use super::refunds::{again, overpaid, refund, refund_by_hand, refunded};
use super::*;
use crate::payments::problems;

/// The review queue with its reasons, and the payments that wait, by overview and metrics.
async fn waiting(context: &TestContext) -> (Vec<Value>, i64) {
    let queue = context.admin(Method::GET, "/admin/v1/reviews", Value::Null).await;
    let queue = queue.assert_status(200).json();
    let rows = queue.as_array().unwrap().iter();
    let rows = rows.map(|row| json!([row["id"], row["reasons"]])).collect();
    let overview = context.admin(Method::GET, "/admin/v1/overview", Value::Null).await;
    let counted = overview.assert_status(200).json()["waiting"]["payments"].as_i64().unwrap();
    context.core().measure_money().await.unwrap();
    let measured = &context.core().metrics.payments_waiting;
    let of = |state: &str| measured.with_label_values(&[state]).get();
    assert_eq!(of("unmatched") + of("suspense"), counted);
    (rows, counted)
}

/// An order that waits for this alone, as [`waiting`] has it.
fn only(order: &OrderFixture, reasons: &[&str], counted: i64) -> (Vec<Value>, i64) {
    (vec![json!([order.id.to_string(), reasons])], counted)
}

#[tokio::test]
async fn a_part_whose_refund_is_rejected_after_the_release_is_owed_until_it_is_given_back() {
    let context = TestContext::start().await;
    let (connector, order, payment, command) = overpaid(&context).await;
    assert_eq!(waiting(&context).await, (vec![], 0), "its connector gives it back");
    connector.report(&command, "rejected", Value::Null).await.assert_status(200);
    assert_eq!(waiting(&context).await, only(&order, &["owed"], 1));
    let payout = connector.answer_next("done", json!({"transactionId": "tx"})).await;
    let confirmed = json!({"id": "c", "kind": "payout.confirmed", "commandId": payout["id"],
        "occurredAt": "2026-03-01T12:10:00Z", "transactionId": "tx", "confirmations": 2});
    connector.event(confirmed).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "completed");
    assert_eq!(waiting(&context).await, only(&order, &["owed"], 1));
    assert_eq!(refund(&context, &payment, json!(10)).await, 200);
    let command = connector.answer_next("done", Value::Null).await;
    connector.event(refunded(&command, 10)).await.assert_status(200);
    context.clock().advance(TimeDelta::days(91));
    assert_eq!(waiting(&context).await, only(&order, &["owed"], 1), "the rest, at any age");
    assert_eq!(refund(&context, &payment, json!(20)).await, 200);
    assert_eq!(waiting(&context).await, (vec![], 0));
    let command = connector.answer_next("done", Value::Null).await;
    connector.event(refunded(&command, 20)).await.assert_status(200);
    assert_eq!(waiting(&context).await, (vec![], 0));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_part_beside_which_the_whole_price_was_given_back_is_owed_at_any_age() {
    let context = TestContext::start().await;
    let (connector, order, payment, command) = overpaid(&context).await;
    connector.report(&command, "rejected", Value::Null).await.assert_status(200);
    assert_eq!(refund(&context, &payment, json!(100)).await, 200);
    let command = connector.answer_next("done", Value::Null).await;
    connector.event(refunded(&command, 100)).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "refunded");
    context.clock().advance(TimeDelta::days(91));
    assert_eq!(waiting(&context).await, only(&order, &["owed"], 1));
    assert_eq!(refund(&context, &payment, json!(31)).await, 409);
    assert_eq!(refund(&context, &payment, json!(30)).await, 200, "it is in suspense");
    let command = connector.answer_next("done", Value::Null).await;
    connector.event(refunded(&command, 30)).await.assert_status(200);
    assert_eq!(waiting(&context).await, (vec![], 0));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_that_was_done_and_is_not_told_of_is_owed_after_a_week() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    connector.event(again(&order)).await.assert_status(200);
    connector.answer_next("done", json!({"transactionId": "tx"})).await;
    let command = connector.lease(1).await.remove(0);
    assert_eq!(command["kind"], "payment.refund");
    connector.report(&command, "done", Value::Null).await.assert_status(200);
    let failed = json!({"id": "h", "kind": "health", "occurredAt": "2026-03-01T12:10:00Z",
        "outcome": "refund failed", "reason": "expired card", "providerReference": "re-1"});
    connector.event(failed).await.assert_status(200);
    context.clock().advance(TimeDelta::days(6));
    assert_eq!(waiting(&context).await, (vec![], 0));
    context.clock().advance(TimeDelta::days(2));
    assert_eq!(waiting(&context).await, only(&order, &["owed"], 1));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    context.clock().advance(TimeDelta::days(90));
    assert_eq!(waiting(&context).await, (vec![], 0), "its book is not read any more");
    let subject = format!("order {}", order.id);
    let problem = "a refund that was asked for 90 days ago is not made";
    assert_eq!(problems(&context).await, [json!({"subject": subject, "problem": problem})]);
    set_mode(&context, "test").await;
    assert_eq!(problems(&context).await, [Value::Null; 0], "a test client owes nobody's money");
    set_mode(&context, "live").await;
    refund_by_hand(&context, &order, "EUR").await;
    assert_eq!(waiting(&context).await, (vec![], 0));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_that_was_done_is_owed_no_sooner_beside_one_by_hand() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    order.event(&context, "refund").await.assert_status(200);
    connector.event(again(&order)).await.assert_status(200);
    let command = connector.answer_next("done", Value::Null).await;
    assert_eq!(command["kind"], "payment.refund");
    context.clock().advance(TimeDelta::days(6));
    assert_eq!(waiting(&context).await, (vec![], 0), "its connector may still tell of it");
    context.clock().advance(TimeDelta::days(2));
    assert_eq!(waiting(&context).await, only(&order, &["owed"], 1));
    connector.event(refunded(&command, 100)).await.assert_status(200);
    assert_eq!(waiting(&context).await, (vec![], 0));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

/// Makes `acme` a client of this mode.
async fn set_mode(context: &TestContext, mode: &str) {
    sqlx::query("update client set mode = $1 where slug = 'acme'")
        .bind(mode)
        .execute(context.db())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_refund_of_long_ago_that_is_under_way_or_waits_is_no_problem_of_the_books() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    connector.event(again(&order)).await.assert_status(200);
    connector.answer_next("done", json!({"transactionId": "tx"})).await;
    // Nobody but an operator gives back what came in by hand.
    let by_hand = json!({"partner": "acme", "kind": "received", "amount": 30, "currency": "EUR",
        "connector": "manual", "providerReference": "cash", "orderId": order.id,
        "reason": "seen"});
    let recorded = context.admin(Method::POST, "/admin/v1/payments", by_hand).await;
    recorded.assert_status(201);
    context.clock().advance(TimeDelta::days(91));
    assert_eq!(waiting(&context).await, (vec![], 1));
    assert_eq!(problems(&context).await, [Value::Null; 0], "one is commanded, one waits");

    let command = connector.answer_next("done", Value::Null).await;
    assert_eq!(command["kind"], "payment.refund");
    // The database has not moved with the clock.
    sqlx::query("update command set finished_at = finished_at + interval '91 days'")
        .execute(context.db())
        .await
        .unwrap();
    assert_eq!(waiting(&context).await, (vec![], 1));
    assert_eq!(problems(&context).await, [Value::Null; 0], "it may still be told of");
    connector.event(refunded(&command, 100)).await.assert_status(200);
    assert_eq!(waiting(&context).await, (vec![], 1), "it waits at any age");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_dispute_that_is_won_after_the_order_was_given_back_is_owed() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    connector.answer_next("rejected", Value::Null).await;
    connector.event(of_payment(&order, "payment.disputed", None)).await.assert_status(200);
    order.event(&context, "refund").await.assert_status(200);
    assert_eq!(status(&context, &order).await, "refunded");
    assert_eq!(waiting(&context).await, only(&order, &["disputed"], 0));
    let won = of_payment(&order, "dispute.closed", Some("won"));
    connector.event(won).await.assert_status(200);
    assert_eq!(waiting(&context).await, only(&order, &["owed"], 1));
    refund_by_hand(&context, &order, "EUR").await;
    assert_eq!(waiting(&context).await, (vec![], 0));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_payment_of_nobody_waits_while_it_is_with_us_and_not_disputed() {
    let context = TestContext::start().await;
    let (_acme, connector) = live(&context).await;
    let tell = async |kind: &str, reference: &str| {
        let mut event = stray(kind, reference);
        event["outcome"] = json!("won");
        connector.event(event).await.assert_status(200);
        let (rows, counted) = waiting(&context).await;
        assert!(rows.is_empty(), "{rows:?}");
        counted
    };
    assert_eq!(tell("payment.received", "a").await, 1);
    assert_eq!(tell("payment.received", "b").await, 2);
    assert_eq!(tell("payment.refunded", "a").await, 1, "its provider has given it back");
    assert_eq!(tell("payment.disputed", "b").await, 0, "its provider has taken it back");
    assert_eq!(tell("payment.received", "c").await, 1);
    let by_hand = json!({"partner": "acme", "kind": "refunded", "amount": 100, "currency": "EUR",
        "connector": "manual", "providerReference": "cash", "reason": "nobody's"});
    let recorded = context.admin(Method::POST, "/admin/v1/payments", by_hand).await;
    recorded.assert_status(201);
    assert_eq!(waiting(&context).await.1, 0, "it was given back by hand");
    assert_eq!(tell("dispute.closed", "b").await, 1);
}
