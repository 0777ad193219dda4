//! Acts that lock rows which others lock the other way round: users, orders and commands.

use rampart_tests::answer::Answer;
use rampart_tests::cluster::{changes, lose_first_change, until_a_lock_is_awaited};
use rampart_tests::order_fixture::OrderFixture;
use sqlx::AssertSqlSafe;

use super::purchase::{live, order, paid_order, status};
use super::*;

/// The answer to an act, beside a transaction that has locked one row when the act waits for it, and
/// then wants the other one. Postgres gives up the act: the transaction never finds the deadlock itself.
async fn against(
    context: &TestContext,
    [has, wants]: [String; 2],
    act: impl Future<Output = Answer>,
) -> Answer {
    let mut other = context.db().begin().await.unwrap();
    for statement in ["set local deadlock_timeout = '10min'".to_owned(), has] {
        sqlx::query(AssertSqlSafe(statement)).execute(&mut *other).await.unwrap();
    }
    let cross = async {
        until_a_lock_is_awaited(context.db()).await;
        sqlx::query(AssertSqlSafe(wants)).execute(&mut *other).await.unwrap();
        other.rollback().await.unwrap();
    };
    tokio::join!(act, cross).0
}

fn lock_order(order: &OrderFixture) -> String {
    format!("select from buy_order where order_id = {} for update", order.id)
}

fn lock_payout(order: &OrderFixture) -> String {
    let of = order.id;
    format!("select from command where order_id = {of} and kind = 'payout.send' for update")
}

#[tokio::test]
async fn a_result_that_lost_to_a_deadlock_is_tried_again() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = paid_order(&acme, &connector).await;
    let payout = connector.lease(1).await.remove(0);
    let report = connector.report(&payout, "rejected", Value::Null);
    let answer = against(&context, [lock_order(&order), lock_payout(&order)], report).await;
    answer.assert_status(200);
    assert_eq!(status(&context, &order).await, "blocked");
}

#[tokio::test]
async fn a_result_that_waits_for_its_order_holds_up_no_other_of_its_connector() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let first = paid_order(&acme, &connector).await;
    let waiting = connector.lease(1).await.remove(0);
    let second = paid_order(&acme, &connector).await;
    let other = connector.lease(1).await.remove(0);
    let mut somebody = context.db().begin().await.unwrap();
    let lock = AssertSqlSafe(lock_order(&first));
    sqlx::query(lock).execute(&mut *somebody).await.unwrap();
    let beside = async {
        until_a_lock_is_awaited(context.db()).await;
        connector.report(&other, "rejected", Value::Null).await.assert_status(200);
        somebody.rollback().await.unwrap();
    };
    let (answer, ()) = tokio::join!(connector.report(&waiting, "rejected", Value::Null), beside);
    answer.assert_status(200);
    assert_eq!(status(&context, &second).await, "blocked");
}

#[tokio::test]
async fn an_operators_act_that_lost_to_a_deadlock_is_tried_again() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let post = async |path: &str, body: Value| context.admin(Method::POST, path, body).await;
    let payments = "/admin/v1/payments";

    let held = paid_order(&acme, &connector).await;
    let rows = || [lock_payout(&held), lock_order(&held)];
    against(&context, rows(), held.event(&context, "hold")).await.assert_status(200);
    assert_eq!(status(&context, &held).await, "blocked");

    let sent = paid_order(&acme, &connector).await;
    let coins = sent.seen(&context).await["cryptoAmount"].clone();
    let by_hand = json!({"partner": "acme", "kind": "payout-sent", "amount": coins,
        "currency": "BTC", "providerReference": "ab12", "orderId": sent.id, "reason": "by hand"});
    let rows = [lock_payout(&sent), lock_order(&sent)];
    against(&context, rows, post(payments, by_hand)).await.assert_status(201);

    let returned = paid_order(&acme, &connector).await;
    let path = format!("{payments}?order={}", returned.id);
    let listed = context.admin(Method::GET, &path, Value::Null).await.assert_status(200).json();
    let path = format!("{payments}/{}/refund", listed[0]["id"].as_str().unwrap());
    let rows = [lock_payout(&returned), lock_order(&returned)];
    let refund = post(&path, json!({"reason": "not wanted any more"}));
    against(&context, rows, refund).await.assert_status(200);
    assert_eq!(status(&context, &returned).await, "blocked");
}

#[tokio::test]
async fn a_result_waits_for_its_user_before_it_locks_its_command() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let user = acme.user("ada").await.log_in().await["uuid"].as_str().unwrap().to_owned();
    let by = Target::Capability;
    command(&context, &acme, CommandKind::CardVerify, "card", None, by).await;
    let about = format!("update command set user_id = '{user}' where kind = 'card.verify'");
    sqlx::query(AssertSqlSafe(about)).execute(context.db()).await.unwrap();
    let wait = json!({"max": 1, "leaseSeconds": 60, "kinds": ["card.verify"]});
    let leased = connector.call(Method::POST, "/connectors/v1/commands/lease", wait).await;
    let verify = leased.assert_status(200).json()[0].take();

    let mut erasure = context.db().begin().await.unwrap();
    sqlx::query("select from end_user for update").execute(&mut *erasure).await.unwrap();
    let card = json!({"accountIdentifier": "411111******1234"});
    let erase = async {
        until_a_lock_is_awaited(context.db()).await;
        let delete = "delete from command where command_id in ( \
            select command_id from command where user_id is not null for update nowait)";
        sqlx::query(delete).execute(&mut *erasure).await.unwrap();
        erasure.commit().await.unwrap();
    };
    let (answer, ()) = tokio::join!(connector.report(&verify, "done", card), erase);
    answer.assert_status(404);
}

#[tokio::test]
async fn a_change_of_routes_that_lost_to_a_deadlock_is_tried_again() {
    let context = TestContext::start().await;
    let (acme, _) = live(&context).await;
    order(&acme, 100).await;
    Connector::new(&context, "other", &["payment.create"]).await;
    let path = "/admin/v1/routes";
    let mut routes = context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
    for route in routes["routes"].as_array_mut().unwrap() {
        route["connector"] = json!("other");
    }
    lose_first_change(context.db(), "command").await;
    context.admin(Method::PUT, path, routes).await.assert_status(200);
    assert!(changes(context.db()).await > 1, "no command has followed");
}
