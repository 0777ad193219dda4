//! Refunds of one order by command, by hand and by its event, which one operator may not decide alone
//! together.

use rampart_core::platform::settings::{Settings, Unexpected};
use rampart_tests::answer::Answer;
use rampart_tests::order_fixture::OrderFixture;

use super::purchase::{live, paid, paid_order, payable_order};
use super::refunds::{again, arrivals, refunded};
use super::*;

/// An operator who gives back at most 100 of an order alone, an order with its first payment, and its
/// connector.
struct Desk<'a> {
    context: &'a TestContext,
    token: String,
    connector: Connector,
    order: OrderFixture,
    payment: Value,
}

impl<'a> Desk<'a> {
    /// With an order of 100 for which 130 came in.
    async fn new(context: &'a TestContext) -> Self {
        let (acme, connector) = live(context).await;
        let order = payable_order(&acme, &connector, 100).await;
        connector.event(paid(&order, 130)).await.assert_status(200);
        Self::of(context, connector, order).await
    }

    async fn of(context: &'a TestContext, connector: Connector, order: OrderFixture) -> Self {
        let payment = arrivals(context, &order).await.pop().unwrap();
        let token = context.operator("ada", &["treasury"]).await;
        Self { context, token, connector, order, payment }
    }

    async fn call(&self, path: &str, body: Value) -> Answer {
        let body = Bytes::from(body.to_string());
        self.context.admin_as(Some(&self.token), Method::POST, path, body).await
    }

    /// With an order of 100 that is executed, and a second payment of 60, which waits for the
    /// operator.
    async fn paid_twice(context: &'a TestContext) -> Self {
        let (acme, connector) = live(context).await;
        let order = paid_order(&acme, &connector).await;
        let mut second = again(&order);
        second["amount"] = json!(60);
        connector.event(second).await.assert_status(200);
        let mut payments = arrivals(context, &order).await.into_iter();
        let payment = payments.find(|one| one["providerReference"] == "pay-again").unwrap();
        Self { payment, ..Self::of(context, connector, order).await }
    }

    /// Gives the rest of the order back by its event: the status of the answer.
    async fn by_event(&self) -> u16 {
        let path = format!("/admin/v1/orders/{}/events", self.order.id);
        self.call(&path, json!({"event": "refund", "reason": "the rest"})).await.status()
    }

    /// Asks the connector to give an amount back: the status of the answer.
    async fn by_command(&self, amount: u32) -> u16 {
        let path = format!("/admin/v1/payments/{}/refund", self.payment["id"].as_str().unwrap());
        self.call(&path, json!({"amount": amount, "reason": "asked for"})).await.status()
    }

    /// Tells that an amount was given back: the status of the answer.
    async fn by_hand(&self, reference: &str, amount: u32) -> u16 {
        let given_back = json!({"kind": "refunded", "amount": amount, "currency": "EUR",
            "orderId": self.order.id, "providerReference": reference, "reason": "at the counter"});
        self.call("/admin/v1/payments", given_back).await.status()
    }
}

/// At most 100 are given back alone, and a second payment waits.
fn holding(settings: &mut Settings) {
    settings.operators.payment_alone_max = 100;
    settings.payments.unexpected = Unexpected::Hold;
}

#[tokio::test]
async fn refunds_by_hand_and_by_command_of_one_order_count_together() {
    let context = TestContext::with(|settings| settings.operators.payment_alone_max = 100).await;
    let desk = Desk::new(&context).await;
    assert_eq!(desk.by_command(60).await, 200);
    assert_eq!(desk.connector.lease(1).await[0]["kind"], "payment.refund");
    assert_eq!(desk.by_hand("1", 41).await, 202, "the connector gives 60 back as well");
    assert_eq!(desk.by_hand("1", 40).await, 201);
    assert_eq!(desk.by_hand("1", 40).await, 200, "the same one again");
    assert_eq!(desk.by_command(1).await, 202);
}

#[tokio::test]
async fn a_refund_by_hand_in_place_of_a_command_counts_once() {
    let context = TestContext::with(|settings| settings.operators.payment_alone_max = 100).await;
    let desk = Desk::new(&context).await;
    assert_eq!(desk.by_command(60).await, 200);
    assert_eq!(desk.by_hand("1", 60).await, 201);
    assert!(desk.connector.lease(10).await.is_empty(), "the command is withdrawn");
    assert_eq!(desk.by_command(40).await, 200);
    assert_eq!(desk.by_hand("2", 40).await, 201);
    assert_eq!(desk.by_command(1).await, 202);
}

#[tokio::test]
async fn an_order_that_is_given_back_counts_with_its_refunds_by_command() {
    let context = TestContext::with(|settings| settings.operators.payment_alone_max = 100).await;
    let desk = Desk::new(&context).await;
    assert_eq!(desk.by_command(60).await, 200);
    let command = desk.connector.answer_next("done", Value::Null).await;
    desk.connector.event(refunded(&command, 60)).await.assert_status(200);
    assert_eq!(desk.by_event().await, 202, "130 in all");
}

#[tokio::test]
async fn an_executed_order_that_is_given_back_counts_with_its_refunds_by_command() {
    let context = TestContext::with(holding).await;
    let desk = Desk::paid_twice(&context).await;
    assert_eq!(desk.by_command(60).await, 200);
    assert_eq!(desk.by_event().await, 202, "160 in all");
}

#[tokio::test]
async fn a_refund_by_command_counts_with_its_order_that_was_given_back() {
    let context = TestContext::with(holding).await;
    let desk = Desk::paid_twice(&context).await;
    assert_eq!(desk.by_event().await, 200);
    assert_eq!(desk.by_command(1).await, 202, "101 in all");
}

#[tokio::test]
async fn what_the_edge_gives_back_by_itself_is_no_operators_decision() {
    let context = TestContext::with(|settings| settings.operators.payment_alone_max = 100).await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    connector.event(again(&order)).await.assert_status(200);
    let desk = Desk::of(&context, connector, order).await;
    assert_eq!(desk.by_command(100).await, 200);
    for _ in 0..2 {
        let command = desk.connector.answer_next("done", Value::Null).await;
        assert_eq!(command["kind"], "payment.refund", "both payments are given back");
    }
}
