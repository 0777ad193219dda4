//! Reads among many orders: none of them reads a whole table.

use http::Method;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

/// Orders of the fullest table.
const ORDERS: i64 = 50_000;

/// Orders, events and deliveries as weeks of trade leave them, in one statement for each table. One
/// order in a thousand is blocked, and one delivery in a thousand has failed.
const GENERATED: [&str; 4] = [
    "insert into client (client_id, slug, name, mode, username, revision, created_at) \
     select gen_random_uuid(), 'shop-' || n, 'Shop', 'test', 'shop-' || n, 1, now() \
     from generate_series(1, 50) n",
    "with known as (select array_agg(client_id) as ids from client) \
     insert into buy_order (client_id, order_id, quote_id, partner_reference, status, pair, \
         payment_method, wallet_address, wallet_type, fiat_amount, fiat_currency, crypto_amount, \
         crypto_currency, price, partner_fee, provider_fee, payment_method_fee, network_fee, \
         spread_fee, affiliate_fee, is_estimated_quote, terms_digest, transaction_id, created_at, \
         updated_at) \
     select ids[1 + n % cardinality(ids)], n, gen_random_uuid(), 'order-' || n, \
         case when n % 1000 = 0 then 'blocked' when n % 3 = 0 then 'cancelled' \
             else 'completed' end, \
         'BTC-EUR', 'creditCard', 'wallet-' || n, 'unhosted', 100, 'EUR', 1, 'BTC', 100, 0, 0, 0, 0, \
         0, 0, false, '', 'transaction-' || n, now() - n * interval '1 minute', now() \
     from known, generate_series(1, $1) n",
    "insert into event (client_id, event_id, type, order_id, payload, created_at) \
     select client_id, (lpad(to_hex((extract(epoch from created_at) * 1000)::bigint), 12, '0') \
             || '7' || substr(md5(order_id::text), 1, 19))::uuid, \
         'order.completed', order_id, '{}', created_at \
     from buy_order where order_id <= $1",
    "insert into delivery (client_id, delivery_id, event_id, order_id, url, state, \
         next_attempt_at, created_at, ready) \
     select client_id, event_id, event_id, order_id, 'https://shop.example.com', \
         case when order_id % 1000 = 0 then 'failed' else 'delivered' end, created_at, created_at, \
         false \
     from event where order_id <= $1",
];

async fn execute(connection: &mut PgConnection, statement: &str, orders: i64) {
    let statement = statement.replace("$1", &orders.to_string());
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await.unwrap();
}

/// Rows that were read by sequential scans, for each table and partition that grows.
async fn scanned(connection: &mut PgConnection) -> Vec<(String, i64)> {
    sqlx::query_as(
        "select relname::text, seq_tup_read from pg_stat_user_tables \
         where relname ~ '^(buy_order|event|delivery|order_transition)' and seq_tup_read > 0",
    )
    .fetch_all(connection)
    .await
    .unwrap()
}

/// Ends every other connection, which writes what it has counted.
pub(crate) async fn end_others(connection: &mut PgConnection) {
    let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity \
        where datname = current_database() and pid <> pg_backend_pid()";
    until("every connection ends", SOON, async || {
        let others: i64 = sqlx::query_scalar(end).fetch_one(&mut *connection).await.unwrap();
        (others == 0).then_some(())
    })
    .await;
}

/// Sends each read of a partner.
async fn read_as_partner(acme: &Partner, number: i64) {
    let token = format!("Bearer {}", acme.token().await);
    for path in [
        format!("/api/v2/buy/orders/{number}"),
        format!("/api/v2/buy/orders/order-{number}"),
        "/api/v2/buy/orders".to_owned(),
        "/api/v2/buy/orders?status=blocked".to_owned(),
        "/api/v2/buy/orders?status=pending".to_owned(),
        format!("/api/v2/buy/orders?partnerOrderIdentifier=order-{number}"),
        "/api/v2/events".to_owned(),
        "/api/v2/events?type=order.completed".to_owned(),
    ] {
        // Often enough that the server tries a plan for every value.
        for _ in 0..7 {
            let request = acme.anonymous(Method::GET, &path).header("authorization", &token);
            request.send().await.assert_status(200);
        }
    }
}

#[tokio::test]
async fn no_read_scans_a_table_that_grows() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut connection = PgConnection::connect(context.database()).await.unwrap();
    for statement in GENERATED {
        execute(&mut connection, statement, ORDERS).await;
    }
    execute(&mut connection, "analyze", 0).await;
    let number: i64 = sqlx::query_scalar(
        "select max(order_id) from buy_order join client using (client_id) where slug = 'acme'",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    // What it took to make them does not count.
    for statement in ["select pg_stat_force_next_flush()", "select", "select pg_stat_reset()"] {
        execute(&mut connection, statement, 0).await;
    }

    read_as_partner(&acme, number).await;
    let mut found = Vec::new();
    for query in [
        "".to_owned(),
        format!("after={number}"),
        "partner=acme".to_owned(),
        format!("partner=acme&after={number}"),
        "status=blocked".to_owned(),
        "status=completed".to_owned(),
        "partner=acme&status=blocked".to_owned(),
        "status=pending".to_owned(),
        "partner=acme&status=pending".to_owned(),
        "side=sell".to_owned(),
        "walletAddress=wallet-7".to_owned(),
        "transactionId=transaction-7".to_owned(),
        "partnerOrderIdentifier=order-7".to_owned(),
        "from=2020-01-01T00:00:00Z&to=2030-01-01T00:00:00Z".to_owned(),
    ] {
        for _ in 0..7 {
            let path = format!("/admin/v1/orders?limit=20&{query}");
            let answer = context.admin(Method::GET, path.trim_end_matches('&'), Value::Null).await;
            found.push((query.clone(), answer.assert_status(200).json()));
        }
    }
    for query in ["", "state=failed", "state=pending", "partner=acme", "order=7"] {
        let path = format!("/admin/v1/deliveries?limit=20&{query}");
        let path = path.trim_end_matches('&');
        context.admin(Method::GET, path, Value::Null).await.assert_status(200);
    }
    let path = format!("/admin/v1/orders/{number}");
    context.admin(Method::GET, &path, Value::Null).await.assert_status(200);
    for _ in 0..7 {
        assert_eq!(context.core().deliver_due().await.unwrap(), 0);
        context.core().measure_backlogs().await.unwrap();
    }
    end_others(&mut connection).await;
    assert_eq!(scanned(&mut connection).await, [], "these were read from end to end");

    let of = |query: &str| &found.iter().find(|(asked, _)| asked == query).unwrap().1;
    assert_eq!(of("walletAddress=wallet-7")[0]["id"], 7);
    assert_eq!(of("transactionId=transaction-7")[0]["id"], 7);
    assert_eq!(of("partnerOrderIdentifier=order-7")[0]["id"], 7);
    assert_eq!(of("status=blocked").as_array().unwrap().len(), 20);
    assert_eq!((&of("")[0]["id"], &of("side=sell")), (&json!(1), &&json!([])));
}

#[tokio::test]
async fn pages_of_a_search_meet_without_a_gap() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let mut connection = PgConnection::connect(context.database()).await.unwrap();
    for statement in &GENERATED[..2] {
        execute(&mut connection, statement, 40).await;
    }
    // Of one moment: only the number tells them apart.
    let at_once = "update buy_order set created_at = '2026-01-01' where order_id > 10";
    execute(&mut connection, at_once, 0).await;
    let mut seen = Vec::new();
    let mut path = "/admin/v1/orders?limit=7".to_owned();
    loop {
        let page = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
        let Some(last) = page.as_array().unwrap().last() else { break };
        path = format!("/admin/v1/orders?limit=7&after={}", last["id"]);
        seen.extend(page.as_array().unwrap().iter().map(|order| order["id"].as_i64().unwrap()));
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=40).collect::<Vec<_>>());
    let wrong = context.admin(Method::GET, "/admin/v1/orders?after=x", Value::Null).await;
    wrong.assert_status(422);
}
