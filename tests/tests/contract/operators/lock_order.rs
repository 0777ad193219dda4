//! Calls of operators that meet: neither waits for one that waits for it, and each counts by what the
//! other has changed.

use rampart_tests::cluster::{
    commit_once_awaited, until_a_lock_is_awaited, until_locks_are_awaited,
};

use super::approvals::held;
use super::*;

/// Makes two calls, the second once the first waits for a row that somebody holds, until both wait.
async fn meet(
    context: &TestContext,
    row: &'static str,
    first: impl Future<Output = Answer>,
    second: impl Future<Output = Answer>,
) {
    let mut somebody = context.db().begin().await.unwrap();
    sqlx::query(row).execute(&mut *somebody).await.unwrap();
    let second = async {
        until_a_lock_is_awaited(context.db()).await;
        second.await
    };
    let free = async {
        until_locks_are_awaited(context.db(), 2).await;
        somebody.rollback().await.unwrap();
    };
    let (first, second, ()) = futures::join!(first, second, free);
    for answer in [first, second] {
        assert!((200..300).contains(&answer.status()), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_configuration_and_a_new_key_of_its_partner_are_both_written() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let applied = json!({"partners": {"acme": {"defaultFeePercentage": 1.5}}});
    let applied = context.admin(Method::PUT, "/admin/v1/configuration", applied);
    let issued = context.admin(Method::POST, "/admin/v1/partners/acme/api-keys", json!({}));
    let row = "select from client where slug = 'acme' for update";
    meet(&context, row, applied, issued).await;
}

#[tokio::test]
async fn a_configuration_and_a_price_are_both_written() {
    let context = TestContext::start().await;
    let path = "/admin/v1/prices/BTC-EUR";
    let price = |price: u32| context.admin(Method::PUT, path, json!({ "price": price }));
    price(50_000).await.assert_status(200);
    let applied = json!({"prices": {"BTC-EUR": {"price": 51_000}}});
    let applied = context.admin(Method::PUT, "/admin/v1/configuration", applied);
    let row = "select from price where pair = 'BTC-EUR' for update";
    meet(&context, row, applied, price(52_000)).await;
}

#[tokio::test]
async fn prices_move_while_a_configuration_writes_its_partners() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let mut somebody = context.db().begin().await.unwrap();
    let counter = "select from change_counter where scope = 'clients' for update";
    sqlx::query(counter).execute(&mut *somebody).await.unwrap();
    let applied = json!({
        "partners": {"acme": {"defaultFeePercentage": 1.5}},
        "prices": {"BTC-EUR": {"price": 51_000}},
    });
    let applied = context.admin(Method::PUT, "/admin/v1/configuration", applied);
    let free = async {
        until_a_lock_is_awaited(context.db()).await;
        let pair = "select from currency_pair where pair = 'BTC-EUR' for no key update nowait";
        sqlx::query(pair).execute(context.db()).await.unwrap();
        somebody.rollback().await.unwrap();
    };
    let (applied, ()) = futures::join!(applied, free);
    applied.assert_status(200);
}

#[tokio::test]
async fn nobody_agrees_who_is_disabled_meanwhile() {
    let context = TestContext::start().await;
    let [ada, bob] = treasurers(&context).await;
    let (path, price) = ("/admin/v1/prices/BTC-EUR", json!({"price": 41234.56}));
    let approval = held(&ada, Method::PUT, path, price.clone()).await;
    let mut somebody = context.db().begin().await.unwrap();
    let disable = "update operator set disabled_at = now() where name = 'bob'";
    sqlx::query(disable).execute(&mut *somebody).await.unwrap();
    let disable = commit_once_awaited(context.db(), somebody);
    let grant = format!("/admin/v1/approvals/{approval}/grant");
    let (refused, ()) = futures::join!(bob.call(Method::POST, &grant, Value::Null), disable);
    refused.assert_status(409);
    assert_eq!(held(&ada, Method::PUT, path, price).await, approval);
}

#[tokio::test]
async fn a_partner_that_goes_live_meanwhile_stays_live() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let mut somebody = context.db().begin().await.unwrap();
    let live = "update client set mode = 'live' where slug = 'acme'";
    sqlx::query(live).execute(&mut *somebody).await.unwrap();
    let live = commit_once_awaited(context.db(), somebody);
    let test = context.admin(Method::PATCH, "/admin/v1/partners/acme", json!({"mode": "test"}));
    let (refused, ()) = futures::join!(test, live);
    let refused = refused.assert_status(409);
    assert!(refused.text().contains("stays live"), "{}", refused.text());
}
