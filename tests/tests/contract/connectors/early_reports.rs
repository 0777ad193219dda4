//! Refunds and disputes that are told before their payment, and without an order: they are the
//! payment's order's once that has come in.

use rampart_tests::cluster::{until_a_lock_is_awaited, until_locks_are_awaited};
use rampart_tests::order_fixture::OrderFixture;
use sqlx::AssertSqlSafe;

use super::disputes::{cancelled, reasons, stray};
use super::purchase::{live, order, paid, payable_order, status};
use super::refunds::{arrivals, owed, refund, refunded};
use super::refunds_by_hand::{tell, told};
use super::*;
use crate::payments::problems;

/// The amounts of the order's payments of a kind, in order.
async fn of_order(context: &TestContext, order: &OrderFixture, kind: &str) -> Vec<String> {
    let path = format!("/admin/v1/payments?order={}", order.id);
    let payments = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
    let payments = payments.as_array().unwrap().iter();
    let mut amounts: Vec<_> = payments
        .filter(|payment| payment["kind"] == kind && payment["state"] == "matched")
        .map(|payment| payment["amount"].to_string())
        .collect();
    amounts.sort();
    amounts
}

/// The books of the partner, once those of nobody are empty and every order fits.
async fn books(context: &TestContext) -> Vec<String> {
    assert_eq!(owed(context, "house").await, [""; 0], "nothing is left of it without an order");
    assert_eq!(problems(context).await, [Value::Null; 0]);
    owed(context, "acme").await
}

/// An event about the order's payment, under a reference of its own.
fn of_dispute(order: &OrderFixture, kind: &str, outcome: Option<&str>) -> Value {
    json!({"id": format!("{kind}-{}", order.id), "kind": kind, "outcome": outcome,
        "occurredAt": "2026-03-02T12:00:00Z", "providerReference": format!("dp-{}", order.id),
        "originalReference": format!("pay-{}", order.id), "amount": 100, "currency": "EUR"})
}

#[tokio::test]
async fn a_refund_without_an_order_that_is_told_before_its_payment_is_the_orders() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for (partner, amount) in [(None, 100), (Some("acme"), 100), (None, 40)] {
        let order = payable_order(&acme, &connector, 100).await;
        let mut early = told(&order, "re", amount);
        early["partner"] = json!(partner);
        connector.event(early.clone()).await.assert_status(200);
        assert_eq!(status(&context, &order).await, "pending");
        connector.event(paid(&order, 100)).await.assert_status(200);
        assert_eq!(status(&context, &order).await, "blocked");
        assert!(connector.lease(10).await.is_empty(), "no coins are sent for it");
        let of_part = ["customer: -60", "provider: 60"];
        let of_whole = ["dispute: 100"];
        let left: &[&str] = if amount < 100 { &of_part } else { &of_whole };
        assert_eq!(books(&context).await, left);
        assert_eq!(of_order(&context, &order, "refunded").await, [amount.to_string()]);

        early["id"] = json!(format!("again-{}", order.id));
        assert!(tell(&connector, early).await, "it is told once");
        let payment = arrivals(&context, &order).await.remove(0);
        let beyond = json!(101 - amount);
        assert_eq!(refund(&context, &payment, beyond).await, 409, "it is given back already");
        order.event(&context, "refund").await.assert_status(200);
        assert_eq!(status(&context, &order).await, "refunded");
        assert!(connector.lease(10).await.is_empty(), "nothing is given back twice");
        let all: &[&str] = if amount < 100 { &["40", "60"] } else { &["100"] };
        assert_eq!(of_order(&context, &order, "refunded").await, all);
        assert_eq!(books(&context).await, [""; 0]);
    }
}

#[tokio::test]
async fn a_purchase_is_released_for_what_an_early_refund_has_left_of_its_payment() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for names_order in [false, true] {
        let order = payable_order(&acme, &connector, 100).await;
        let mut early = told(&order, "re", 40);
        if names_order {
            (early["partner"], early["orderId"]) = (json!("acme"), json!(order.id));
        }
        connector.event(early).await.assert_status(200);
        connector.event(paid(&order, 100)).await.assert_status(200);
        assert_eq!(status(&context, &order).await, "blocked");
        order.event(&context, "release").await.assert_status(200);
        let payout = connector.lease(10).await.remove(0);
        let (fiat, coins): (rust_decimal::Decimal, rust_decimal::Decimal) =
            sqlx::query_as("select fiat_amount, crypto_amount from buy_order where order_id = $1")
                .bind(order.id)
                .fetch_one(context.db())
                .await
                .unwrap();
        assert_eq!(fiat, rust_decimal::Decimal::from(60));
        let sent = payout["body"]["amount"].to_string();
        assert_eq!(sent.parse::<rust_decimal::Decimal>().unwrap(), coins);
        let sent = json!({"transactionId": format!("tx-{}", order.id)});
        connector.report(&payout, "done", sent).await.assert_status(200);
    }
    assert_eq!(books(&context).await, ["provider: 120"], "nothing is lost");
}

#[tokio::test]
async fn a_dispute_without_an_order_that_ends_before_its_payment_is_the_orders() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;

    let order = payable_order(&acme, &connector, 100).await;
    connector.event(of_dispute(&order, "payment.disputed", None)).await.assert_status(200);
    connector.event(of_dispute(&order, "dispute.closed", Some("lost"))).await.assert_status(200);
    connector.event(paid(&order, 100)).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "blocked");
    assert!(connector.lease(10).await.is_empty(), "no coins are sent for it");
    assert_eq!(reasons(&context, &order).await, [json!("blocked")]);
    assert_eq!(books(&context).await, ["dispute: 100"]);
    order.event(&context, "refund").await.assert_status(200);
    assert_eq!(
        of_order(&context, &order, "refunded").await,
        [""; 0],
        "nothing is given back twice"
    );
    assert_eq!(books(&context).await, [""; 0]);

    let order = payable_order(&acme, &connector, 100).await;
    connector.event(of_dispute(&order, "payment.disputed", None)).await.assert_status(200);
    let mut won = of_dispute(&order, "dispute.closed", Some("won"));
    won["originalReference"] = Value::Null;
    connector.event(won).await.assert_status(200);
    connector.event(paid(&order, 100)).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "in progress");
    assert_eq!(connector.lease(10).await.len(), 1, "the money is with us");
    assert_eq!(reasons(&context, &order).await, [Value::Null; 0]);
    for kind in ["disputed", "dispute-won"] {
        assert_eq!(of_order(&context, &order, kind).await, ["100"], "{kind}");
    }
    assert_eq!(books(&context).await, ["provider: 100"]);
}

#[tokio::test]
async fn a_dispute_without_an_order_that_ends_after_its_payment_ends_in_the_orders_book() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = payable_order(&acme, &connector, 100).await;
    connector.event(of_dispute(&order, "payment.disputed", None)).await.assert_status(200);
    connector.event(paid(&order, 100)).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "blocked");
    assert_eq!(reasons(&context, &order).await, [json!("blocked"), json!("disputed")]);
    assert_eq!(books(&context).await, ["dispute: 100"]);
    // The end names the dispute alone.
    let mut won = of_dispute(&order, "dispute.closed", Some("won"));
    won["originalReference"] = Value::Null;
    connector.event(won).await.assert_status(200);
    assert_eq!(reasons(&context, &order).await, [json!("blocked")]);
    assert_eq!(books(&context).await, ["provider: 100"]);
    order.event(&context, "release").await.assert_status(200);
    assert_eq!(connector.lease(10).await.len(), 1);
}

#[tokio::test]
async fn a_dispute_that_was_won_follows_its_payment_to_the_order_of_a_match() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for kind in ["payment.received", "payment.disputed", "dispute.closed"] {
        let mut event = stray(kind, "won");
        event["outcome"] = json!("won");
        connector.event(event).await.assert_status(200);
    }
    let path = "/admin/v1/payments?partner=acme&state=unmatched";
    let payments = context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
    let mut payments = payments.as_array().unwrap().iter();
    let payment = payments.find(|payment| payment["kind"] == "received").unwrap();
    let order = order(&acme, 100).await;
    let path = format!("/admin/v1/payments/{}/match", payment["id"].as_str().unwrap());
    context.admin(Method::POST, &path, json!({"orderId": order.id})).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "in progress");
    for kind in ["received", "disputed", "dispute-won"] {
        assert_eq!(of_order(&context, &order, kind).await, ["100"], "{kind}");
    }
    assert_eq!(books(&context).await, ["provider: 100"]);
}

#[tokio::test]
async fn what_was_given_back_without_an_order_of_a_late_payment_is_set_off() {
    for (given_back, left) in [(100, None), (40, Some(60))] {
        let context = TestContext::start().await;
        let (acme, connector) = live(&context).await;
        let order = cancelled(&context, &acme, &connector).await;
        connector.event(told(&order, "re", given_back)).await.assert_status(200);
        connector.event(paid(&order, 100)).await.assert_status(200);
        let commands = connector.lease(10).await;
        let amount = commands.first().map(|command| command["body"]["amount"].clone());
        assert_eq!(amount, left.map(|left: u32| json!(left)));
        let of_left =
            left.map(|left| [format!("provider: {left}"), format!("refund_payable: -{left}")]);
        assert_eq!(books(&context).await, of_left.map(Vec::from).unwrap_or_default());
    }
}

#[tokio::test]
async fn what_an_early_refund_has_taken_of_others_is_theirs_again() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let early = async || {
        let order = payable_order(&acme, &connector, 100).await;
        let mut early = told(&order, "re", 100);
        early["partner"] = json!("acme");
        connector.event(early).await.assert_status(200);
        order
    };
    let waiting = async |reference: &str| {
        connector.event(stray("payment.received", reference)).await.assert_status(200);
        let path = "/admin/v1/payments?partner=acme&state=unmatched";
        let payments = context.admin(Method::GET, path, Value::Null).await.json();
        let mut payments = payments.as_array().unwrap().iter();
        payments.find(|payment| payment["providerReference"] == reference).unwrap().clone()
    };
    let blocked = async |order: &OrderFixture| {
        connector.event(paid(order, 100)).await.assert_status(200);
        order.event(&context, "refund").await.assert_status(200);
    };

    // What waits in suspense.
    let other = waiting("other").await;
    blocked(&early().await).await;
    assert_eq!(books(&context).await, ["provider: 100", "suspense: -100"]);
    let wants = order(&acme, 100).await;
    let path = format!("/admin/v1/payments/{}/match", other["id"].as_str().unwrap());
    context.admin(Method::POST, &path, json!({"orderId": wants.id})).await.assert_status(200);
    assert_eq!(status(&context, &wants).await, "in progress");
    connector.lease(10).await;

    // What was set aside, whether its refund is told after the payment or before it.
    for is_told_before in [false, true] {
        let asked = waiting(&format!("asked-{is_told_before}")).await;
        assert_eq!(refund(&context, &asked, Value::Null).await, 200);
        let command = connector.lease(10).await.remove(0);
        let order = early().await;
        connector.report(&command, "done", Value::Null).await.assert_status(200);
        let back = refunded(&command, 100);
        if is_told_before {
            connector.event(back).await.assert_status(200);
            blocked(&order).await;
        } else {
            blocked(&order).await;
            let set_aside = ["provider: 200", "refund_payable: -100"];
            assert_eq!(
                books(&context).await,
                set_aside,
                "of the matched order and of what is asked"
            );
            connector.event(back).await.assert_status(200);
        }
        assert_eq!(books(&context).await, ["provider: 100"], "of the matched order");
    }
}

#[tokio::test]
async fn of_a_payment_and_its_refund_at_once_the_second_sees_the_first() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for _ in 0..8 {
        let order = payable_order(&acme, &connector, 100).await;
        let (arrival, back) = tokio::join!(
            connector.event(paid(&order, 100)),
            connector.event(told(&order, "re", 100))
        );
        arrival.assert_status(200);
        back.assert_status(200);
        if status(&context, &order).await == "blocked" {
            order.event(&context, "refund").await.assert_status(200);
        }
        assert_eq!(status(&context, &order).await, "refunded");
        assert!(connector.lease(10).await.is_empty(), "no coins are sent for it");
        assert_eq!(books(&context).await, [""; 0]);
    }
}

#[tokio::test]
async fn a_refund_waits_for_its_payment_that_is_told_at_the_same_time() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = payable_order(&acme, &connector, 100).await;
    // The payment waits for its order.
    let mut held = context.db().begin().await.unwrap();
    let lock = format!("select from buy_order where order_id = {} for update", order.id);
    sqlx::query(AssertSqlSafe(lock)).execute(&mut *held).await.unwrap();
    let meanwhile = async {
        until_a_lock_is_awaited(context.db()).await;
        let mut back = std::pin::pin!(tell(&connector, told(&order, "re", 100)));
        let decided = tokio::select! {
            known = &mut back => Some(known),
            () = until_locks_are_awaited(context.db(), 2) => None,
        };
        held.rollback().await.unwrap();
        match decided {
            Some(known) => known,
            None => back.await,
        }
    };
    let (arrival, is_known) = tokio::join!(connector.event(paid(&order, 100)), meanwhile);
    arrival.assert_status(200);
    assert!(!is_known, "the refund is new");
    assert_eq!(status(&context, &order).await, "refunded");
    assert_eq!(books(&context).await, [""; 0]);
}
