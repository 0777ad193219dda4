//! Refunds by command: each amount is given back once, whoever gives it back.

use rampart_tests::order_fixture::OrderFixture;

use super::purchase::{live, order, paid, paid_order, payable_order, status};
use super::*;
use crate::payments::problems;

/// The balances of a partner's book in euros, but those of fees and conversion, in order.
pub(super) async fn owed(context: &TestContext, partner: &str) -> Vec<String> {
    let path = format!("/admin/v1/ledger/balances?partner={partner}&currency=EUR");
    let balances = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
    let owed = ["customer", "suspense", "refund_payable", "dispute", "provider"];
    let lines = balances.as_array().unwrap().iter();
    let lines = lines.filter(|line| {
        line["balance"] != json!(0) && owed.contains(&line["kind"].as_str().unwrap())
    });
    let lines =
        lines.map(|line| format!("{}: {}", line["kind"].as_str().unwrap(), line["balance"]));
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    lines
}

/// The payments of an order that came in, newest first.
pub(super) async fn arrivals(context: &TestContext, order: &OrderFixture) -> Vec<Value> {
    let path = format!("/admin/v1/payments?order={}", order.id);
    let payments = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
    let payments = payments.as_array().unwrap().iter();
    payments.filter(|payment| payment["kind"] == "received").cloned().collect()
}

pub(super) async fn refund(context: &TestContext, payment: &Value, amount: Value) -> u16 {
    let path = format!("/admin/v1/payments/{}/refund", payment["id"].as_str().unwrap());
    let body = json!({"amount": amount, "reason": "asked for"});
    context.admin(Method::POST, &path, body).await.status()
}

/// A released order of 100 for which 130 came in, its payment, and the command to give 30 back.
pub(super) async fn overpaid(context: &TestContext) -> (Connector, OrderFixture, Value, Value) {
    let (acme, connector) = live(context).await;
    let order = payable_order(&acme, &connector, 100).await;
    connector.event(paid(&order, 130)).await.assert_status(200);
    let payment = arrivals(context, &order).await.remove(0);
    assert_eq!(refund(context, &payment, json!(30)).await, 200);
    let command = connector.lease(1).await.remove(0);
    order.event(context, "release").await.assert_status(200);
    (connector, order, payment, command)
}

/// A second payment of the order.
pub(super) fn again(order: &OrderFixture) -> Value {
    let mut event = paid(order, 100);
    (event["id"], event["providerReference"]) = (json!("again"), json!("pay-again"));
    event
}

/// A guest's order whose payout was rejected, and a second payment of it.
async fn blocked_and_paid_twice(context: &TestContext) -> (Connector, OrderFixture) {
    let (acme, connector) = live(context).await;
    let order = paid_order(&acme, &connector).await;
    connector.answer_next("rejected", Value::Null).await;
    connector.event(again(&order)).await.assert_status(200);
    (connector, order)
}

/// An operator's report that 100 of the order's money were given back.
pub(super) async fn refund_by_hand(context: &TestContext, order: &OrderFixture, currency: &str) {
    let by_hand = json!({"partner": "acme", "kind": "refunded", "amount": 100, "currency": currency,
        "connector": "manual", "providerReference": "cash", "orderId": order.id,
        "reason": "paid out at the counter"});
    let recorded = context.admin(Method::POST, "/admin/v1/payments", by_hand).await;
    recorded.assert_status(201);
}

/// A report of the refund that a command asked for, under a reference of its own.
pub(super) fn refunded(command: &Value, amount: u32) -> Value {
    json!({"id": format!("back-{}", command["id"]), "kind": "payment.refunded",
        "occurredAt": "2026-03-01T12:20:00Z", "commandId": command["id"],
        "providerReference": format!("re-{}", command["id"]), "amount": amount, "currency": "EUR"})
}

#[tokio::test]
async fn what_is_given_back_by_hand_is_not_given_back_by_command_too() {
    let context = TestContext::start().await;
    let (connector, order) = blocked_and_paid_twice(&context).await;
    assert_eq!(owed(&context, "acme").await, ["provider: 200", "refund_payable: -100"]);
    let in_suspense = async || {
        let path = "/admin/v1/payments?state=suspense";
        let listed = context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
        listed.as_array().unwrap().len()
    };
    assert_eq!(in_suspense().await, 1, "its connector gives it back");
    order.event(&context, "refund").await.assert_status(200);
    assert_eq!(status(&context, &order).await, "refunded");
    assert_eq!(in_suspense().await, 1, "one of its two payments is still there");
    assert!(connector.lease(10).await.is_empty(), "the second payment was given back by hand");
}

#[tokio::test]
async fn while_a_connector_gives_money_back_nobody_does_so_by_hand() {
    let context = TestContext::start().await;
    let (connector, order) = blocked_and_paid_twice(&context).await;
    let command = connector.lease(1).await.remove(0);
    assert_eq!(command["kind"], "payment.refund");
    order.event(&context, "refund").await.assert_status(409);
    connector.report(&command, "done", Value::Null).await.assert_status(200);
    order.event(&context, "refund").await.assert_status(409);
    connector.event(refunded(&command, 100)).await.assert_status(200);
    order.event(&context, "refund").await.assert_status(200);
    assert_eq!(owed(&context, "acme").await, [""; 0]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_that_was_made_and_not_told_of_lets_no_other_one_wait() {
    let context = TestContext::start().await;
    let (connector, order) = blocked_and_paid_twice(&context).await;
    let by_hand = async |kind: &str| {
        let body = json!({"partner": "acme", "kind": kind, "amount": 30, "currency": "EUR",
            "connector": "manual", "providerReference": "cash", "orderId": order.id,
            "reason": "seen"});
        context.admin(Method::POST, "/admin/v1/payments", body).await.assert_status(201);
        let overview = context.admin(Method::GET, "/admin/v1/overview", Value::Null).await;
        overview.assert_status(200).json()["waiting"]["payments"].clone()
    };
    assert_eq!(by_hand("received").await, 1);
    connector.answer_next("done", Value::Null).await;
    assert_eq!(by_hand("refunded").await, 0);
}

#[tokio::test]
async fn a_refund_that_an_operator_has_made_withdraws_the_command() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    connector.event(again(&order)).await.assert_status(200);
    refund_by_hand(&context, &order, "EUR").await;
    assert_eq!(owed(&context, "acme").await, ["provider: -100", "provider: 200"]);
    let leased = connector.lease(10).await;
    assert_eq!((leased.len(), &leased[0]["kind"]), (1, &json!("payout.send")));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_refund_by_hand_withdraws_no_more_than_it_has_given_back() {
    let context = TestContext::start().await;
    let (connector, order) = blocked_and_paid_twice(&context).await;
    let begun = connector.lease(1).await.remove(0);
    let own = arrivals(&context, &order).await.remove(1);
    assert_eq!(refund(&context, &own, Value::Null).await, 200);
    refund_by_hand(&context, &order, "EUR").await;
    assert!(connector.lease(10).await.is_empty(), "the one that was not begun is withdrawn");
    assert_eq!(refund(&context, &own, Value::Null).await, 409, "it was given back by hand");
    connector.report(&begun, "done", Value::Null).await.assert_status(200);
    connector.event(refunded(&begun, 100)).await.assert_status(200);
    assert_eq!(owed(&context, "acme").await, ["provider: -100", "provider: 100"]);
    assert_eq!(status(&context, &order).await, "refunded");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_rejected_refund_is_owed_again_and_may_be_asked_for_again() {
    let context = TestContext::start().await;
    let (connector, order) = blocked_and_paid_twice(&context).await;
    connector.answer_next("rejected", Value::Null).await;
    assert_eq!(owed(&context, "acme").await, ["provider: 200", "suspense: -100"]);
    let payments = arrivals(&context, &order).await;
    assert_eq!(payments[0]["refundRequested"], 0);
    let waiting = context.admin(Method::GET, "/admin/v1/overview", Value::Null).await;
    assert_eq!(waiting.assert_status(200).json()["waiting"]["payments"], 1);

    // The order's own payment goes back to its customer.
    assert_eq!(refund(&context, &payments[1], json!(60)).await, 200);
    connector.answer_next("rejected", Value::Null).await;
    assert_eq!(owed(&context, "acme").await, ["customer: -100", "provider: 200", "suspense: -100"]);
    for payment in &payments {
        assert_eq!(refund(&context, payment, Value::Null).await, 200);
        assert_eq!(refund(&context, payment, Value::Null).await, 409);
        let command = connector.lease(1).await.remove(0);
        assert_eq!(command["body"]["providerReference"], payment["providerReference"]);
        connector.report(&command, "done", Value::Null).await.assert_status(200);
        connector.event(refunded(&command, 100)).await.assert_status(200);
    }
    assert_eq!(status(&context, &order).await, "refunded");
    assert_eq!(owed(&context, "acme").await, [""; 0]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_part_whose_refund_is_rejected_after_the_rest_was_executed_waits_in_suspense() {
    let context = TestContext::start().await;
    let (connector, order, payment, command) = overpaid(&context).await;
    connector.report(&command, "rejected", Value::Null).await.assert_status(200);
    assert_eq!(owed(&context, "acme").await, ["provider: 130", "suspense: -30"]);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    connector.answer_next("done", json!({"transactionId": "tx"})).await;
    for _ in 0..2 {
        assert_eq!(refund(&context, &payment, json!(31)).await, 409, "its coins have left");
        assert_eq!(refund(&context, &payment, json!(30)).await, 200);
        assert_eq!(status(&context, &order).await, "in progress");
        assert_eq!(owed(&context, "acme").await, ["provider: 130", "refund_payable: -30"]);
        let command = connector.lease(10).await.pop().unwrap();
        assert_eq!(command["kind"], "payment.refund");
        connector.report(&command, "rejected", Value::Null).await.assert_status(200);
        assert_eq!(owed(&context, "acme").await, ["provider: 130", "suspense: -30"]);
    }
}

#[tokio::test]
async fn a_disputed_payment_is_not_given_back() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    let dispute = |kind: &str, outcome: Value| {
        json!({"id": kind, "kind": kind, "outcome": outcome, "amount": 100, "currency": "EUR",
            "occurredAt": "2026-03-02T12:00:00Z", "providerReference": format!("pay-{}", order.id)})
    };
    connector.event(dispute("payment.disputed", Value::Null)).await.assert_status(200);
    let payment = arrivals(&context, &order).await.remove(0);
    assert_eq!(refund(&context, &payment, Value::Null).await, 409);
    connector.event(dispute("dispute.closed", json!("won"))).await.assert_status(200);
    assert_eq!(refund(&context, &payment, Value::Null).await, 200);
}

/// A report that the provider has taken back a part of a payment.
fn disputed(reference: &str, amount: u32) -> Value {
    json!({"id": format!("dispute-{reference}"), "kind": "payment.disputed", "amount": amount,
        "currency": "EUR", "occurredAt": "2026-03-02T12:00:00Z", "providerReference": reference})
}

#[tokio::test]
async fn a_dispute_withdraws_what_is_not_given_back_yet() {
    let context = TestContext::start().await;
    let (connector, order) = blocked_and_paid_twice(&context).await;
    let own = arrivals(&context, &order).await.remove(1);
    for _ in 0..2 {
        assert_eq!(refund(&context, &own, json!(30)).await, 200);
    }
    let requested = async || {
        let payments = arrivals(&context, &order).await;
        payments.iter().map(|one| one["refundRequested"].clone()).collect::<Vec<_>>()
    };
    connector.event(disputed("pay-again", 50)).await.assert_status(200);
    assert_eq!(requested().await, [0, 60]);
    let reference = own["providerReference"].as_str().unwrap();
    connector.event(disputed(reference, 50)).await.assert_status(200);
    assert_eq!(requested().await, [0, 30], "no more of it than is disputed");
    let left = connector.lease(10).await;
    assert_eq!((left.len(), &left[0]["body"]["amount"]), (1, &json!(30)));
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_dispute_that_is_told_before_its_payment_stops_the_refund_too() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    connector.event(disputed("pay-again", 100)).await.assert_status(200);
    connector.event(again(&order)).await.assert_status(200);
    assert_eq!(arrivals(&context, &order).await[0]["refundRequested"], 0);
    let leased = connector.lease(10).await;
    assert_eq!((leased.len(), &leased[0]["kind"]), (1, &json!("payout.send")));
}

#[tokio::test]
async fn of_a_dispute_and_a_refund_at_once_one_takes_the_money() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for round in 0..8 {
        let order = order(&acme, 100).await;
        let mut stray = paid(&order, 100);
        let reference = format!("stray-{round}");
        (stray["id"], stray["providerReference"]) = (json!(reference), json!(reference));
        stray["orderId"] = json!(8);
        connector.event(stray).await.assert_status(200);
        let path = "/admin/v1/payments?partner=acme&state=unmatched";
        let payments =
            context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
        let payment = payments.as_array().unwrap().iter();
        let mut payment = payment.filter(|one| one["providerReference"] == reference.as_str());
        let payment = payment.next().cloned().unwrap();
        // In half of the rounds it is an order's.
        if round % 2 == 1 {
            let path = format!("/admin/v1/payments/{}/match", payment["id"].as_str().unwrap());
            let body = json!({"orderId": order.id});
            context.admin(Method::POST, &path, body).await.assert_status(200);
        }
        let (told, given) = tokio::join!(
            connector.event(disputed(&reference, 100)),
            refund(&context, &payment, Value::Null)
        );
        told.assert_status(200);
        assert!([200, 409].contains(&given), "{given}");
    }
    let open = "select count(*) from command where kind = 'payment.refund' and state = 'open'";
    let open: i64 = sqlx::query_scalar(open).fetch_one(context.db()).await.unwrap();
    assert_eq!(open, 0, "what is disputed is not given back");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_payment_in_another_currency_that_is_given_back_by_hand_is_not_given_back_twice() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    let mut dollars = again(&order);
    dollars["currency"] = json!("USD");
    connector.event(dollars).await.assert_status(200);
    let payment = arrivals(&context, &order).await.remove(0);
    assert_eq!((&payment["currency"], &payment["refundRequested"]), (&json!("USD"), &json!(100)));
    refund_by_hand(&context, &order, "USD").await;
    let leased = connector.lease(10).await;
    assert_eq!((leased.len(), &leased[0]["kind"]), (1, &json!("payout.send")));
}

#[tokio::test]
async fn a_refund_of_a_payment_without_an_order_is_booked_where_it_was_owed() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = payable_order(&acme, &connector, 100).await;
    let mut stray = paid(&order, 100);
    stray["orderId"] = json!(8);
    connector.event(stray).await.assert_status(200);
    let path = "/admin/v1/payments?partner=acme&state=unmatched";
    let payments = context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
    assert_eq!(refund(&context, &payments[0], Value::Null).await, 200);
    let command = connector.answer_next("done", Value::Null).await;
    connector.event(refunded(&command, 100)).await.assert_status(200);
    assert_eq!(owed(&context, "acme").await, [""; 0]);
    assert_eq!(owed(&context, "house").await, [""; 0]);
}

#[tokio::test]
async fn a_payout_that_is_commanded_waits_for_what_comes_up_before_it_is_begun() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let ada = acme.user("ada").await;
    set_users(
        &context,
        "identity_status = 'verified', amld5_status = 'verified', \
        dac8_status = 'present'",
    )
    .await;
    let confirmed = ada.buy(200).await.assert_status(200).json();
    let id = confirmed["orderId"].as_i64().unwrap();
    let order = OrderFixture { id, pay_path: String::new() };
    connector.answer_next("done", json!({})).await;
    connector.event(paid(&order, 200)).await.assert_status(200);
    set_users(&context, "disabled_at = now()").await;
    assert!(connector.lease(1).await.is_empty(), "its user was disabled meanwhile");
    connector.event(again(&order)).await.assert_status(200);
    let refund = connector.lease(10).await;
    assert_eq!((refund.len(), &refund[0]["kind"]), (1, &json!("payment.refund")));
    set_users(&context, "disabled_at = null").await;
    let payout = connector.lease(1).await.remove(0);
    assert_eq!(payout["kind"], "payout.send");
    // Its coins may have left: whoever takes it over must find out.
    set_users(&context, "disabled_at = now()").await;
    sqlx::query("update command set leased_until = now() where state = 'open'")
        .execute(context.db())
        .await
        .unwrap();
    assert_eq!(connector.lease(1).await[0]["id"], payout["id"]);
}

/// Sets columns of every user.
async fn set_users(context: &TestContext, columns: &'static str) {
    let statement = sqlx::AssertSqlSafe(format!("update end_user set {columns}"));
    sqlx::query(statement).execute(context.db()).await.unwrap();
}

#[tokio::test]
async fn late_money_goes_back_by_a_connector_that_cancels_no_payments() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let kinds = ["payment.create", "payment.refund", "payout.send"];
    let own = Connector::new(&context, "own", &kinds).await;
    let route = |leg: &str, of: &str, direction: &str| json!({"partner": "acme", leg: of, "direction": direction, "connector": "own"});
    let routes =
        json!({"routes": [route("method", "creditCard", "in"), route("asset", "BTC", "out")]});
    context.admin(Method::PUT, "/admin/v1/routes", routes).await.assert_status(200);
    let order = payable_order(&acme, &own, 100).await;
    order.event(&context, "cancel").await.assert_status(200);
    let cancels = "select count(*) from command where kind = 'payment.cancel'";
    let cancels: i64 = sqlx::query_scalar(cancels).fetch_one(context.db()).await.unwrap();
    assert_eq!(cancels, 0);
    own.event(paid(&order, 100)).await.assert_status(200);
    let refunds = own.lease(10).await;
    assert_eq!(refunds.len(), 1, "{refunds:?}");
    assert_eq!(refunds[0]["kind"], "payment.refund");
}
