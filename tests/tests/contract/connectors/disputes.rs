//! Later reports of a provider on a payment that it names by its reference alone.

use rampart_tests::order_fixture::OrderFixture;

use super::purchase::{live, order, paid, paid_order, payable_order, status};
use super::refunds::{arrivals, owed, refund};
use super::*;
use crate::payments::problems;

/// An event that names the payment of `order` and no order.
pub(super) fn of_payment(order: &OrderFixture, kind: &str, outcome: Option<&str>) -> Value {
    json!({"id": format!("{kind}-{}", order.id), "kind": kind, "outcome": outcome,
        "occurredAt": "2026-03-02T12:00:00Z", "providerReference": format!("pay-{}", order.id),
        "amount": 100, "currency": "EUR"})
}

/// Reasons for which the order waits for a person.
pub(super) async fn reasons(context: &TestContext, order: &OrderFixture) -> Vec<Value> {
    let reviews = context.admin(Method::GET, "/admin/v1/reviews", Value::Null).await;
    let reviews = reviews.assert_status(200).json();
    let id = order.id.to_string();
    let of_order = reviews.as_array().unwrap().iter().filter(|one| one["id"].as_str() == Some(&id));
    of_order.flat_map(|one| one["reasons"].as_array().unwrap().clone()).collect()
}

#[tokio::test]
async fn a_dispute_after_completion_is_reviewed_until_it_is_closed() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for outcome in ["lost", "won"] {
        let order = paid_order(&acme, &connector).await;
        let payout = connector.lease(1).await.remove(0);
        let sent = json!({"transactionId": format!("tx-{outcome}")});
        connector.report(&payout, "done", sent).await.assert_status(200);
        let confirmed = json!({"id": format!("c-{outcome}"), "kind": "payout.confirmed",
            "occurredAt": "2026-03-01T12:10:00Z", "commandId": payout["id"],
            "transactionId": format!("tx-{outcome}"), "confirmations": 2});
        connector.event(confirmed).await.assert_status(200);
        assert_eq!(status(&context, &order).await, "completed");
        assert!(reasons(&context, &order).await.is_empty());

        let disputed = of_payment(&order, "payment.disputed", None);
        connector.event(disputed).await.assert_status(200);
        assert_eq!(status(&context, &order).await, "completed");
        assert_eq!(reasons(&context, &order).await, [json!("disputed")]);
        let told = acme.get("/api/v2/events?type=order.disputed").await.assert_status(200).json();
        assert!(told.as_array().unwrap().iter().any(|e| e["data"]["orderId"] == order.id));

        let closed = of_payment(&order, "dispute.closed", Some(outcome));
        connector.event(closed).await.assert_status(200);
        assert!(reasons(&context, &order).await.is_empty());
        let path = format!("/admin/v1/ledger/entries?partner=acme&order={}", order.id);
        let entries = context.admin(Method::GET, &path, Value::Null).await.json();
        let loss: rust_decimal::Decimal = entries
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|entry| entry["postings"].as_array().unwrap())
            .filter(|line| line["kind"] == "dispute")
            .map(|line| line["amount"].to_string().parse::<rust_decimal::Decimal>().unwrap())
            .sum();
        assert_eq!(loss, if outcome == "lost" { 100.into() } else { 0.into() });
    }
}

#[tokio::test]
async fn a_refund_that_names_its_payment_is_its_orders() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    context.partner("other").await;
    let order = paid_order(&acme, &connector).await;
    // Whoever names another partner means another payment.
    let mut of_other = of_payment(&order, "payment.disputed", None);
    of_other["partner"] = json!("other");
    connector.event(of_other).await.assert_status(200);
    assert!(reasons(&context, &order).await.is_empty());
    let path = "/admin/v1/payments?partner=other";
    let payments = context.admin(Method::GET, path, Value::Null).await.json();
    assert_eq!((&payments[0]["kind"], &payments[0]["orderId"]), (&json!("disputed"), &Value::Null));

    connector.answer_next("rejected", Value::Null).await;
    connector.event(of_payment(&order, "payment.refunded", None)).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "refunded");
}

/// An event about a payment without an order, under this reference.
pub(super) fn stray(kind: &str, reference: &str) -> Value {
    json!({"id": format!("{kind}/{reference}"), "kind": kind, "partner": "acme",
        "occurredAt": "2026-03-01T12:00:00Z", "providerReference": reference, "amount": 100,
        "currency": "EUR"})
}

#[tokio::test]
async fn what_a_provider_has_taken_or_given_back_is_matched_to_no_order() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    // There is money of others in suspense.
    for reference in ["disputed", "refunded", "other", "another"] {
        connector.event(stray("payment.received", reference)).await.assert_status(200);
    }
    connector.event(stray("payment.disputed", "disputed")).await.assert_status(200);
    connector.event(stray("payment.refunded", "refunded")).await.assert_status(200);
    let order = order(&acme, 100).await;
    let matched = async |reference: &str| {
        let path = "/admin/v1/payments?partner=acme";
        let payments = context.admin(Method::GET, path, Value::Null).await.json();
        let mut payments = payments.as_array().unwrap().iter();
        let payment = payments.find(|payment| {
            payment["kind"] == "received" && payment["providerReference"] == reference
        });
        let id = payment.unwrap()["id"].as_str().unwrap();
        let path = format!("/admin/v1/payments/{id}/match");
        context.admin(Method::POST, &path, json!({"orderId": order.id})).await.status()
    };
    assert_eq!(matched("disputed").await, 409);
    assert_eq!(matched("refunded").await, 409);
    assert_eq!(status(&context, &order).await, "pending");
    let mut won = stray("dispute.closed", "disputed");
    won["outcome"] = json!("won");
    connector.event(won).await.assert_status(200);
    assert_eq!(matched("disputed").await, 200);
    assert_eq!(status(&context, &order).await, "in progress");
}

#[tokio::test]
async fn a_dispute_that_is_told_before_its_payment_holds_the_order() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for names_order in [false, true] {
        let order = payable_order(&acme, &connector, 100).await;
        let mut disputed = of_payment(&order, "payment.disputed", None);
        if names_order {
            disputed["orderId"] = json!(order.id);
            disputed["providerReference"] = json!(format!("dispute-{}", order.id));
        }
        connector.event(disputed).await.assert_status(200);
        assert_eq!(status(&context, &order).await, "pending");
        connector.event(paid(&order, 100)).await.assert_status(200);
        assert_eq!(status(&context, &order).await, "blocked");
        assert!(connector.lease(10).await.is_empty(), "no coins are sent for it");
        assert_eq!(problems(&context).await, [Value::Null; 0]);
        order.event(&context, "release").await.assert_status(200);
        assert_eq!(connector.lease(10).await.len(), 1, "an operator knows better");
    }
}

/// A report that so much of the order's payment was given back, under a reference of its own.
fn refunded(order: &OrderFixture, amount: u32) -> Value {
    json!({"id": format!("back-{}", order.id), "kind": "payment.refunded", "orderId": order.id,
        "occurredAt": "2026-03-02T12:00:00Z", "providerReference": format!("re-{}", order.id),
        "originalReference": format!("pay-{}", order.id), "amount": amount, "currency": "EUR"})
}

#[tokio::test]
async fn a_refund_that_is_told_before_its_payment_holds_the_order() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for names_payment in [true, false] {
        let order = payable_order(&acme, &connector, 100).await;
        let mut refunded = refunded(&order, 100);
        if !names_payment {
            refunded["originalReference"] = Value::Null;
        }
        connector.event(refunded).await.assert_status(200);
        assert_eq!(status(&context, &order).await, "pending");
        connector.event(paid(&order, 100)).await.assert_status(200);
        assert_eq!(status(&context, &order).await, "blocked");
        assert!(connector.lease(10).await.is_empty(), "no coins are sent for it");
        if names_payment {
            let payment = arrivals(&context, &order).await.remove(0);
            assert_eq!(refund(&context, &payment, Value::Null).await, 409, "it is given back");
        }
        order.event(&context, "refund").await.assert_status(200);
        assert_eq!(owed(&context, "acme").await, [""; 0]);
        assert_eq!(problems(&context).await, [Value::Null; 0]);
    }
}

/// An order that was cancelled, as its connector knows.
pub(super) async fn cancelled(
    context: &TestContext,
    acme: &Partner,
    connector: &Connector,
) -> OrderFixture {
    let order = payable_order(acme, connector, 100).await;
    order.event(context, "cancel").await.assert_status(200);
    for cancel in connector.lease(10).await {
        connector.report(&cancel, "done", json!({})).await.assert_status(200);
    }
    order
}

#[tokio::test]
async fn what_was_told_as_given_back_of_a_late_payment_is_not_given_back_again() {
    for (given_back, left) in [(100, None), (40, Some(60))] {
        let context = TestContext::start().await;
        let (acme, connector) = live(&context).await;
        let order = cancelled(&context, &acme, &connector).await;
        connector.event(refunded(&order, given_back)).await.assert_status(200);
        connector.event(paid(&order, 100)).await.assert_status(200);
        let commands = connector.lease(10).await;
        let amount = commands.first().map(|command| command["body"]["amount"].clone());
        assert_eq!(amount, left.map(|left: u32| json!(left)));
        let books =
            left.map(|left| [format!("provider: {left}"), format!("refund_payable: -{left}")]);
        assert_eq!(owed(&context, "acme").await, books.map(Vec::from).unwrap_or_default());
        assert_eq!(problems(&context).await, [Value::Null; 0]);
    }
}

#[tokio::test]
async fn a_dispute_that_was_won_before_its_payment_was_told_holds_nothing() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = payable_order(&acme, &connector, 100).await;
    connector.event(of_payment(&order, "payment.disputed", None)).await.assert_status(200);
    connector.event(of_payment(&order, "dispute.closed", Some("won"))).await.assert_status(200);
    connector.event(paid(&order, 100)).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "in progress");
}

#[tokio::test]
async fn refunds_and_disputes_of_a_payment_have_references_of_their_own() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    let tell = async |kind: &str, reference: &str, amount: u32| {
        let mut event = of_payment(&order, kind, Some("won"));
        event["originalReference"] = event["providerReference"].take();
        event["providerReference"] = json!(reference);
        event["id"] = json!(format!("{kind}/{reference}"));
        event["amount"] = json!(amount);
        let told = connector.event(event).await.assert_status(200).json();
        assert_eq!(told, json!({"duplicate": false}), "{kind} {reference}");
    };
    for (kind, reference, amount) in [
        ("payment.refunded", "re-1", 20),
        ("payment.refunded", "re-2", 20),
        ("payment.disputed", "dp-1", 30),
        ("payment.disputed", "dp-2", 30),
    ] {
        tell(kind, reference, amount).await;
    }
    let payments = async || {
        let path = format!("/admin/v1/payments?order={}", order.id);
        let found = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
        found.as_array().unwrap().clone()
    };
    let of_order = payments().await;
    assert_eq!(of_order.len(), 5, "the order of its payment is the order of each");
    let path = format!("/admin/v1/payments/{}/refund", of_order[4]["id"].as_str().unwrap());
    let refund = async || {
        let body = json!({"amount": 30, "reason": "asked for"});
        context.admin(Method::POST, &path, body).await.status()
    };
    assert_eq!(refund().await, 409, "60 of it are disputed, 40 given back");
    tell("dispute.closed", "dp-1", 30).await;
    assert_eq!(refund().await, 200);
    tell("payment.disputed", "dp-3", 40).await;
    let of_order = payments().await;
    let received = of_order.iter().find(|payment| payment["kind"] == "received").unwrap();
    assert_eq!(received["refundRequested"], 0, "the refund is withdrawn");
}

#[tokio::test]
async fn a_dispute_that_is_closed_without_an_amount_is_closed_for_its_own() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for outcome in ["won", "lost"] {
        let order = paid_order(&acme, &connector).await;
        let mut disputed = of_payment(&order, "payment.disputed", None);
        disputed["amount"] = json!(40);
        connector.event(disputed).await.assert_status(200);
        let mut closed = of_payment(&order, "dispute.closed", Some(outcome));
        for member in ["amount", "currency"] {
            closed.as_object_mut().unwrap().remove(member);
        }
        for (id, is_duplicate) in [("first", false), ("again", true)] {
            closed["id"] = json!(format!("{id}-{}", order.id));
            let told = connector.event(closed.clone()).await.assert_status(200).json();
            assert_eq!(told["duplicate"], is_duplicate, "{outcome}");
        }
        let path = format!("/admin/v1/payments?order={}", order.id);
        let payments = context.admin(Method::GET, &path, Value::Null).await.json();
        let kind = format!("dispute-{outcome}");
        let mut payments = payments.as_array().unwrap().iter();
        let closed = payments.find(|payment| payment["kind"] == kind.as_str()).unwrap();
        assert_eq!((&closed["amount"], &closed["currency"]), (&json!(40), &json!("EUR")));
    }
}

#[tokio::test]
async fn a_lost_dispute_of_what_nobody_wanted_leaves_nothing_in_the_books() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = cancelled(&context, &acme, &connector).await;
    connector.event(paid(&order, 100)).await.assert_status(200);
    let mut disputed = of_payment(&order, "payment.disputed", None);
    disputed["originalReference"] = disputed["providerReference"].take();
    disputed["providerReference"] = json!("dp-1");
    connector.event(disputed).await.assert_status(200);
    assert_eq!(owed(&context, "acme").await, ["dispute: 100", "suspense: -100"]);
    let mut lost = of_payment(&order, "dispute.closed", Some("lost"));
    lost["providerReference"] = json!("dp-1");
    connector.event(lost).await.assert_status(200);
    assert_eq!(owed(&context, "acme").await, [""; 0]);

    // Its end may be told before the payment.
    let order = cancelled(&context, &acme, &connector).await;
    for (kind, outcome) in [("payment.disputed", None), ("dispute.closed", Some("lost"))] {
        let mut event = of_payment(&order, kind, outcome);
        event["orderId"] = json!(order.id);
        connector.event(event).await.assert_status(200);
    }
    connector.event(paid(&order, 100)).await.assert_status(200);
    assert_eq!(owed(&context, "acme").await, [""; 0]);
    assert!(connector.lease(10).await.is_empty(), "nothing of it is given back");

    // What is in suspense beside it stays.
    for reference in ["lost", "other"] {
        connector.event(stray("payment.received", reference)).await.assert_status(200);
    }
    connector.event(stray("payment.disputed", "lost")).await.assert_status(200);
    let mut lost = stray("dispute.closed", "lost");
    (lost["outcome"], lost["amount"]) = (json!("lost"), json!(60));
    connector.event(lost).await.assert_status(200);
    let books = ["dispute: 40", "provider: 100", "suspense: -140"];
    assert_eq!(owed(&context, "acme").await, books);

    // Without an order too its end may be told before the payment.
    for (reference, order) in [("early", Value::Null), ("nowhere", json!(8))] {
        for kind in ["payment.disputed", "dispute.closed", "payment.received"] {
            let mut event = stray(kind, reference);
            (event["outcome"], event["orderId"]) = (json!("lost"), order.clone());
            connector.event(event).await.assert_status(200);
        }
        assert_eq!(owed(&context, "acme").await, books, "{reference}");
    }
    let mut disputed = stray("payment.disputed", "dp-2");
    disputed["originalReference"] = json!("later");
    let mut lost = stray("dispute.closed", "dp-2");
    lost["outcome"] = json!("lost");
    for event in [disputed, lost, stray("payment.received", "later")] {
        connector.event(event).await.assert_status(200);
    }
    assert_eq!(owed(&context, "acme").await, books);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}
