//! Numbers of quotes by hour, and the overview that has them beside the orders.

use std::sync::Arc;

use chrono::TimeDelta;
use http::Method;
use rampart_api::workers;
use rampart_core::platform::crypto::Secret;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};
use sqlx::{query, query_scalar};
use tokio::net::TcpListener;

use super::{SELL, bought, buy};

/// Orders, completed ones and quotes of the overview's hours together: one may end meanwhile.
async fn counted(context: &TestContext) -> [i64; 3] {
    let overview = context.admin(Method::GET, "/admin/v1/overview", Value::Null).await;
    let overview = overview.assert_status(200).json();
    let hours = overview["hours"].as_array().unwrap();
    ["orders", "completed", "quotes"]
        .map(|member| hours.iter().map(|hour| hour[member].as_i64().unwrap()).sum::<i64>())
}

/// Rows of this side.
async fn stored(context: &TestContext, side: &str) -> i64 {
    let stored = "select coalesce(sum(quotes), 0)::bigint from quote_hour where side = $1";
    query_scalar(stored).bind(side).fetch_one(context.db()).await.unwrap()
}

#[tokio::test]
async fn quotes_of_all_edges_stand_beside_the_orders_of_their_hour() {
    let context = TestContext::start().await;
    let other = context.second_edge().await;
    let acme = context.partner("acme").await;
    other.core().refresh().await.unwrap();
    for _ in 0..2 {
        bought(&acme, json!({})).await;
    }
    let sale = json!({"currencyPair": "BTC-EUR", "cryptoAmount": "0.01"});
    acme.post(SELL, sale).await.assert_status(200);
    bought(&acme.at(&other), json!({})).await;
    buy(&acme, json!({"currencyPair": "ZZZ-EUR"})).await.assert_status(400);
    let matrix = "/api/v2/quotes/matrix?fiatAmount=100&currency=EUR";
    acme.get(matrix).await.assert_status(200);
    assert_eq!(counted(&context).await, [0, 0, 0], "no request writes them");

    let (one, two) =
        tokio::join!(context.core().write_quote_counts(), other.core().write_quote_counts());
    one.and(two).unwrap();
    assert_eq!(counted(&context).await, [0, 0, 4], "an hour without an order is there too");
    assert_eq!((stored(&context, "buy").await, stored(&context, "sell").await), (3, 1));
    context.core().write_quote_counts().await.unwrap();
    assert_eq!(counted(&context).await, [0, 0, 4], "each is added once");
    for _ in 0..2 {
        OrderFixture::order(&context, &acme, None, None).await;
    }
    let one = "update buy_order set status = 'completed' \
        where order_id = (select min(order_id) from buy_order)";
    query(one).execute(context.db()).await.unwrap();
    assert_eq!(counted(&context).await, [2, 1, 4]);
    context.clock().advance(TimeDelta::hours(25));
    assert_eq!(counted(&context).await, [0, 0, 0]);
}

#[tokio::test]
async fn what_cannot_be_written_is_added_later() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    bought(&acme, json!({})).await;
    query("alter table quote_hour rename to away").execute(context.db()).await.unwrap();
    context.core().write_quote_counts().await.unwrap_err();
    query("alter table away rename to quote_hour").execute(context.db()).await.unwrap();
    bought(&acme, json!({})).await;
    context.core().write_quote_counts().await.unwrap();
    assert_eq!(stored(&context, "buy").await, 2);
}

#[tokio::test]
async fn an_edge_that_stops_loses_none() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    bought(&acme, json!({})).await;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let working = tokio::spawn(workers::work(Arc::clone(context.core()), stopped));
    bought(&acme, json!({})).await;
    stop.send(true).unwrap();
    working.await.unwrap();
    assert_eq!(stored(&context, "buy").await, 2);
}

/// More mails than are sent at once: a server that says nothing takes the time of two.
const MAILS: u64 = 5;

#[tokio::test]
async fn an_edge_that_stops_loses_none_while_a_worker_takes_long() {
    // A mail server that takes the connection and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("smtp://{}", silent.local_addr().unwrap());
    let context =
        TestContext::with(|settings| settings.mail.smtp_url = Some(Secret::new(url))).await;
    let acme = context.partner("acme").await;
    for number in 0..MAILS {
        acme.user(&format!("ada{number}")).await;
    }
    bought(&acme, json!({})).await;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let working = tokio::spawn(workers::work(Arc::clone(context.core()), stopped));
    let _connection = silent.accept().await.unwrap();
    let written = async |quotes: i64| {
        let look = async || (stored(&context, "buy").await == quotes).then_some(());
        until("the quotes are counted", SOON, look).await;
    };
    written(1).await;
    bought(&acme, json!({})).await;
    stop.send(true).unwrap();
    written(2).await;
    let attempts = &context.core().metrics.mail_attempts;
    let given_up = attempts.with_label_values(&["unavailable"]).get();
    assert!(given_up < MAILS, "its mail is under way");
    working.abort();
}

#[tokio::test]
async fn numbers_of_hours_long_ago_are_deleted() {
    let context = TestContext::start().await;
    let hours = "insert into quote_hour (hour, side, quotes) \
        select date_trunc('hour', now() - days * interval '1 day', 'UTC'), 'sell', 1 \
        from unnest(array[0, 89, 91, 400]) days";
    query(hours).execute(context.db()).await.unwrap();
    context.core().delete_old_quote_counts().await.unwrap();
    assert_eq!(stored(&context, "sell").await, 2);
}
