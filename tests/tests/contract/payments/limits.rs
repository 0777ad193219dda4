//! The limits and the price of an order that is released, where another amount has arrived than was
//! confirmed.

use chrono::TimeDelta;
use rampart_tests::user::User;

use super::*;

async fn order(ada: &User, fiat: u32) -> OrderFixture {
    let confirmed = ada.buy(fiat).await.assert_status(200).json();
    OrderFixture { id: confirmed["orderId"].as_i64().unwrap(), pay_path: String::new() }
}

#[tokio::test]
async fn an_order_is_released_for_no_more_than_its_user_may_buy_and_counts_as_that() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    sqlx::query("update end_user set limit_overrides = '{\"user_day_limit\": 300}'")
        .execute(context.db())
        .await
        .unwrap();
    let (fits, exceeds) = (order(&ada, 100).await, order(&ada, 40).await);
    for (order, amount, reference) in [(&fits, 240, "1"), (&exceeds, 90, "2")] {
        let paid = json!({"orderId": order.id, "amount": amount});
        pay(&context, reference, paid).await.assert_status(201);
        assert_eq!(status(&context, order).await, "blocked");
    }
    fits.event(&context, "release").await.assert_status(200);
    exceeds.event(&context, "release").await.assert_status(409);
    assert_eq!(status(&context, &exceeds).await, "blocked");
    ada.buy(40).await.assert_codes(&["ER011"]);
    // The day is over for the first one alone.
    sqlx::query(
        "update buy_order set created_at = created_at - interval '2 days' where order_id = $1",
    )
    .bind(fits.id)
    .execute(context.db())
    .await
    .unwrap();
    exceeds.event(&context, "release").await.assert_status(200);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn an_order_of_a_guest_is_released_for_no_more_than_guests_may_order() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let guests = json!({"guestOrders": {"allowed": true, "maxFiat": 150}});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", guests).await.assert_status(200);
    for (amount, released, expected) in [(150, 200, "in progress"), (151, 409, "blocked")] {
        let order = OrderFixture::order(&context, &acme, None, None).await;
        let paid = json!({"orderId": order.id, "amount": amount});
        pay(&context, &format!("bank-{amount}"), paid).await.assert_status(201);
        assert_eq!(status(&context, &order).await, "blocked");
        order.event(&context, "release").await.assert_status(released);
        assert_eq!(status(&context, &order).await, expected);
    }
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn an_estimated_order_is_released_at_a_live_price_alone() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    sqlx::query("update buy_order set is_estimated_quote = true where order_id = $1")
        .bind(order.id)
        .execute(context.db())
        .await
        .unwrap();
    let change = async |method: Method, path: &str, body: Value| {
        context.admin(method, path, body).await.assert_status(200);
        context.core().refresh().await.unwrap();
    };
    let pair = "/admin/v1/pairs/BTC-EUR";
    change(Method::PUT, "/admin/v1/prices/BTC-EUR", json!({"price": 50000})).await;
    change(Method::PATCH, pair, json!({"priceMaxAgeSeconds": 60})).await;
    let paid = json!({"orderId": order.id, "amount": 99});
    pay(&context, "bank-1", paid).await.assert_status(201);
    assert_eq!(status(&context, &order).await, "blocked");
    context.clock().advance(TimeDelta::seconds(61));
    order.event(&context, "release").await.assert_status(409);
    assert_eq!(status(&context, &order).await, "blocked");
    change(Method::PATCH, pair, json!({"priceMaxAgeSeconds": 3600})).await;
    order.event(&context, "release").await.assert_status(200);
    assert_eq!(status(&context, &order).await, "in progress");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn an_estimated_order_is_held_beyond_a_fraction_of_a_percent() {
    let context = TestContext::with(|settings| {
        settings.quotes.estimated_slippage_max = "0.5".parse().unwrap();
    })
    .await;
    let acme = context.partner("acme").await;
    for (price, expected) in [(50250, "in progress"), (50300, "blocked"), (49700, "blocked")] {
        let order = OrderFixture::order(&context, &acme, None, None).await;
        sqlx::query("update buy_order set is_estimated_quote = true where order_id = $1")
            .bind(order.id)
            .execute(context.db())
            .await
            .unwrap();
        let live = json!({ "price": price });
        context.admin(Method::PUT, "/admin/v1/prices/BTC-EUR", live).await.assert_status(200);
        context.core().refresh().await.unwrap();
        let paid = json!({"orderId": order.id});
        pay(&context, &format!("bank-{price}"), paid).await.assert_status(201);
        assert_eq!(status(&context, &order).await, expected, "{price}");
    }
}
