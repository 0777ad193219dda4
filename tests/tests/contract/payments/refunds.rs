//! Money that is given back: it ends an order only if it is the order's own.

use rampart_core::platform::settings::Unexpected;

use super::*;

#[tokio::test]
async fn money_of_another_currency_is_given_back_and_the_order_keeps_its_own() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let of = |members: Value| {
        let mut named = json!({"orderId": order.id});
        named.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        named
    };
    pay(&context, "bank-1", of(json!({"amount": 60}))).await.assert_status(201);
    pay(&context, "bank-2", of(json!({"currency": "USD"}))).await.assert_status(201);
    assert!(balances(&context).await.contains(&"refund_payable USD: -100".to_owned()));
    let back = of(json!({"kind": "refunded", "currency": "USD"}));
    pay(&context, "bank-3", back).await.assert_status(201);
    assert_eq!(status(&context, &order).await, "blocked");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    assert_eq!(balances(&context).await, ["customer EUR: -60", "provider EUR: 60"]);
    let back = of(json!({"kind": "refunded", "amount": 60}));
    pay(&context, "bank-4", back).await.assert_status(201);
    assert_eq!(status(&context, &order).await, "refunded");
    assert_eq!(balances(&context).await, [""; 0]);
}

#[tokio::test]
async fn a_refund_of_money_that_never_came_is_a_loss_and_the_order_goes_on() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    pay(&context, "bank-1", json!({"orderId": order.id})).await.assert_status(201);
    let back = json!({"orderId": order.id, "kind": "refunded", "currency": "USD"});
    pay(&context, "bank-2", back).await.assert_status(201);
    assert_eq!(status(&context, &order).await, "in progress");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    let balances = balances(&context).await;
    for line in ["dispute USD: 100", "payout_payable BTC: -0.002"] {
        assert!(balances.contains(&line.to_owned()), "{line}: {balances:?}");
    }
}

#[tokio::test]
async fn of_a_refund_that_is_asked_for_and_one_that_is_told_one_takes_what_the_other_has_left() {
    let context =
        TestContext::with(|settings| settings.payments.unexpected = Unexpected::Hold).await;
    let acme = context.partner("acme").await;
    for number in 0..12 {
        let order = OrderFixture::order(&context, &acme, None, None).await;
        order.event(&context, "cancel").await.assert_status(200);
        let named = json!({"orderId": order.id});
        let late = pay(&context, &format!("bank-{number}"), named).await.assert_status(201).json();
        assert_eq!((&late["state"], &late["refundRequested"]), (&json!("suspense"), &json!(0)));
        let path = format!("{PAYMENTS}/{}/refund", late["id"].as_str().unwrap());
        let back = json!({"orderId": order.id, "kind": "refunded"});
        let reference = format!("back-{number}");
        let (asked, told) = tokio::join!(
            context.admin(Method::POST, &path, json!({"reason": "late"})),
            pay(&context, &reference, back),
        );
        assert!([200, 409].contains(&asked.status()), "{}", asked.json());
        told.assert_status(201);
        assert_eq!(balances(&context).await, [""; 0]);
    }
}

#[tokio::test]
async fn a_refund_that_no_connector_makes_waits_until_it_is_made_by_hand() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let waiting = async || {
        context.core().measure_money().await.unwrap();
        let path = "/admin/v1/overview";
        let overview = context.admin(Method::GET, path, Value::Null).await;
        let counted = overview.assert_status(200).json()["waiting"]["payments"].as_i64().unwrap();
        let measured = &context.core().metrics.payments_waiting;
        assert_eq!(measured.with_label_values(&["suspense"]).get(), counted);
        counted
    };
    let of = |kind: &str, amount: u32| json!({"orderId": order.id, "kind": kind, "amount": amount});
    pay(&context, "bank-1", of("received", 100)).await.assert_status(201);
    assert_eq!(waiting().await, 0);
    for (reference, amount) in [("bank-2", 100), ("bank-3", 30)] {
        let more = pay(&context, reference, of("received", amount)).await;
        assert_eq!(more.assert_status(201).json()["refundRequested"], amount);
    }
    assert_eq!(waiting().await, 2);
    pay(&context, "back-1", of("refunded", 60)).await.assert_status(201);
    assert_eq!(waiting().await, 2, "a part of the first is left");
    pay(&context, "back-2", of("refunded", 40)).await.assert_status(201);
    assert_eq!(waiting().await, 1);
    pay(&context, "back-3", of("refunded", 30)).await.assert_status(201);
    assert_eq!(waiting().await, 0);
    assert_eq!(status(&context, &order).await, "in progress");
}

#[tokio::test]
async fn what_is_left_to_be_made_by_hand_is_of_the_newest_refunds_of_the_order() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let waiting = async || {
        let overview = context.admin(Method::GET, "/admin/v1/overview", Value::Null).await;
        overview.assert_status(200).json()["waiting"]["payments"].as_i64().unwrap()
    };
    let of = |kind: &str, amount: u32| json!({"orderId": order.id, "kind": kind, "amount": amount});
    let own = pay(&context, "bank-1", of("received", 100)).await.assert_status(201).json();
    pay(&context, "bank-2", of("received", 30)).await.assert_status(201);
    let path = format!("{PAYMENTS}/{}/refund", own["id"].as_str().unwrap());
    let asked = context.admin(Method::POST, &path, json!({"reason": "asked for"})).await;
    asked.assert_status(200);
    assert_eq!(waiting().await, 2, "the late payment, and the order for its own");
    pay(&context, "back-1", of("refunded", 30)).await.assert_status(201);
    assert_eq!(waiting().await, 1, "the order's own payment is left");
    pay(&context, "back-2", of("refunded", 100)).await.assert_status(201);
    assert_eq!(status(&context, &order).await, "refunded");
    assert_eq!(waiting().await, 0);
}
