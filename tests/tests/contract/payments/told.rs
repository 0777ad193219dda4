//! Events of payments with amounts, and the timeline of every fact, as partners are told.

use rampart_tests::partner::Partner;

use super::*;

/// The data of the newest event of a type.
async fn data(partner: &Partner, kind: &str) -> Value {
    let events = partner.get("/api/v2/events").await.assert_status(200).json();
    let mut events = events.as_array().unwrap().iter().filter(|event| event["type"] == kind);
    let event = events.next_back().unwrap_or_else(|| panic!("no {kind}"));
    event["data"].clone()
}

/// Causes and reasons of an order's timeline.
async fn timeline(context: &TestContext, order: &OrderFixture) -> Vec<String> {
    let text = |step: &Value| {
        let reason = step["reason"].as_str().map(|reason| format!(": {reason}"));
        format!("{}{}", step["cause"].as_str().unwrap(), reason.unwrap_or_default())
    };
    order.seen(context).await["timeline"].as_array().unwrap().iter().map(text).collect()
}

fn amount(amount: Value, currency: &str) -> Value {
    json!({"amount": amount, "currencyCode": currency})
}

#[tokio::test]
async fn every_event_of_a_payment_names_its_amount() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let report = async |reference: &str, kind: &str, amount: f64, currency: &str| {
        let body = json!({"orderId": order.id, "kind": kind, "amount": amount,
            "currency": currency});
        pay(&context, reference, body).await.assert_status(201);
    };
    report("1", "received", 62.5, "EUR").await;
    let blocked = data(&acme, "order.blocked").await;
    assert_eq!(blocked["due"]["amount"], json!(100));
    assert_eq!(blocked["due"]["currencyCode"], "EUR");
    assert_eq!(blocked["received"], json!([amount(json!(62.5), "EUR")]));
    order.event(&context, "release").await.assert_status(200);
    let repriced = data(&acme, "order.repriced").await;
    assert_eq!(
        (&repriced["fiatAmount"], &repriced["previousFiatAmount"]),
        (&json!(62.5), &json!(100))
    );
    assert!(repriced["cryptoAmount"].is_number() && repriced["previousCryptoAmount"].is_number());
    report("2", "received", 12.5, "EUR").await;
    let second = data(&acme, "order.payment_received").await;
    assert_eq!(second["payment"]["amount"], 12.5);
    assert_eq!(second["payment"]["currencyCode"], "EUR");
    report("3", "payout-sent", 0.00125, "BTC").await;
    report("4", "disputed", 62.5, "EUR").await;
    let disputed = data(&acme, "order.disputed").await;
    assert_eq!(
        (&disputed["payment"]["amount"], &disputed["orderId"]),
        (&json!(62.5), &json!(order.id))
    );
    report("5", "dispute-won", 62.5, "EUR").await;
    report("6", "refunded", 12.5, "EUR").await;
    assert_eq!(
        timeline(&context, &order).await,
        [
            "payment-amount-wrong",
            "released",
            "repriced: from 0.002 BTC for 100 EUR at 50000 to 0.00125 BTC for 62.5 EUR at 50000",
            "received: 12.5 EUR",
            "coins-sent",
            "held: the payment is disputed",
            "dispute-won: 62.5 EUR",
            "refunded: 12.5 EUR",
        ]
    );

    let back = OrderFixture::order(&context, &acme, None, None).await;
    let paid = json!({"orderId": back.id});
    pay(&context, "7", paid).await.assert_status(201);
    back.event(&context, "refund").await.assert_status(200);
    assert_eq!(data(&acme, "order.refunded").await["refunded"], json!([amount(json!(100), "EUR")]));
}

#[tokio::test]
async fn coins_that_were_sent_before_the_payment_are_not_sent_again() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for (kind, status_then) in [("payout-sent", "in progress"), ("payout-confirmed", "completed")] {
        let order = OrderFixture::order(&context, &acme, None, None).await;
        let coins = json!({"orderId": order.id, "kind": kind, "amount": 0.002, "currency": "BTC"});
        pay(&context, &format!("tx-{kind}"), coins).await.assert_status(201);
        assert_eq!(status(&context, &order).await, "pending");
        let paid = json!({"orderId": order.id});
        pay(&context, &format!("bank-{kind}"), paid).await.assert_status(201);
        assert_eq!(status(&context, &order).await, status_then);
        let sent: Option<String> =
            sqlx::query_scalar("select transaction_id from buy_order where order_id = $1")
                .bind(order.id)
                .fetch_one(context.db())
                .await
                .unwrap();
        assert_eq!(sent, Some(format!("tx-{kind}")));
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}
