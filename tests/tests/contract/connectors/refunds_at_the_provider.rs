//! Refunds that a person makes at the provider, while a command to give the same payment back is
//! open: the money goes back once.

use rampart_tests::cluster::commit_once_awaited;
use rampart_tests::order_fixture::OrderFixture;

use super::purchase::{live, paid, paid_order, status};
use super::refunds::{arrivals, owed, refund, refunded};
use super::refunds_by_hand::told;
use super::*;
use crate::payments::problems;

/// Commands to give money back that have not ended.
const OPEN: &str = "select count(*) from command where kind = 'payment.refund' and state = 'open'";

/// A blocked order of 100 whose payout was rejected, and the provider's name of a second payment of
/// it, which is to be given back.
async fn paid_twice(
    context: &TestContext,
    acme: &Partner,
    connector: &Connector,
) -> (OrderFixture, String) {
    let order = paid_order(acme, connector).await;
    connector.answer_next("rejected", Value::Null).await;
    let mut second = paid(&order, 100);
    let reference = format!("second-{}", order.id);
    (second["id"], second["providerReference"]) = (json!(reference), json!(reference));
    connector.event(second).await.assert_status(200);
    assert_eq!(requested(context, &order).await, 100);
    (order, reference)
}

/// The amount that is to be given back of the order's second payment, or was.
async fn requested(context: &TestContext, order: &OrderFixture) -> Value {
    arrivals(context, order).await[0]["refundRequested"].clone()
}

/// A report that a person has given back so much of the payment of this name.
fn by_a_person(order: &OrderFixture, payment: &str, amount: u32) -> Value {
    let mut event = told(order, "dashboard", amount);
    event["originalReference"] = json!(payment);
    event
}

async fn open(context: &TestContext) -> i64 {
    sqlx::query_scalar(OPEN).fetch_one(context.db()).await.unwrap()
}

#[tokio::test]
async fn a_refund_at_the_provider_withdraws_the_command() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let (order, second) = paid_twice(&context, &acme, &connector).await;
    let event = by_a_person(&order, &second, 100);
    connector.event(event).await.assert_status(200);
    assert!(connector.lease(10).await.is_empty(), "it was given back");
    assert_eq!(owed(&context, "acme").await, ["provider: 100"]);
    assert_eq!(requested(&context, &order).await, 100, "nothing is left of it");
    let payment = arrivals(&context, &order).await.remove(0);
    assert_eq!(refund(&context, &payment, Value::Null).await, 409);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_part_that_is_given_back_at_the_provider_leaves_the_rest_to_be_decided() {
    for outcome in [None, Some("rejected"), Some("retry")] {
        let context = TestContext::start().await;
        let (acme, connector) = live(&context).await;
        let (order, second) = paid_twice(&context, &acme, &connector).await;
        let begun = match outcome {
            Some(_) => connector.lease(1).await.pop(),
            None => None,
        };
        let event = by_a_person(&order, &second, 40);
        connector.event(event).await.assert_status(200);
        if let (Some(begun), Some(outcome)) = (begun, outcome) {
            assert_eq!(open(&context).await, 1, "nobody knows what has left by it");
            let ended = connector.report(&begun, outcome, Value::Null).await;
            let ended = ended.assert_status(200).json();
            assert_eq!(ended["state"], "rejected", "{outcome}: no other attempt");
        }
        assert_eq!(open(&context).await, 0, "{outcome:?}");
        let left = ["provider: 160", "suspense: -60"];
        assert_eq!(owed(&context, "acme").await, left, "{outcome:?}");
        assert_eq!(requested(&context, &order).await, 40, "{outcome:?}");

        let payment = arrivals(&context, &order).await.remove(0);
        assert_eq!(refund(&context, &payment, json!(61)).await, 409, "{outcome:?}");
        assert_eq!(refund(&context, &payment, Value::Null).await, 200, "{outcome:?}");
        let rest = connector.answer_next("done", Value::Null).await;
        assert_eq!(rest["body"]["amount"], 60, "{outcome:?}");
        connector.event(refunded(&rest, 60)).await.assert_status(200);
        assert_eq!(owed(&context, "acme").await, ["provider: 100"], "{outcome:?}");
        assert_eq!(problems(&context).await, [Value::Null; 0]);
    }
}

#[tokio::test]
async fn a_refund_of_another_payment_at_the_provider_withdraws_nothing() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let (order, _) = paid_twice(&context, &acme, &connector).await;
    let own = format!("pay-{}", order.id);
    let event = by_a_person(&order, &own, 100);
    connector.event(event).await.assert_status(200);
    let command = connector.answer_next("done", Value::Null).await;
    assert_eq!(command["kind"], "payment.refund");
    connector.event(refunded(&command, 100)).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "refunded");
    assert_eq!(owed(&context, "acme").await, [""; 0]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn what_was_given_back_before_a_command_is_not_taken_for_its_refund() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let (order, _) = paid_twice(&context, &acme, &connector).await;
    let event = by_a_person(&order, &format!("pay-{}", order.id), 40);
    connector.event(event).await.assert_status(200);
    let own = arrivals(&context, &order).await.remove(1);
    assert_eq!(refund(&context, &own, json!(60)).await, 200);
    let of_second = connector.answer_next("done", Value::Null).await;
    connector.event(refunded(&of_second, 100)).await.assert_status(200);
    let begun = connector.lease(10).await.remove(0);
    assert_eq!(begun["body"]["amount"], 60);
    let ended = connector.report(&begun, "retry", Value::Null).await;
    let ended = ended.assert_status(200).json();
    assert_eq!(ended["state"], "open", "what was told before is another refund");

    sqlx::query("update command set due_at = now()").execute(context.db()).await.unwrap();
    let rest = connector.answer_next("done", Value::Null).await;
    connector.event(refunded(&rest, 60)).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "refunded");
    assert_eq!(owed(&context, "acme").await, [""; 0]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_at_the_provider_withdraws_the_command_after_one_of_another_payment() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let (order, second) = paid_twice(&context, &acme, &connector).await;
    let own = format!("pay-{}", order.id);
    let first = by_a_person(&order, &own, 100);
    connector.event(first).await.assert_status(200);
    let mut event = by_a_person(&order, &second, 100);
    let reference = format!("second-back-{}", order.id);
    (event["id"], event["providerReference"]) = (json!(reference), json!(reference));
    connector.event(event).await.assert_status(200);
    assert!(connector.lease(10).await.is_empty(), "both were given back");
    assert_eq!(requested(&context, &order).await, 100, "nothing is left of it");
    assert_eq!(status(&context, &order).await, "refunded");
    assert_eq!(owed(&context, "acme").await, [""; 0]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_by_command_that_is_told_withdraws_no_other_one() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    let own = arrivals(&context, &order).await.remove(0);
    for amount in [30, 50] {
        assert_eq!(refund(&context, &own, json!(amount)).await, 200);
    }
    for amount in [30, 50] {
        let command = connector.lease(10).await.remove(0);
        assert_eq!(command["body"]["amount"], amount, "in their order");
        let mut event = refunded(&command, amount);
        event["originalReference"] = json!(format!("pay-{}", order.id));
        connector.event(event).await.assert_status(200);
        connector.report(&command, "done", Value::Null).await.assert_status(200);
    }
    assert_eq!(owed(&context, "acme").await, ["customer: -20", "provider: 20"]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_command_that_is_begun_at_the_same_time_is_not_withdrawn() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let (order, second) = paid_twice(&context, &acme, &connector).await;
    let mut lease = context.db().begin().await.unwrap();
    let begin = "update command set attempt = attempt + 1 where kind = 'payment.refund'";
    sqlx::query(begin).execute(&mut *lease).await.unwrap();
    let event = connector.event(by_a_person(&order, &second, 40));
    let (answer, ()) = tokio::join!(event, commit_once_awaited(context.db(), lease));
    answer.assert_status(200);
    assert_eq!(open(&context).await, 1, "money may have left by it");
}

#[tokio::test]
async fn of_a_refund_at_the_provider_and_a_lease_at_once_no_command_is_left() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for round in 0..8 {
        let (order, second) = paid_twice(&context, &acme, &connector).await;
        let event = by_a_person(&order, &second, 40);
        let (answer, leased) = tokio::join!(connector.event(event), connector.lease(10));
        answer.assert_status(200);
        for command in leased {
            let ended = connector.report(&command, "retry", Value::Null).await;
            let ended = ended.assert_status(200).json();
            assert_eq!(ended["state"], "rejected", "round {round}");
        }
        assert_eq!(open(&context).await, 0, "round {round}");
        assert_eq!(requested(&context, &order).await, 40, "round {round}");
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_of_what_a_person_has_left_of_an_orders_payment_needs_no_amount() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    connector.answer_next("rejected", Value::Null).await;
    let event = by_a_person(&order, &format!("pay-{}", order.id), 40);
    connector.event(event).await.assert_status(200);
    let own = arrivals(&context, &order).await.remove(0);
    assert_eq!(refund(&context, &own, json!(61)).await, 409);
    for (asked, amount) in [(json!(20), 20), (Value::Null, 40)] {
        assert_eq!(refund(&context, &own, asked).await, 200);
        let command = connector.lease(1).await.remove(0);
        assert_eq!(command["body"]["amount"], amount);
        // It is told before its command is done, and is what was asked for.
        let mut event = refunded(&command, amount);
        event["originalReference"] = json!(format!("pay-{}", order.id));
        connector.event(event).await.assert_status(200);
        if amount == 40 {
            assert_eq!(refund(&context, &own, Value::Null).await, 409, "nothing is left");
        }
        connector.report(&command, "done", Value::Null).await.assert_status(200);
    }
    assert_eq!(status(&context, &order).await, "refunded");
    assert_eq!(owed(&context, "acme").await, [""; 0]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_at_the_provider_is_not_that_of_a_command_that_is_done() {
    for is_of_own in [true, false] {
        let context = TestContext::start().await;
        let (acme, connector) = live(&context).await;
        let (order, second) = paid_twice(&context, &acme, &connector).await;
        let (named, by_person) =
            if is_of_own { (format!("pay-{}", order.id), 100) } else { (second, 60) };
        let event = by_a_person(&order, &named, by_person);
        let command = if is_of_own {
            let command = connector.answer_next("done", Value::Null).await;
            connector.event(event).await.assert_status(200);
            command
        } else {
            connector.event(event).await.assert_status(200);
            let payment = arrivals(&context, &order).await.remove(0);
            assert_eq!(refund(&context, &payment, Value::Null).await, 200);
            connector.answer_next("done", Value::Null).await
        };
        // Its connector has not told of it yet: nobody gives its money back by hand.
        order.event(&context, "refund").await.assert_status(409);
        let rest = if is_of_own { 100 } else { 40 };
        assert_eq!(command["body"]["amount"], rest);
        connector.event(refunded(&command, rest)).await.assert_status(200);
        if !is_of_own {
            order.event(&context, "refund").await.assert_status(200);
        }
        assert_eq!(status(&context, &order).await, "refunded");
        assert_eq!(owed(&context, "acme").await, [""; 0]);
        assert_eq!(problems(&context).await, [Value::Null; 0]);
    }
}
