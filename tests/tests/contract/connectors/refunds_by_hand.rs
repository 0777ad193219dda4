//! Refunds that an operator's event of an order has booked, and that their provider tells of: one
//! fact.

use bytes::Bytes;
use rampart_tests::going_live::CONNECTOR;
use rampart_tests::order_fixture::OrderFixture;

use super::purchase::{live, paid_order, status};
use super::refunds::{again, arrivals, overpaid, owed, refund, refunded};
use super::sale::deposited;
use super::*;
use crate::payments::problems;

/// A provider's report, under this reference, that so much of the order's payment was given back.
pub(super) fn told(order: &OrderFixture, reference: &str, amount: u32) -> Value {
    json!({"id": format!("{reference}-{}", order.id), "kind": "payment.refunded",
        "occurredAt": "2026-03-02T12:00:00Z", "amount": amount, "currency": "EUR",
        "providerReference": format!("{reference}-{}", order.id),
        "originalReference": format!("pay-{}", order.id)})
}

/// Tells of it; `true` if nothing was new.
pub(super) async fn tell(connector: &Connector, event: Value) -> bool {
    connector.event(event).await.assert_status(200).json()["duplicate"] == json!(true)
}

/// The amounts of the order's refunds in the books, the earliest first.
pub(super) async fn given_back(
    context: &TestContext,
    order: &OrderFixture,
) -> Vec<rust_decimal::Decimal> {
    sqlx::query_scalar(
        "select trim_scale(amount) from payment where order_id = $1 and kind = 'refunded' \
         order by recorded_at, payment_id",
    )
    .bind(order.id)
    .fetch_all(context.db())
    .await
    .unwrap()
}

pub(super) fn amounts(amounts: &[i64]) -> Vec<rust_decimal::Decimal> {
    amounts.iter().map(|amount| (*amount).into()).collect()
}

#[tokio::test]
async fn a_refund_by_hand_that_its_provider_tells_of_is_booked_once() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for name in ["originalReference", "providerReference", "orderId"] {
        let order = paid_order(&acme, &connector).await;
        order.event(&context, "refund").await.assert_status(200);
        assert_eq!(status(&context, &order).await, "refunded");
        let mut event = told(&order, "re", 100);
        match name {
            "providerReference" => {
                event["providerReference"] = event["originalReference"].take();
            }
            "orderId" => {
                (event["partner"], event["orderId"]) = (json!("acme"), json!(order.id));
                event["originalReference"] = Value::Null;
            }
            _ => {}
        }
        assert!(tell(&connector, event.clone()).await, "{name}: it is booked already");
        assert_eq!(owed(&context, "acme").await, [""; 0], "{name}");
        event["id"] = json!(format!("again-{}", order.id));
        assert!(tell(&connector, event.clone()).await, "{name}: it is told already");
        // Another amount under the same reference moves nothing either.
        (event["id"], event["amount"]) = (json!(format!("other-{}", order.id)), json!(7));
        assert!(tell(&connector, event).await, "{name}");
        assert_eq!(owed(&context, "acme").await, [""; 0], "{name}");
        assert_eq!(given_back(&context, &order).await, amounts(&[100]), "{name}");
        assert_eq!(status(&context, &order).await, "refunded");
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_that_was_told_is_not_recorded_by_hand_again() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    assert!(!tell(&connector, told(&order, "re", 100)).await);
    let refused = order.event(&context, "refund").await.assert_status(409).json();
    assert_eq!(refused["error"], "the order is refunded, and takes no such event then");
    assert_eq!(owed(&context, "acme").await, [""; 0]);

    // Of a part that was told, the rest alone is given back by hand.
    let order = paid_order(&acme, &connector).await;
    assert!(!tell(&connector, told(&order, "re", 40)).await);
    assert_eq!(status(&context, &order).await, "blocked");
    order.event(&context, "refund").await.assert_status(200);
    assert_eq!(given_back(&context, &order).await, amounts(&[40, 60]));
    let mut repeated = told(&order, "re", 40);
    repeated["id"] = json!("repeated");
    assert!(tell(&connector, repeated).await);
    assert!(tell(&connector, told(&order, "rest", 60)).await, "the part was no part of the rest");
    assert_eq!(owed(&context, "acme").await, [""; 0]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

/// The amounts that the order's partner was told of as given back.
pub(super) async fn told_partner(context: &TestContext, order: &OrderFixture) -> Value {
    sqlx::query_scalar(
        "select payload -> 'refunded' from event where type = 'order.refunded' and order_id = $1",
    )
    .bind(order.id)
    .fetch_one(context.db())
    .await
    .unwrap()
}

#[tokio::test]
async fn an_operators_event_gives_back_what_was_to_be_given_back_by_command() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for (commanded, parts) in [(40, [60, 40]), (40, [40, 60]), (100, [100, 0])] {
        let order = paid_order(&acme, &connector).await;
        let payment = arrivals(&context, &order).await.remove(0);
        assert_eq!(refund(&context, &payment, json!(commanded)).await, 200);
        order.event(&context, "refund").await.assert_status(200);
        assert!(connector.lease(10).await.is_empty(), "the command is withdrawn");
        assert_eq!(given_back(&context, &order).await, amounts(&[100]));
        assert_eq!(owed(&context, "acme").await, [""; 0]);
        let whole = json!([{"amount": 100, "currencyCode": "EUR"}]);
        assert_eq!(told_partner(&context, &order).await, whole);
        for (reference, amount) in ["one", "two"].into_iter().zip(parts) {
            assert!(amount == 0 || tell(&connector, told(&order, reference, amount)).await);
            assert_eq!(owed(&context, "acme").await, [""; 0], "{amount} of {parts:?}");
        }
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn what_is_told_beyond_a_refund_by_hand_is_a_refund_of_its_own() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    tell(&connector, told(&order, "part", 40)).await;
    order.event(&context, "refund").await.assert_status(200);
    let mut whole = told(&order, "whole", 100);
    assert!(!tell(&connector, whole.clone()).await);
    assert_eq!(given_back(&context, &order).await, amounts(&[40, 60, 40]));
    assert_eq!(owed(&context, "acme").await, ["dispute: 40", "provider: -40"]);
    whole["id"] = json!("again");
    assert!(tell(&connector, whole).await, "it is told already");
    assert_eq!(owed(&context, "acme").await, ["dispute: 40", "provider: -40"]);
    let statement = format!(
        "date,amount,currency,providerReference\n2026-03-01,100,EUR,pay-{id}\n\
         2026-03-02,-40,EUR,part-{id}\n2026-03-02,-100,EUR,whole-{id}\n",
        id = order.id
    );
    assert_eq!(reconciled(&context, &statement).await, (json!(3), json!([])));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_report_beyond_a_refund_by_hand_that_no_line_tells_of_is_one_difference() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    tell(&connector, told(&order, "part", 40)).await;
    order.event(&context, "refund").await.assert_status(200);
    assert!(!tell(&connector, told(&order, "whole", 100)).await);
    let statement = format!(
        "date,amount,currency,providerReference\n2026-03-01,100,EUR,pay-{id}\n\
         2026-03-02,-40,EUR,part-{id}\n",
        id = order.id
    );
    let (matched, differences) = reconciled(&context, &statement).await;
    assert_eq!((matched, differences.as_array().unwrap().len()), (json!(2), 1), "{differences}");
    assert_eq!(differences[0]["providerReference"], json!(format!("whole-{}", order.id)));
    assert_eq!(differences[0]["amount"], json!(-100));
    assert_eq!(problems(&context).await.len(), 1);
}

#[tokio::test]
async fn parts_that_are_told_in_any_order_are_what_was_given_back_and_what_is_in_suspense() {
    for parts in [&[130][..], &[30, 100], &[100, 30]] {
        let context = TestContext::start().await;
        let (connector, order, _, command) = overpaid(&context).await;
        connector.report(&command, "rejected", Value::Null).await.assert_status(200);
        order.event(&context, "refund").await.assert_status(200);
        assert_eq!(owed(&context, "acme").await, ["provider: 30", "suspense: -30"]);
        for (number, part) in parts.iter().enumerate() {
            tell(&connector, told(&order, &format!("re-{number}"), *part)).await;
        }
        assert_eq!(given_back(&context, &order).await, amounts(&[100, 30]), "{parts:?}");
        assert_eq!(owed(&context, "acme").await, [""; 0], "{parts:?}");
        assert_eq!(problems(&context).await, [Value::Null; 0]);
    }
}

#[tokio::test]
async fn a_part_that_was_paid_by_hand_beside_the_whole_that_is_told_is_a_loss() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    let by_hand = json!({"partner": "acme", "kind": "refunded", "amount": 40, "currency": "EUR",
        "connector": "manual", "providerReference": "cash", "orderId": order.id,
        "reason": "paid out at the counter"});
    context.admin(Method::POST, "/admin/v1/payments", by_hand).await.assert_status(201);
    assert_eq!(status(&context, &order).await, "blocked");
    assert!(!tell(&connector, told(&order, "whole", 100)).await);
    assert_eq!(status(&context, &order).await, "refunded");
    assert_eq!(owed(&context, "acme").await, ["dispute: 40", "provider: -40"]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn two_parts_that_are_told_are_the_whole_that_was_given_back_by_hand() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    order.event(&context, "refund").await.assert_status(200);
    for (reference, amount) in [("one", 40), ("two", 60)] {
        assert!(tell(&connector, told(&order, reference, amount)).await, "{reference}");
        assert_eq!(owed(&context, "acme").await, [""; 0], "{reference}");
    }
    assert_eq!(given_back(&context, &order).await, amounts(&[100]));
    let refund: uuid::Uuid =
        sqlx::query_scalar("select payment_id from payment where kind = 'refunded'")
            .fetch_one(context.db())
            .await
            .unwrap();
    let path = format!("/admin/v1/payments/{refund}");
    let refund = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
    let seen = refund["confirmations"].as_array().unwrap().iter();
    let seen = seen.map(|one| json!([one["connector"], one["providerReference"], one["amount"]]));
    let part = |reference: &str, amount: u32| {
        json!([CONNECTOR, format!("{reference}-{}", order.id), amount])
    };
    assert_eq!(seen.collect::<Vec<_>>(), [part("one", 40), part("two", 60)]);
    assert!(!tell(&connector, told(&order, "three", 1)).await, "nothing of it is left");
    assert_eq!(owed(&context, "acme").await, ["dispute: 1", "provider: -1"]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_of_another_payment_confirms_none_by_hand() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for own_is_first in [true, false] {
        let order = paid_order(&acme, &connector).await;
        let mut second = again(&order);
        let reference = format!("second-{}", order.id);
        (second["id"], second["providerReference"]) = (json!(reference), json!(reference));
        connector.event(second).await.assert_status(200);
        order.event(&context, "refund").await.assert_status(200);
        assert_eq!(owed(&context, "acme").await, ["provider: 100", "suspense: -100"]);
        let own = told(&order, "own", 100);
        let mut others = told(&order, "others", 100);
        others["originalReference"] = json!(reference);
        if own_is_first {
            assert!(tell(&connector, own).await);
            assert_eq!(owed(&context, "acme").await, ["provider: 100", "suspense: -100"]);
            assert!(!tell(&connector, others).await);
        } else {
            assert!(!tell(&connector, others).await);
            assert!(tell(&connector, own).await);
        }
        assert_eq!(owed(&context, "acme").await, [""; 0]);
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_by_command_confirms_none_by_hand() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    order.event(&context, "refund").await.assert_status(200);
    connector.event(again(&order)).await.assert_status(200);
    let command = connector.lease(10).await.remove(0);
    assert_eq!(command["kind"], "payment.refund");
    connector.report(&command, "done", Value::Null).await.assert_status(200);
    assert!(!tell(&connector, refunded(&command, 100)).await, "of the late payment");
    assert!(tell(&connector, told(&order, "re", 100)).await);
    assert_eq!(owed(&context, "acme").await, [""; 0]);
    assert_eq!(given_back(&context, &order).await, amounts(&[100, 100]));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn an_operators_event_gives_back_at_the_provider_of_the_orders_own_payment() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    // By its name it is the first one.
    let other = Connector::new(&context, "cards", &["payment.create", "payment.refund"]).await;
    let order = paid_order(&acme, &connector).await;
    other.event(again(&order)).await.assert_status(200);
    order.event(&context, "refund").await.assert_status(200);
    let at = "select connector from payment where kind = 'refunded'";
    let at: Vec<String> = sqlx::query_scalar(at).fetch_all(context.db()).await.unwrap();
    assert_eq!(at, [CONNECTOR]);
    let path = "/admin/v1/ledger/balances?partner=acme&currency=EUR";
    let balances = context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
    let mut lines = balances.as_array().unwrap().iter();
    let held = lines.find(|line| line["holder"] == "cards").unwrap();
    assert_eq!((&held["kind"], &held["balance"]), (&json!("provider"), &json!(100)));
    assert_eq!(owed(&context, "acme").await, ["provider: 100", "suspense: -100"]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

/// The amounts that connectors have confirmed under this reference.
pub(super) async fn confirmed(
    context: &TestContext,
    reference: &str,
) -> Vec<rust_decimal::Decimal> {
    sqlx::query_scalar(
        "select trim_scale(amount) from refund_confirmation where provider_reference = $1 \
         order by amount",
    )
    .bind(reference)
    .fetch_all(context.db())
    .await
    .unwrap()
}

#[tokio::test]
async fn two_connectors_confirm_parts_of_a_refund_of_coins_by_one_transaction() {
    let context = TestContext::start().await;
    let (connector, sale) = deposited(&context).await;
    let other = Connector::new(&context, "other", &["payout.send"]).await;
    let path = format!("/admin/v1/orders/{}/events", sale["orderId"]);
    let refund = json!({"event": "refund", "reason": "asked for"});
    context.admin(Method::POST, &path, refund).await.assert_status(200);
    for (connector, amount) in [(&connector, 0.04), (&other, 0.06)] {
        let event = json!({"id": "back", "kind": "payment.refunded", "partner": "acme",
            "occurredAt": "2026-03-02T12:00:00Z", "orderId": sale["orderId"],
            "providerReference": "0xbeef", "amount": amount, "currency": "ETH"});
        assert!(tell(connector, event).await, "{amount}");
    }
    let parts = confirmed(&context, "0xbeef").await;
    assert_eq!(parts, [rust_decimal::Decimal::new(4, 2), rust_decimal::Decimal::new(6, 2)]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

/// Lines of a statement that are matched, and its differences.
pub(super) async fn reconciled(context: &TestContext, statement: &str) -> (Value, Value) {
    let path = format!("/admin/v1/reconciliations?connector={CONNECTOR}");
    let body = Bytes::from(statement.to_owned());
    let made = context.admin_bytes(Method::POST, &path, body).await.assert_status(201).json();
    (made["matched"].clone(), made["differences"].clone())
}

#[tokio::test]
async fn a_statement_finds_a_refund_by_hand_under_its_providers_reference() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    order.event(&context, "refund").await.assert_status(200);
    let statement = format!(
        "date,amount,currency,providerReference\n2026-03-01,100,EUR,pay-{id}\n\
         2026-03-02,-100,EUR,re-{id}\n",
        id = order.id
    );
    let (matched, differences) = reconciled(&context, &statement).await;
    assert_eq!((matched, differences.as_array().unwrap().len()), (json!(1), 1), "{differences}");
    assert_eq!(problems(&context).await.len(), 1);
    tell(&connector, told(&order, "re", 100)).await;
    assert_eq!(problems(&context).await, [Value::Null; 0], "the books have the line");
    assert_eq!(reconciled(&context, &statement).await, (json!(2), json!([])));
}
