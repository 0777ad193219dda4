//! Reports that are wrong, results that are late, and payouts beside refunds: money is stored as it
//! is told, and nobody is paid twice.

use rampart_tests::order_fixture::OrderFixture;

use super::purchase::{live, order, paid, paid_order, status};
use super::*;

/// Rows of a query that counts.
async fn count(context: &TestContext, query: &'static str) -> i64 {
    sqlx::query_scalar(query).fetch_one(context.db()).await.unwrap()
}

#[tokio::test]
async fn a_report_is_refused_for_its_form_alone() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = order(&acme, 100).await;
    for (member, value) in [
        ("amount", json!(-100)),
        ("amount", json!(0)),
        ("amount", json!("100")),
        ("amount", json!(1_000_000_000_000_001_i64)),
        ("currency", Value::Null),
        ("providerReference", json!("")),
        ("occurredAt", json!("-9999-01-01T00:00:00Z")),
    ] {
        let mut event = paid(&order, 100);
        event[member] = value;
        let refused = connector.event(event).await.assert_status(422).json();
        assert!(refused["error"].as_str().unwrap().starts_with(member), "{refused}");
    }
    assert_eq!(count(&context, "select count(*) from payment").await, 0);
    assert_eq!(count(&context, "select count(*) from connector_event").await, 0);

    let mut large = paid(&order, 100);
    (large["id"], large["currency"]) = (json!("large"), json!("USD"));
    large["occurredAt"] = json!("2999-01-01T00:00:00Z");
    large["providerReference"] = json!("other-currency");
    for number in 0..10_000 {
        large[format!("unknown{number}")] = json!(number);
    }
    connector.event(large.clone()).await.assert_status(200);
    assert_eq!(connector.event(large).await.json(), json!({"duplicate": true}));
    assert_eq!(status(&context, &order).await, "pending", "it waits for euros");
    let of_the_future = "select count(*) from payment where suspense and currency = 'USD' \
                         and occurred_at <= now()";
    assert_eq!(count(&context, of_the_future).await, 1);

    let mut huge = paid(&order, 100);
    huge["unknown"] = json!("x".repeat(300 * 1024));
    connector.event(huge).await.assert_status(413);
    connector.event(paid(&order, 100)).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "in progress");
}

#[tokio::test]
async fn a_text_that_cannot_be_stored_is_the_connectors_error() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = order(&acme, 100).await;
    for wrong in [
        json!({"partner": "a\u{0}b"}),
        json!({"earlierReferences": ["a\u{0}b"]}),
        json!({"address": "a\u{0}b", "orderId": null}),
        json!({"address": "a", "tag": "a\u{0}b", "orderId": null}),
    ] {
        let mut event = paid(&order, 100);
        event.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        let refused = connector.event(event).await.assert_status(422).json();
        assert!(refused["error"].as_str().unwrap().contains("U+0000"), "{wrong}: {refused}");
    }
    assert_eq!(count(&context, "select count(*) from payment").await, 0);
    assert_eq!(count(&context, "select count(*) from connector_event").await, 0);
}

/// A paid order and the command of its payout, leased.
async fn with_payout(
    context: &TestContext,
    acme: &Partner,
    connector: &Connector,
) -> (OrderFixture, Value) {
    let order = paid_order(acme, connector).await;
    let payout = connector.lease(1).await.remove(0);
    assert_eq!(
        (&payout["kind"], status(context, &order).await.as_str()),
        (&json!("payout.send"), "in progress")
    );
    (order, payout)
}

#[tokio::test]
async fn a_failure_is_taken_whatever_its_reason_holds() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let (reported, answered) = (order(&acme, 100).await, order(&acme, 100).await);
    let commands = connector.lease(10).await;
    let of_answered = commands.iter().find(|command| command["body"]["orderId"] == answered.id);
    let command = of_answered.unwrap();
    let failed = json!({"id": "failed", "kind": "payment.failed",
        "occurredAt": "2026-03-01T12:00:00Z", "partner": "acme", "orderId": reported.id,
        "reason": "a\u{0}b"});
    connector.event(failed).await.assert_status(200);
    let path = format!("/connectors/v1/commands/{}/result", command["id"].as_str().unwrap());
    let rejected = json!({"leaseToken": command["leaseToken"], "outcome": "rejected",
        "reason": "a\u{0}b"});
    connector.call(Method::POST, &path, rejected).await.assert_status(200);
    for order in [&reported, &answered] {
        assert_eq!(status(&context, order).await, "cancelled");
    }
    let query = "select count(*) from buy_order where status_reason = U&'a\\FFFDb'";
    assert_eq!(count(&context, query).await, 2);
}

#[tokio::test]
async fn a_connector_that_lies_after_its_lease_is_lost_changes_nothing() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let (order, first) = with_payout(&context, &acme, &connector).await;
    let end = "update command set leased_until = now() - interval '1 second'";
    sqlx::query(end).execute(context.db()).await.unwrap();
    for outcome in ["done", "rejected", "retry"] {
        let lie = json!({"transactionId": "never-sent"});
        connector.report(&first, outcome, lie).await.assert_status(409);
    }
    assert_eq!(status(&context, &order).await, "in progress");
    assert_eq!(count(&context, "select count(*) from payment where kind = 'payout-sent'").await, 0);
    let second = connector.lease(1).await.remove(0);
    assert_eq!(second["id"], first["id"], "the same effect, under the same name");
    let sent = json!({"transactionId": "ab12"});
    connector.report(&second, "done", sent).await.assert_status(200);
    connector.report(&first, "rejected", Value::Null).await.assert_status(409);
    assert_eq!(count(&context, "select count(*) from payment where kind = 'payout-sent'").await, 1);
}

#[tokio::test]
async fn an_order_is_not_given_back_while_its_coins_may_be_leaving() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let (order, payout) = with_payout(&context, &acme, &connector).await;
    order.event(&context, "refund").await.assert_status(409);
    let payment: uuid::Uuid =
        sqlx::query_scalar("select payment_id from payment").fetch_one(context.db()).await.unwrap();
    let path = format!("/admin/v1/payments/{payment}/refund");
    let reason = json!({"reason": "regret"});
    context.admin(Method::POST, &path, reason.clone()).await.assert_status(409);
    connector.report(&payout, "retry", Value::Null).await.assert_status(200);
    context.admin(Method::POST, &path, reason).await.assert_status(200);
    sqlx::query("update command set due_at = now()").execute(context.db()).await.unwrap();
    let left = connector.lease(10).await;
    let kinds: Vec<_> = left.iter().map(|command| command["kind"].clone()).collect();
    assert_eq!(kinds, ["payment.refund"], "the payout was taken back");
    connector.report(&payout, "done", json!({"transactionId": "late"})).await.assert_status(409);
}

#[tokio::test]
async fn a_held_order_sends_its_coins_once_it_is_released() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    order.event(&context, "hold").await.assert_status(200);
    assert!(connector.lease(10).await.is_empty(), "nothing leaves while it waits");
    order.event(&context, "release").await.assert_status(200);
    context.core().command_payouts().await.unwrap();
    let payouts = connector.lease(10).await;
    assert_eq!(payouts.len(), 1, "{payouts:?}");
    let sent = json!({"transactionId": "ab12"});
    connector.report(&payouts[0], "done", sent).await.assert_status(200);
    let confirmed = json!({"id": "c-1", "kind": "payout.confirmed", "partner": "acme",
        "occurredAt": "2026-03-01T12:10:00Z", "commandId": payouts[0]["id"],
        "providerReference": "ab12", "confirmations": 6});
    connector.event(confirmed).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "completed");
}

#[tokio::test]
async fn a_smaller_order_is_not_released_while_the_coins_of_the_larger_one_may_be_leaving() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let (order, payout) = with_payout(&context, &acme, &connector).await;
    // The provider has given a half back by itself.
    let refunded = json!({"id": "back-1", "kind": "payment.refunded", "partner": "acme",
        "occurredAt": "2026-03-01T12:00:00Z", "orderId": order.id, "providerReference": "back-1",
        "amount": 50, "currency": "EUR"});
    connector.event(refunded).await.assert_status(200);
    assert_eq!(status(&context, &order).await, "blocked");
    order.event(&context, "release").await.assert_status(409);
    connector.report(&payout, "retry", Value::Null).await.assert_status(200);
    order.event(&context, "release").await.assert_status(200);
    sqlx::query("update command set due_at = now()").execute(context.db()).await.unwrap();
    let payouts = connector.lease(10).await;
    assert_eq!(payouts.len(), 1, "{payouts:?}");
    let amount = |payout: &Value| -> rust_decimal::Decimal {
        payout["body"]["amount"].to_string().parse().unwrap()
    };
    assert!(amount(&payouts[0]) < amount(&payout), "{payouts:?}");
}

#[tokio::test]
async fn coins_of_an_order_that_waits_or_is_over_are_not_tried_again() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for (act, state) in
        [("payment.disputed", "blocked"), ("payment.refunded", "refunded"), ("hold", "blocked")]
    {
        let (order, payout) = with_payout(&context, &acme, &connector).await;
        if act == "hold" {
            order.event(&context, act).await.assert_status(200);
        } else {
            let told = json!({"id": format!("{act}-{}", order.id), "kind": act,
                "occurredAt": "2026-03-01T12:05:00Z", "partner": "acme", "orderId": order.id,
                "providerReference": format!("pay-{}", order.id), "amount": 100,
                "currency": "EUR"});
            connector.event(told).await.assert_status(200);
        }
        assert_eq!(status(&context, &order).await, state, "{act}");
        for _ in 0..2 {
            let told = connector.report(&payout, "retry", Value::Null).await;
            let told = told.assert_status(200).json();
            assert_eq!(told, json!({"state": "rejected", "retryAt": null}), "{act}");
        }
        sqlx::query("update command set due_at = now()").execute(context.db()).await.unwrap();
        assert!(connector.lease(10).await.is_empty(), "{act}");
        assert_eq!(status(&context, &order).await, state, "{act}");
        if act == "hold" {
            order.event(&context, "release").await.assert_status(200);
            let payouts = connector.lease(10).await;
            assert_eq!(payouts.len(), 1, "{payouts:?}");
            assert_ne!(payouts[0]["id"], payout["id"], "a release commands another one");
        }
    }
}

#[tokio::test]
async fn coins_that_may_have_left_are_tried_again_although_their_order_waits() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let (order, first) = with_payout(&context, &acme, &connector).await;
    let end = "update command set leased_until = now() - interval '1 second'";
    sqlx::query(end).execute(context.db()).await.unwrap();
    order.event(&context, "hold").await.assert_status(200);
    let second = connector.lease(1).await.remove(0);
    assert_eq!(second["id"], first["id"]);
    let told = connector.report(&second, "retry", Value::Null).await.assert_status(200).json();
    assert_eq!(told["state"], "open", "only another attempt finds out");
}
