//! Payouts that fail, come back, leave in parts or by hand: what has left is booked once, and an order
//! that has it all is completed.

use rampart_core::platform::crypto::Secret;
use rampart_core::platform::db::MIGRATIONS;
use rampart_core::platform::schema;
use rampart_core::platform::settings::Database;
use rampart_tests::cluster;

use super::*;

/// Reports of one order: kind, reference, amount.
async fn tell(context: &TestContext, order: &OrderFixture, reports: &[(&str, &str, f64)]) {
    for (kind, reference, amount) in reports {
        let coins = json!({"orderId": order.id, "kind": kind, "amount": amount, "currency": "BTC"});
        pay(context, reference, coins).await.assert_status(201);
        assert_eq!(problems(context).await, [Value::Null; 0], "after {kind} {reference}");
    }
}

/// A paid order.
async fn paid(context: &TestContext) -> OrderFixture {
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(context, &acme, None, None).await;
    pay(context, "bank-1", json!({"orderId": order.id})).await.assert_status(201);
    order
}

/// The transaction that the order names.
async fn transaction(context: &TestContext, order: &OrderFixture) -> Option<String> {
    let named = "select transaction_id from buy_order where order_id = $1";
    sqlx::query_scalar(named).bind(order.id).fetch_one(context.db()).await.unwrap()
}

/// The coins that have left, by the books.
async fn left(context: &TestContext) -> String {
    let balances = balances(context).await;
    let treasury = balances.iter().find_map(|line| line.strip_prefix("treasury BTC: "));
    treasury.unwrap_or("0").to_owned()
}

#[tokio::test]
async fn coins_that_had_arrived_and_came_back_are_sent_again_and_booked_once() {
    let context = TestContext::start().await;
    let order = paid(&context).await;
    tell(&context, &order, &[("payout-sent", "a", 0.002)]).await;
    order.event(&context, "hold").await.assert_status(200);
    // The chain forgets a block.
    tell(&context, &order, &[("payout-confirmed", "a", 0.002), ("payout-failed", "a", 0.002)])
        .await;
    assert_eq!(left(&context).await, "0");
    order.event(&context, "release").await.assert_status(200);
    tell(&context, &order, &[("payout-sent", "b", 0.002), ("payout-confirmed", "b", 0.002)]).await;
    assert_eq!(
        (left(&context).await.as_str(), &*status(&context, &order).await),
        ("-0.002", "completed")
    );
}

#[tokio::test]
async fn an_order_whose_second_payout_arrives_while_it_waits_is_completed_by_its_release() {
    let context = TestContext::start().await;
    let order = paid(&context).await;
    tell(&context, &order, &[("payout-sent", "a", 0.002), ("payout-failed", "a", 0.002)]).await;
    order.event(&context, "release").await.assert_status(200);
    tell(&context, &order, &[("payout-sent", "b", 0.002)]).await;
    order.event(&context, "hold").await.assert_status(200);
    tell(&context, &order, &[("payout-confirmed", "b", 0.002)]).await;
    assert_eq!(status(&context, &order).await, "blocked");
    order.event(&context, "release").await.assert_status(200);
    assert_eq!(status(&context, &order).await, "completed");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn an_order_whose_payout_has_arrived_is_completed_by_its_payment() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    tell(&context, &order, &[("payout-sent", "a", 0.002), ("payout-confirmed", "a", 0.002)]).await;
    assert_eq!(status(&context, &order).await, "pending");
    let paid = order.event(&context, "payment-received").await.assert_status(200).json();
    assert_eq!(paid["status"], "completed");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    let metrics = context.core().metrics.render();
    for cause in ["payment-received", "confirmed-on-chain"] {
        let counted = format!("rampart_orders_total{{event=\"{cause}\"}} 1");
        assert!(metrics.contains(&counted), "{counted}");
    }
}

#[tokio::test]
async fn a_part_is_booked_once_and_comes_back_as_a_part() {
    let context = TestContext::start().await;
    let order = paid(&context).await;
    tell(&context, &order, &[("payout-sent", "a", 0.001), ("payout-sent", "b", 0.0005)]).await;
    assert_eq!(left(&context).await, "-0.0015");
    order.event(&context, "hold").await.assert_status(200);
    tell(&context, &order, &[("payout-confirmed", "a", 0.001)]).await;
    assert_eq!(left(&context).await, "-0.0015");
    tell(&context, &order, &[("payout-failed", "b", 0.0005)]).await;
    assert_eq!(left(&context).await, "-0.001");
    assert!(balances(&context).await.contains(&"payout_payable BTC: -0.001".to_owned()));
}

#[tokio::test]
async fn a_refund_takes_back_the_part_that_has_left() {
    let context = TestContext::start().await;
    let order = paid(&context).await;
    tell(&context, &order, &[("payout-sent", "a", 0.001)]).await;
    order.event(&context, "hold").await.assert_status(200);
    order.event(&context, "refund").await.assert_status(200);
    assert_eq!(status(&context, &order).await, "refunded");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    assert_eq!(balances(&context).await, [""; 0]);
}

#[tokio::test]
async fn coins_that_have_left_while_their_order_waited_came_back_by_no_refund_of_it() {
    let context = TestContext::start().await;
    let order = paid(&context).await;
    order.event(&context, "hold").await.assert_status(200);
    tell(&context, &order, &[("payout-sent", "a", 0.002)]).await;
    for (event, status) in [("release", 200), ("refund", 409), ("hold", 200), ("refund", 200)] {
        order.event(&context, event).await.assert_status(status);
    }
    assert_eq!(balances(&context).await, [""; 0]);
}

#[tokio::test]
async fn parts_that_a_refund_has_taken_back_do_not_come_back_once_more() {
    let context = TestContext::start().await;
    let order = paid(&context).await;
    tell(&context, &order, &[("payout-sent", "a", 0.001), ("payout-sent", "b", 0.0005)]).await;
    order.event(&context, "hold").await.assert_status(200);
    order.event(&context, "refund").await.assert_status(200);
    tell(&context, &order, &[("payout-failed", "a", 0.001), ("payout-failed", "b", 0.0005)]).await;
    assert_eq!(balances(&context).await, [""; 0]);
}

#[tokio::test]
async fn what_a_network_has_kept_is_a_fee_of_a_refunded_order_until_it_comes_back() {
    let context = TestContext::start().await;
    let order = paid(&context).await;
    tell(&context, &order, &[("payout-sent", "a", 0.002), ("payout-failed", "a", 0.0015)]).await;
    order.event(&context, "refund").await.assert_status(200);
    assert_eq!(balances(&context).await, ["fee_network BTC: 0.0005", "treasury BTC: -0.0005"]);
    tell(&context, &order, &[("payout-failed", "b", 0.0002)]).await;
    assert_eq!(balances(&context).await, ["fee_network BTC: 0.0003", "treasury BTC: -0.0003"]);
    tell(&context, &order, &[("payout-failed", "c", 0.0003)]).await;
    assert_eq!(balances(&context).await, [""; 0]);
    assert_eq!(waiting(&context).await, (vec![], json!(0), false));
}

#[tokio::test]
async fn an_order_of_which_a_part_has_arrived_is_completed_by_the_rest() {
    let context = TestContext::start().await;
    let order = paid(&context).await;
    tell(&context, &order, &[("payout-sent", "a", 0.001)]).await;
    // Somebody says that all has arrived, and the books know of a part that never left.
    order.event(&context, "confirmed-on-chain").await.assert_status(409);
    tell(&context, &order, &[("payout-confirmed", "a", 0.001)]).await;
    assert_eq!(status(&context, &order).await, "in progress");
    tell(&context, &order, &[("payout-sent", "b", 0.001)]).await;
    assert_eq!(status(&context, &order).await, "in progress");
    tell(&context, &order, &[("payout-confirmed", "b", 0.001)]).await;
    assert_eq!(status(&context, &order).await, "completed");
    assert_eq!(left(&context).await, "-0.002");
}

#[tokio::test]
async fn an_event_without_a_reference_tells_of_the_part_that_is_still_owed() {
    let context = TestContext::start().await;
    let order = paid(&context).await;
    tell(&context, &order, &[("payout-sent", "a", 0.001), ("payout-confirmed", "a", 0.001)]).await;
    order.event(&context, "confirmed-on-chain").await.assert_status(200);
    assert_eq!(status(&context, &order).await, "completed");
    assert_eq!(left(&context).await, "-0.002");
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}

#[tokio::test]
async fn what_left_in_another_currency_is_no_payout_of_the_order() {
    let context = TestContext::start().await;
    let order = paid(&context).await;
    let other = json!({"orderId": order.id, "kind": "payout-sent", "amount": 5, "currency": "EUR"});
    pay(&context, "typo", other).await.assert_status(201);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
    assert_eq!(transaction(&context, &order).await, None);
    tell(&context, &order, &[("payout-confirmed", "a", 0.002)]).await;
    assert_eq!(
        (left(&context).await.as_str(), &*status(&context, &order).await),
        ("-0.002", "completed")
    );
}

/// The review queue with its reasons, and the payments that wait, by overview and metrics.
async fn waiting(context: &TestContext) -> (Vec<Value>, Value, bool) {
    let queue = context.admin(Method::GET, "/admin/v1/reviews", Value::Null).await;
    let queue = queue.assert_status(200).json();
    let rows = queue.as_array().unwrap().iter();
    let rows = rows.map(|row| json!([row["id"], row["reasons"]])).collect();
    let overview = context.admin(Method::GET, "/admin/v1/overview", Value::Null).await;
    let counted = overview.assert_status(200).json()["waiting"]["payments"].take();
    context.core().measure_money().await.unwrap();
    let metrics = context.core().metrics.render();
    (rows, counted, metrics.contains("rampart_payments_waiting{state=\"suspense\"} 1"))
}

#[tokio::test]
async fn coins_that_come_back_of_a_completed_order_wait_until_they_are_sent_again() {
    let context = TestContext::start().await;
    let order = paid(&context).await;
    tell(&context, &order, &[("payout-sent", "a", 0.002), ("payout-confirmed", "a", 0.002)]).await;
    assert_eq!(waiting(&context).await, (vec![], json!(0), false));
    tell(&context, &order, &[("payout-failed", "a", 0.002)]).await;
    assert_eq!(status(&context, &order).await, "completed");
    let returned = (vec![json!([order.id.to_string(), ["returned"]])], json!(1), true);
    assert_eq!(waiting(&context).await, returned);
    tell(&context, &order, &[("payout-sent", "b", 0.0005)]).await;
    assert_eq!(waiting(&context).await, returned, "a part is with us");
    tell(&context, &order, &[("payout-sent", "c", 0.0015), ("payout-confirmed", "c", 0.0015)])
        .await;
    assert_eq!(waiting(&context).await, (vec![], json!(0), false));
    assert_eq!(left(&context).await, "-0.002");
}

#[tokio::test]
async fn coins_of_which_a_part_has_left_wait_until_the_rest_has() {
    let context = TestContext::start().await;
    let order = paid(&context).await;
    tell(&context, &order, &[("payout-sent", "a", 0.001)]).await;
    context.core().command_payouts().await.unwrap();
    let shortfall = (vec![json!([order.id.to_string(), ["shortfall"]])], json!(1), true);
    assert_eq!(waiting(&context).await, shortfall);
    tell(&context, &order, &[("payout-confirmed", "a", 0.001)]).await;
    assert_eq!(waiting(&context).await, shortfall);
    tell(&context, &order, &[("payout-sent", "b", 0.001)]).await;
    assert_eq!(waiting(&context).await, (vec![], json!(0), false));
}

/// The result of [`waiting`] while the order has an excess.
fn excess(order: &OrderFixture) -> (Vec<Value>, Value, bool) {
    (vec![json!([order.id.to_string(), ["excess"]])], json!(1), true)
}

/// A completed order whose coins have left twice.
async fn sent_twice(context: &TestContext) -> OrderFixture {
    let order = paid(context).await;
    for name in ["a", "b"] {
        let told = [("payout-sent", name, 0.002), ("payout-confirmed", name, 0.002)];
        tell(context, &order, &told).await;
    }
    assert_eq!(status(context, &order).await, "completed");
    assert_eq!(waiting(context).await, excess(&order));
    order
}

#[tokio::test]
async fn coins_that_have_left_twice_wait_until_all_of_the_excess_is_back() {
    let context = TestContext::start().await;
    let order = sent_twice(&context).await;
    tell(&context, &order, &[("payout-failed", "b", 0.0015)]).await;
    assert_eq!(waiting(&context).await, excess(&order), "a part is missing");
    tell(&context, &order, &[("payout-failed", "rest", 0.0005)]).await;
    assert_eq!(waiting(&context).await, (vec![], json!(0), false));
    assert_eq!(left(&context).await, "-0.002");
}

#[tokio::test]
async fn coins_that_have_left_twice_and_stay_away_are_booked_as_a_loss() {
    let context = TestContext::start().await;
    let order = sent_twice(&context).await;
    tell(&context, &order, &[("payout-failed", "b", 0.002), ("refunded", "b", 0.002)]).await;
    assert_eq!(waiting(&context).await, (vec![], json!(0), false));
    assert_eq!(left(&context).await, "-0.004");
    assert!(balances(&context).await.contains(&"dispute BTC: 0.002".to_owned()));
}

#[tokio::test]
async fn coins_that_have_left_before_they_are_owed_wait_until_they_are() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    tell(&context, &order, &[("payout-sent", "a", 0.002)]).await;
    assert_eq!(waiting(&context).await, excess(&order));
    order.event(&context, "payment-received").await.assert_status(200);
    assert_eq!(waiting(&context).await, (vec![], json!(0), false));
}

#[tokio::test]
async fn a_migration_shows_the_excess_of_earlier_payouts() {
    let url = cluster::empty_database().await;
    let pool = cluster::pool(&url).await;
    MIGRATIONS.run_to(292, &pool).await.unwrap();
    let booked = "insert into client (client_id, slug, name, mode, username, revision, created_at) \
             values (gen_random_uuid(), 'acme', 'acme', 'test', 'acme', 1, now()); \
         insert into ledger_account (client_id, account_id, kind, currency, holder) \
             select client_id, ledger_account_id(client_id, kind, 'BTC', ''), kind, 'BTC', '' \
             from client, unnest(array['suspense', 'treasury']) kind where slug = 'acme'; \
         insert into ledger_entry (client_id, entry_id, kind, order_id, occurred_at) \
             select client_id, gen_random_uuid(), 'payout-confirmed', 7, now() \
             from client where slug = 'acme'; \
         insert into ledger_posting (client_id, entry_id, line, account_id, amount) \
             select e.client_id, e.entry_id, case a.kind when 'suspense' then 1 else 2 end, \
                 a.account_id, case a.kind when 'suspense' then 0.002 else -0.002 end \
             from ledger_entry e join ledger_account a using (client_id)";
    sqlx::raw_sql(booked).execute(&pool).await.unwrap();
    let settings = Database { url: Some(Secret::new(url)), ..Database::default() };
    schema::migrate(&settings, |_| ()).await.unwrap();
    let waiting = "select order_id, reason from money_waiting()";
    let waiting: Vec<(i64, String)> = sqlx::query_as(waiting).fetch_all(&pool).await.unwrap();
    assert_eq!(waiting, [(7, "excess".to_owned())]);
}

#[tokio::test]
async fn coins_that_come_back_of_a_completed_order_are_given_back_by_hand() {
    let context = TestContext::start().await;
    let order = paid(&context).await;
    let told = [("payout-sent", "a", 0.002), ("payout-confirmed", "a", 0.002)];
    tell(&context, &order, &told).await;
    tell(&context, &order, &[("payout-failed", "a", 0.002), ("refunded", "b", 0.002)]).await;
    assert_eq!(waiting(&context).await, (vec![], json!(0), false));
    assert_eq!(status(&context, &order).await, "completed");
}

#[tokio::test]
async fn an_order_that_waits_while_its_coins_arrive_names_their_transaction() {
    let context = TestContext::start().await;
    let order = paid(&context).await;
    order.event(&context, "hold").await.assert_status(200);
    tell(&context, &order, &[("payout-sent", "a", 0.002), ("payout-confirmed", "a", 0.002)]).await;
    let other =
        json!({"orderId": order.id, "kind": "payout-confirmed", "amount": 5, "currency": "EUR"});
    pay(&context, "typo", other).await.assert_status(201);
    order.event(&context, "release").await.assert_status(200);
    assert_eq!(status(&context, &order).await, "completed");
    assert_eq!(transaction(&context, &order).await.as_deref(), Some("a"));
}

#[tokio::test]
async fn an_order_whose_coins_leave_while_it_waits_is_completed_with_their_transaction() {
    let context = TestContext::start().await;
    let order = paid(&context).await;
    order.event(&context, "hold").await.assert_status(200);
    tell(&context, &order, &[("payout-sent", "a", 0.002)]).await;
    order.event(&context, "release").await.assert_status(200);
    assert_eq!(status(&context, &order).await, "in progress");
    tell(&context, &order, &[("payout-confirmed", "a", 0.002)]).await;
    assert_eq!(status(&context, &order).await, "completed");
    assert_eq!(transaction(&context, &order).await.as_deref(), Some("a"));
}

#[tokio::test]
async fn the_end_of_a_payout_alone_names_its_transaction() {
    let context = TestContext::start().await;
    let order = paid(&context).await;
    tell(&context, &order, &[("payout-confirmed", "a", 0.002)]).await;
    assert_eq!(status(&context, &order).await, "completed");
    assert_eq!(transaction(&context, &order).await.as_deref(), Some("a"));
}
