//! Refunds by hand and reports of refunds at the same time: each is one fact.

use rampart_tests::cluster::{until_a_lock_is_awaited, until_locks_are_awaited};

use super::purchase::{live, paid_order, status};
use super::refunds::{overpaid, owed, refund};
use super::refunds_by_hand::{amounts, confirmed, given_back, tell, told};
use super::*;
use crate::payments::problems;

#[tokio::test]
async fn of_a_refund_by_hand_and_its_report_at_once_one_is_booked() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for _ in 0..8 {
        let order = paid_order(&acme, &connector).await;
        let (by_hand, by_provider) =
            tokio::join!(order.event(&context, "refund"), connector.event(told(&order, "re", 100)));
        assert!([200, 409].contains(&by_hand.status()), "{}", by_hand.text());
        by_provider.assert_status(200);
        assert_eq!(status(&context, &order).await, "refunded");
        assert_eq!(given_back(&context, &order).await, amounts(&[100]));
        assert_eq!(owed(&context, "acme").await, [""; 0]);
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_reference_that_is_told_of_two_orders_confirms_the_refund_of_one() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for round in 0..4 {
        let reference = format!("shared-{round}");
        let mut events = Vec::new();
        for _ in 0..2 {
            let order = paid_order(&acme, &connector).await;
            order.event(&context, "refund").await.assert_status(200);
            let mut event = told(&order, "re", 100);
            event["providerReference"] = json!(reference);
            events.push(event);
        }
        let (one, two) = (events.remove(0), events.remove(0));
        // In half of the rounds they are told at once.
        let known = if round % 2 == 1 {
            let (one, two) = tokio::join!(tell(&connector, one), tell(&connector, two));
            [one, two]
        } else {
            [tell(&connector, one).await, tell(&connector, two).await]
        };
        assert_eq!(known, [true, true], "no money moves");
        assert_eq!(confirmed(&context, &reference).await, amounts(&[100]), "{reference}");
        assert_eq!(owed(&context, "acme").await, [""; 0]);
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_reference_that_is_told_of_two_orders_at_once_is_a_confirmation_or_a_payment() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let by_hand = paid_order(&acme, &connector).await;
    by_hand.event(&context, "refund").await.assert_status(200);
    let other = paid_order(&acme, &connector).await;
    let [mut first, mut second] = [&by_hand, &other].map(|order| told(order, "re", 100));
    for event in [&mut first, &mut second] {
        event["providerReference"] = json!("shared");
    }
    // The first one waits here, after it has looked for a payment of its reference.
    let mut held = context.db().begin().await.unwrap();
    let lock = "lock table refund_confirmation in share mode";
    sqlx::query(lock).execute(&mut *held).await.unwrap();
    let meanwhile = async {
        until_a_lock_is_awaited(context.db()).await;
        let mut told = std::pin::pin!(tell(&connector, second));
        let decided = tokio::select! {
            known = &mut told => Some(known),
            () = until_locks_are_awaited(context.db(), 2) => None,
        };
        held.rollback().await.unwrap();
        match decided {
            Some(known) => known,
            None => told.await,
        }
    };
    assert_eq!(tokio::join!(tell(&connector, first), meanwhile), (true, true), "no money moves");
    assert_eq!(confirmed(&context, "shared").await, amounts(&[100]));
    assert_eq!(given_back(&context, &other).await, amounts(&[]));
    assert_eq!(status(&context, &other).await, "in progress");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn what_was_asked_for_counts_though_its_transaction_began_before_the_withdrawal() {
    let context = TestContext::start().await;
    let (connector, _, payment, command) = overpaid(&context).await;
    connector.report(&command, "rejected", Value::Null).await.assert_status(200);
    assert_eq!(refund(&context, &payment, json!(30)).await, 200);
    // The time of an entry is that of its transaction's start.
    for statement in [
        "alter table ledger_entry disable trigger user",
        "update ledger_entry set recorded_at = recorded_at - interval '1 hour' \
         where kind = 'refund-requested'",
        "alter table ledger_entry enable trigger user",
    ] {
        sqlx::query(statement).execute(context.db()).await.unwrap();
    }
    assert_eq!(refund(&context, &payment, json!(20)).await, 200, "nothing is left in suspense");
    let owed = owed(&context, "acme").await;
    assert!(owed.contains(&"refund_payable: -50".to_owned()), "{owed:?}");
}
