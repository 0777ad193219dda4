//! Disputes that are told as lost, and whose money comes back after all.

use super::disputes::{cancelled, of_payment, reasons};
use super::purchase::{live, paid, paid_order};
use super::refunds::{arrivals, owed, refund, refunded};
use super::*;
use crate::payments::problems;

#[tokio::test]
async fn a_lost_dispute_whose_money_comes_back_is_won_after_all() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for acts in [
        ["received", "disputed", "lost", "won"],
        ["received", "disputed", "won", "lost"],
        ["disputed", "lost", "received", "won"],
        ["disputed", "lost", "won", "received"],
    ] {
        let order = cancelled(&context, &acme, &connector).await;
        for act in acts {
            let mut event = match act {
                "received" => paid(&order, 100),
                "disputed" => of_payment(&order, "payment.disputed", None),
                end => of_payment(&order, "dispute.closed", Some(end)),
            };
            event["id"] = json!(format!("{act}-{}", order.id));
            event["orderId"] = json!(order.id);
            if act == "won" {
                // All of it is meant.
                for member in ["amount", "currency"] {
                    event.as_object_mut().unwrap().remove(member);
                }
            }
            let told = connector.event(event).await.assert_status(200).json();
            assert_eq!(told, json!({"duplicate": false}), "{act} of {acts:?}");
        }
        // What is told last of all is given back by itself.
        if acts[3] != "received" {
            let books = ["provider: 100", "suspense: -100"];
            assert_eq!(owed(&context, "acme").await, books, "{acts:?}");
            let payment = arrivals(&context, &order).await.remove(0);
            assert_eq!(refund(&context, &payment, Value::Null).await, 200, "{acts:?}");
        }
        let command = connector.answer_next("done", Value::Null).await;
        assert_eq!(command["body"]["amount"], 100, "{acts:?}");
        connector.event(refunded(&command, 100)).await.assert_status(200);
        assert_eq!(owed(&context, "acme").await, [""; 0], "{acts:?}");
        assert!(reasons(&context, &order).await.is_empty(), "{acts:?}");
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn of_both_ends_of_a_dispute_at_once_the_money_that_came_back_counts() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for round in 1..=4 {
        let order = cancelled(&context, &acme, &connector).await;
        connector.event(paid(&order, 100)).await.assert_status(200);
        let disputed = of_payment(&order, "payment.disputed", None);
        connector.event(disputed).await.assert_status(200);
        let [won, lost] = ["won", "lost"].map(|outcome| {
            let mut end = of_payment(&order, "dispute.closed", Some(outcome));
            end["id"] = json!(format!("{outcome}-{}", order.id));
            end
        });
        let (won, lost) = tokio::join!(connector.event(won), connector.event(lost));
        won.assert_status(200);
        lost.assert_status(200);
        let sum = 100 * round;
        let books = [format!("provider: {sum}"), format!("suspense: -{sum}")];
        assert_eq!(owed(&context, "acme").await, books, "round {round}");
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_dispute_that_was_lost_and_won_hides_no_later_one() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    for (dispute, kind, outcome, is_open) in [
        ("dp-1", "payment.disputed", "", true),
        ("dp-1", "dispute.closed", "lost", false),
        ("dp-1", "dispute.closed", "won", false),
        ("dp-2", "payment.disputed", "", true),
    ] {
        let mut event = of_payment(&order, kind, Some(outcome));
        event["originalReference"] = event["providerReference"].take();
        event["providerReference"] = json!(dispute);
        event["id"] = json!(format!("{kind}/{dispute}/{outcome}"));
        connector.event(event).await.assert_status(200);
        let disputed = reasons(&context, &order).await.contains(&json!("disputed"));
        assert_eq!(disputed, is_open, "{dispute} {outcome}");
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}
