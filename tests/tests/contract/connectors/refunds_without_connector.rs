//! Refunds of connectors that lack the capability for them: an operator gives the money back.

use rampart_tests::going_live::CONNECTOR;

use super::purchase::{live, paid, paid_order, payable_order, status};
use super::refunds::{again, arrivals, owed, refund, refund_by_hand};
use super::sale::queue;
use super::*;
use crate::payments::problems;

/// Takes the capability for refunds from every connector.
const LOSE: &str =
    "update connector set capabilities = array_remove(capabilities, 'payment.refund')";
/// Gives it to every connector.
const GAIN: &str =
    "update connector set capabilities = array_append(capabilities, 'payment.refund')";

async fn change(context: &TestContext, statement: &'static str) {
    sqlx::query(statement).execute(context.db()).await.unwrap();
}

/// Payments that wait for an operator.
async fn waiting(context: &TestContext) -> Value {
    let overview = context.admin(Method::GET, "/admin/v1/overview", Value::Null).await;
    overview.assert_status(200).json()["waiting"]["payments"].clone()
}

/// The connectors that are commanded to give money back.
async fn commanded(context: &TestContext) -> Vec<String> {
    let open = "select connector from command where kind = 'payment.refund' and state = 'open'";
    sqlx::query_scalar(open).fetch_all(context.db()).await.unwrap()
}

#[tokio::test]
async fn a_refund_that_its_connector_cannot_make_waits_to_be_made_by_hand() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let cards = Connector::new(&context, "cards", &["payment.create"]).await;
    let order = paid_order(&acme, &connector).await;
    cards.event(again(&order)).await.assert_status(200);
    assert_eq!(waiting(&context).await, 1);
    // An operator may be giving it back: a capability that comes later commands nothing.
    change(&context, GAIN).await;
    assert_eq!(commanded(&context).await, [""; 0]);
    assert_eq!(waiting(&context).await, 1);
    refund_by_hand(&context, &order, "EUR").await;
    assert_eq!(waiting(&context).await, 0);
    let left = ["provider: -100", "provider: 100", "provider: 100"];
    assert_eq!(owed(&context, "acme").await, left);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn an_order_whose_connector_gives_no_money_back_stands_in_the_review_queue() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let cards = Connector::new(&context, "cards", &["payment.create"]).await;
    let order = payable_order(&acme, &connector, 100).await;
    cards.event(paid(&order, 100)).await.assert_status(200);
    let payment = arrivals(&context, &order).await.remove(0);
    assert_eq!(refund(&context, &payment, Value::Null).await, 200);
    assert_eq!(queue(&context).await, [json!([order.id.to_string(), ["blocked", "owed"]])]);
    refund_by_hand(&context, &order, "EUR").await;
    assert_eq!(status(&context, &order).await, "refunded");
    assert_eq!(queue(&context).await, [Value::Null; 0]);
    assert_eq!(owed(&context, "acme").await, ["provider: -100", "provider: 100"]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_waits_for_an_operator_while_its_connector_lacks_the_capability() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    connector.event(again(&order)).await.assert_status(200);
    for (act, waits) in [(GAIN, 0), (LOSE, 1), (GAIN, 0), (LOSE, 1)] {
        change(&context, act).await;
        assert_eq!(waiting(&context).await, waits, "{act}");
        assert_eq!(commanded(&context).await, [CONNECTOR], "{act}");
    }
    refund_by_hand(&context, &order, "EUR").await;
    assert_eq!(waiting(&context).await, 0);
    change(&context, GAIN).await;
    assert_eq!(commanded(&context).await, [""; 0], "it was given back by hand");
    assert_eq!(owed(&context, "acme").await, ["provider: -100", "provider: 200"]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_by_hand_is_first_that_of_a_connector_that_cannot_make_it() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let kinds = ["payment.create", "payment.refund"];
    let cards = Connector::new(&context, "cards", &kinds).await;
    let order = paid_order(&acme, &connector).await;
    for (teller, reference) in [(&cards, "pay-one"), (&connector, "pay-two")] {
        let mut second = again(&order);
        (second["id"], second["providerReference"]) = (json!(reference), json!(reference));
        teller.event(second).await.assert_status(200);
    }
    let lose = "update connector set capabilities = array['payment.create'] where name = 'cards'";
    change(&context, lose).await;
    assert_eq!(waiting(&context).await, 1);
    refund_by_hand(&context, &order, "EUR").await;
    assert_eq!(waiting(&context).await, 0);
    assert_eq!(commanded(&context).await, [CONNECTOR]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}
