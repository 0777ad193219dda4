//! Payments without an order: each is given back once, by whoever gives it back.

use chrono::TimeDelta;
use rampart_tests::cluster::{until_a_lock_is_awaited, until_locks_are_awaited};
use rampart_tests::order_fixture::OrderFixture;

use super::purchase::{live, paid_order, payable_order, status};
use super::queue::{end_leases, retried};
use super::refunds::{owed, refund, refunded};
use super::*;
use crate::payments::problems;

/// An event about a payment without an order, under this reference.
fn stray(kind: &str, reference: &str, amount: u32) -> Value {
    json!({"id": format!("{kind}/{reference}"), "kind": kind, "partner": "acme",
        "occurredAt": "2026-03-01T12:00:00Z", "providerReference": reference, "amount": amount,
        "currency": "EUR"})
}

/// The payment without an order that came in under this reference.
async fn arrived(context: &TestContext, reference: &str) -> Value {
    let path = "/admin/v1/payments?partner=acme";
    let payments = context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
    let mut payments = payments.as_array().unwrap().iter();
    let is_it = |one: &&Value| one["kind"] == "received" && one["providerReference"] == reference;
    payments.find(is_it).unwrap().clone()
}

/// Matches the payment without an order that came in under this reference. The answer's status.
async fn matched(context: &TestContext, reference: &str, order: &OrderFixture) -> u16 {
    let payment = arrived(context, reference).await;
    let path = format!("/admin/v1/payments/{}/match", payment["id"].as_str().unwrap());
    context.admin(Method::POST, &path, json!({"orderId": order.id})).await.status()
}

/// Payments that came in under these references, in this order, and are to be given back.
async fn to_be_given_back(context: &TestContext, connector: &Connector, all: &[(&str, u32)]) {
    for (reference, amount) in all {
        let event = stray("payment.received", reference, *amount);
        connector.event(event).await.assert_status(200);
        let payment = arrived(context, reference).await;
        assert_eq!(refund(context, &payment, Value::Null).await, 200, "{reference}");
    }
}

/// An operator's report that so much was given back by hand.
async fn given_back_by_hand(context: &TestContext, reference: &str, amount: u32) {
    let by_hand = json!({"partner": "acme", "kind": "refunded", "amount": amount,
        "currency": "EUR", "connector": "manual", "providerReference": reference,
        "reason": "wired"});
    let recorded = context.admin(Method::POST, "/admin/v1/payments", by_hand).await;
    recorded.assert_status(201);
}

/// The references of the payments that are listed as unmatched, of which as many are measured.
async fn unmatched(context: &TestContext) -> Vec<String> {
    let path = "/admin/v1/payments?state=unmatched";
    let listed = context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
    let listed = listed.as_array().unwrap().iter();
    let mut references: Vec<_> =
        listed.map(|one| one["providerReference"].as_str().unwrap().to_owned()).collect();
    references.sort();
    context.core().measure_money().await.unwrap();
    let measured = &context.core().metrics.payments_waiting;
    let counted = measured.with_label_values(&["unmatched"]).get();
    assert_eq!(usize::try_from(counted).unwrap(), references.len(), "{references:?}");
    references
}

#[tokio::test]
async fn what_was_given_back_is_not_listed_as_unmatched() {
    let context = TestContext::start().await;
    let (_, connector) = live(&context).await;
    for reference in ["disputed", "open", "part", "told"] {
        let event = stray("payment.received", reference, 100);
        connector.event(event).await.assert_status(200);
    }
    assert_eq!(unmatched(&context).await, ["disputed", "open", "part", "told"]);
    for (kind, reference, amount) in [
        ("payment.disputed", "disputed", 100),
        ("payment.refunded", "part", 40),
        ("payment.refunded", "told", 100),
    ] {
        let event = stray(kind, reference, amount);
        connector.event(event).await.assert_status(200);
    }
    assert_eq!(unmatched(&context).await, ["open", "part"]);
    to_be_given_back(&context, &connector, &[("given", 100)]).await;
    let command = connector.answer_next("done", Value::Null).await;
    connector.event(refunded(&command, 100)).await.assert_status(200);
    to_be_given_back(&context, &connector, &[("asked", 100)]).await;
    assert_eq!(unmatched(&context).await, ["open", "part"], "its connector gives it back");
    connector.answer_next("done", Value::Null).await;
    context.clock().advance(TimeDelta::days(6));
    assert_eq!(unmatched(&context).await, ["open", "part"]);
    context.clock().advance(TimeDelta::days(2));
    assert_eq!(unmatched(&context).await, ["asked", "open", "part"], "nothing was told of it");
    assert_eq!(arrived(&context, "told").await["state"], "unmatched");
}

#[tokio::test]
async fn what_was_given_back_by_hand_is_not_given_back_by_command_too() {
    let context = TestContext::start().await;
    let (_, connector) = live(&context).await;
    let other = stray("payment.received", "of-somebody-else", 100);
    connector.event(other).await.assert_status(200);
    to_be_given_back(&context, &connector, &[("stray", 100)]).await;
    given_back_by_hand(&context, "wire", 100).await;
    assert!(connector.lease(10).await.is_empty(), "it was given back by hand");
    let books = ["provider: -100", "provider: 200", "suspense: -100"];
    assert_eq!(owed(&context, "acme").await, books);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_by_hand_withdraws_that_of_its_name_or_its_amount() {
    for (by_hand, amount, left) in
        [("wire", 100, "second"), ("wire", 30, "first"), ("first", 100, "second")]
    {
        let context = TestContext::start().await;
        let (_, connector) = live(&context).await;
        let second = if by_hand == "first" { 100 } else { 30 };
        to_be_given_back(&context, &connector, &[("first", 100), ("second", second)]).await;
        given_back_by_hand(&context, by_hand, amount).await;
        let leased = connector.lease(10).await;
        let leased: Vec<_> = leased.iter().map(|one| &one["body"]["providerReference"]).collect();
        assert_eq!(leased, [left], "{by_hand} {amount}");
        assert_eq!(problems(&context).await, [Value::Null; 0]);
    }
}

#[tokio::test]
async fn a_refund_by_hand_withdraws_that_of_its_name_beside_one_that_nobody_commands() {
    let context = TestContext::start().await;
    let (_, connector) = live(&context).await;
    let by_hand = json!({"partner": "acme", "kind": "received", "amount": 100, "currency": "EUR",
        "connector": "manual", "providerReference": "cash", "reason": "seen"});
    context.admin(Method::POST, "/admin/v1/payments", by_hand).await.assert_status(201);
    let cash = arrived(&context, "cash").await;
    assert_eq!(refund(&context, &cash, Value::Null).await, 200);
    to_be_given_back(&context, &connector, &[("stray", 100)]).await;
    given_back_by_hand(&context, "stray", 100).await;
    assert!(connector.lease(10).await.is_empty(), "it was given back by hand");
    let books = owed(&context, "acme").await;
    assert!(books.contains(&"refund_payable: -100".to_owned()), "the other is owed: {books:?}");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_that_nobody_commanded_is_not_that_of_a_command() {
    let context = TestContext::start().await;
    let (_, connector) = live(&context).await;
    let other = stray("payment.received", "other", 100);
    connector.event(other).await.assert_status(200);
    connector.event(stray("payment.refunded", "other", 100)).await.assert_status(200);
    to_be_given_back(&context, &connector, &[("first", 100)]).await;
    let command = connector.lease(10).await.remove(0);
    connector.report(&command, "done", Value::Null).await.assert_status(200);
    // Its connector has not told of it yet: what is set aside is for that.
    to_be_given_back(&context, &connector, &[("second", 100)]).await;
    given_back_by_hand(&context, "wire", 100).await;
    assert!(connector.lease(10).await.is_empty(), "it was given back by hand");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_part_that_was_given_back_by_hand_leaves_the_rest_to_be_decided() {
    let context = TestContext::start().await;
    let (_, connector) = live(&context).await;
    to_be_given_back(&context, &connector, &[("stray", 100)]).await;
    given_back_by_hand(&context, "wire", 40).await;
    assert!(connector.lease(10).await.is_empty());
    let books = ["provider: -40", "provider: 100", "suspense: -60"];
    assert_eq!(owed(&context, "acme").await, books);
    assert_eq!(arrived(&context, "stray").await["refundRequested"], 40);
    let payment = arrived(&context, "stray").await;
    assert_eq!(refund(&context, &payment, Value::Null).await, 200);
    assert_eq!(connector.lease(10).await[0]["body"]["amount"], 60);
}

#[tokio::test]
async fn what_its_provider_has_given_back_is_not_given_back_again() {
    let context = TestContext::start().await;
    let (_, connector) = live(&context).await;
    // There is money of others in suspense.
    for reference in ["whole", "part", "other"] {
        let event = stray("payment.received", reference, 100);
        connector.event(event).await.assert_status(200);
    }
    for (reference, amount) in [("whole", 100), ("part", 40)] {
        let event = stray("payment.refunded", reference, amount);
        connector.event(event).await.assert_status(200);
    }
    let whole = arrived(&context, "whole").await;
    assert_eq!(refund(&context, &whole, Value::Null).await, 409);
    assert_eq!(refund(&context, &whole, json!(1)).await, 409);
    let part = arrived(&context, "part").await;
    assert_eq!(refund(&context, &part, json!(61)).await, 409);
    assert_eq!(refund(&context, &part, json!(20)).await, 200);
    let command = connector.lease(10).await.remove(0);
    connector.report(&command, "done", Value::Null).await.assert_status(200);
    let mut told = stray("payment.refunded", "re-1", 20);
    told["originalReference"] = json!("part");
    connector.event(told).await.assert_status(200);
    // What was asked for is not counted twice.
    assert_eq!(refund(&context, &part, Value::Null).await, 200);
    assert_eq!(connector.lease(10).await[0]["body"]["amount"], 40);
    assert_eq!(
        owed(&context, "acme").await,
        ["provider: 140", "refund_payable: -40", "suspense: -100"]
    );
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn what_an_operator_has_given_back_by_its_reference_is_not_given_back_again() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = payable_order(&acme, &connector, 100).await;
    // There is money of others in suspense.
    for reference in ["other", "part", "whole"] {
        let event = stray("payment.received", reference, 100);
        connector.event(event).await.assert_status(200);
    }
    given_back_by_hand(&context, "whole", 100).await;
    given_back_by_hand(&context, "part", 40).await;
    assert_eq!(unmatched(&context).await, ["other", "part"]);
    let whole = arrived(&context, "whole").await;
    assert_eq!(refund(&context, &whole, Value::Null).await, 409);
    assert_eq!(matched(&context, "whole", &order).await, 409);
    let part = arrived(&context, "part").await;
    assert_eq!(refund(&context, &part, json!(61)).await, 409);
    assert_eq!(refund(&context, &part, Value::Null).await, 200);
    assert_eq!(connector.lease(10).await[0]["body"]["amount"], 60);
    assert_eq!(matched(&context, "other", &order).await, 200);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_payment_that_is_matched_after_its_refund_was_rejected_is_given_back() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = payable_order(&acme, &connector, 100).await;
    to_be_given_back(&context, &connector, &[("stray", 100)]).await;
    connector.answer_next("rejected", Value::Null).await;
    let payment = arrived(&context, "stray").await;
    let path = format!("/admin/v1/payments/{}/match", payment["id"].as_str().unwrap());
    let matched = context.admin(Method::POST, &path, json!({"orderId": order.id})).await;
    matched.assert_status(200);
    assert_eq!(status(&context, &order).await, "in progress");
    assert_eq!(refund(&context, &payment, Value::Null).await, 200);
    let command = connector.answer_next("done", Value::Null).await;
    connector.event(refunded(&command, 100)).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "refunded");
    assert_eq!(owed(&context, "acme").await, [""; 0]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn what_is_told_of_a_matched_payment_is_of_its_order_whatever_order_it_names() {
    let context = TestContext::start().await;
    let (_, connector) = live(&context).await;
    let body = json!({"slug": "globex", "name": "Globex", "mode": "live"});
    let globex = context.partner_of(body).await;
    for (kind, state) in [("payment.disputed", "blocked"), ("payment.refunded", "refunded")] {
        let order = payable_order(&globex, &connector, 100).await;
        let reference = format!("pay-{}", order.id);
        let tell = async |kind: &str, own: &str| {
            let mut event = stray(kind, own, 100);
            // The order and the partner that the payer has named.
            (event["orderId"], event["originalReference"]) = (json!(8), json!(reference));
            connector.event(event).await.assert_status(200);
        };
        tell("payment.received", &reference).await;
        assert_eq!(matched(&context, &reference, &order).await, 200);
        assert_eq!(status(&context, &order).await, "in progress");
        tell(kind, &format!("{kind}-{}", order.id)).await;
        assert_eq!(status(&context, &order).await, state);
        assert!(connector.lease(10).await.is_empty(), "no coins are sent for it");
        assert_eq!(owed(&context, "acme").await, [""; 0]);
        assert_eq!(owed(&context, "globex").await, ["dispute: 100"]);
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn the_end_of_a_dispute_that_names_it_alone_is_of_the_order_of_its_payment() {
    let context = TestContext::start().await;
    let (_, connector) = live(&context).await;
    let body = json!({"slug": "globex", "name": "Globex", "mode": "live"});
    let globex = context.partner_of(body).await;
    let order = payable_order(&globex, &connector, 100).await;
    let tell = async |mut event: Value| {
        // The order and the partner that the payer has named.
        event["orderId"] = json!(8);
        connector.event(event).await.assert_status(200);
    };
    tell(stray("payment.received", "paid", 100)).await;
    assert_eq!(matched(&context, "paid", &order).await, 200);
    let mut disputed = stray("payment.disputed", "dispute", 100);
    disputed["originalReference"] = json!("paid");
    tell(disputed).await;
    assert_eq!(owed(&context, "globex").await, ["dispute: 100"]);
    let mut won = stray("dispute.closed", "dispute", 100);
    won["outcome"] = json!("won");
    tell(won).await;
    assert_eq!(owed(&context, "acme").await, [""; 0]);
    assert_eq!(owed(&context, "globex").await, ["provider: 100"]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_dispute_that_is_told_while_its_payment_is_matched_is_of_the_order() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    connector.event(stray("payment.received", "stray", 100)).await.assert_status(200);
    let order = payable_order(&acme, &connector, 100).await;
    // The match waits here, after it has looked for disputes.
    let mut somebody = context.db().begin().await.unwrap();
    sqlx::query("select from buy_order for update").execute(&mut *somebody).await.unwrap();
    let meanwhile = async {
        until_a_lock_is_awaited(context.db()).await;
        let told = connector.event(stray("payment.disputed", "stray", 100));
        let commit = async {
            until_locks_are_awaited(context.db(), 2).await;
            somebody.commit().await.unwrap();
        };
        tokio::join!(told, commit).0
    };
    let (matched, told) = tokio::join!(matched(&context, "stray", &order), meanwhile);
    told.assert_status(200);
    assert_eq!(matched, 200);
    assert_eq!(status(&context, &order).await, "blocked");
    assert!(connector.lease(10).await.is_empty(), "no coins are sent for it");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_is_of_the_payment_that_it_names_whatever_order_it_names() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    connector.event(stray("payment.received", "stray", 100)).await.assert_status(200);
    let order = paid_order(&acme, &connector).await;
    let mut event = stray("payment.refunded", "re", 100);
    (event["orderId"], event["originalReference"]) = (json!(order.id), json!("stray"));
    connector.event(event).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "in progress");
    assert_eq!(connector.lease(10).await[0]["kind"], "payout.send");
    assert_eq!(owed(&context, "acme").await, ["provider: 100"]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_that_was_perhaps_made_is_listed_until_its_connector_knows() {
    let context = TestContext::with(|settings| settings.connectors.attempts_max = 1).await;
    let (_, connector) = live(&context).await;
    to_be_given_back(&context, &connector, &[("stray", 100)]).await;
    assert_eq!(connector.lease(1).await[0]["kind"], "payment.refund");
    assert_eq!(unmatched(&context).await, [""; 0]);
    end_leases(&context).await;
    assert_eq!(retried(&context, &connector).await, "open");
    assert_eq!(unmatched(&context).await, ["stray"]);

    sqlx::query("update command set due_at = now()").execute(context.db()).await.unwrap();
    let command = connector.answer_next("done", Value::Null).await;
    assert_eq!(unmatched(&context).await, [""; 0], "it is made");
    connector.event(refunded(&command, 100)).await.assert_status(200);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}
