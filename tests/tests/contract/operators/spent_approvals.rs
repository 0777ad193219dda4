//! Approvals that are used up: by the call that is carried out, in its transaction.

use rampart_tests::cluster::{
    changes, lose_first_change, until_a_lock_is_awaited, until_locks_are_awaited,
};
use sqlx::{Postgres, Transaction};

use super::approvals::{decide, held};
use super::*;

const PRICE: &str = "/admin/v1/prices/BTC-EUR";

/// A transaction that holds the pair's row, for which the call waits.
async fn hold_pair(context: &TestContext) -> Transaction<'_, Postgres> {
    let mut somebody = context.db().begin().await.unwrap();
    let pair = "select from currency_pair where pair = 'BTC-EUR' for update";
    sqlx::query(pair).execute(&mut *somebody).await.unwrap();
    somebody
}

#[tokio::test]
async fn a_call_that_fails_leaves_its_approval() {
    let context = TestContext::start().await;
    let [ada, bob] = treasurers(&context).await;
    context.admin(Method::PUT, PRICE, json!({"price": 50_000})).await.assert_status(200);
    let new = json!({"price": 41234.56});
    let approval = held(&ada, Method::PUT, PRICE, new.clone()).await;
    assert_eq!(decide(&bob, &approval, "grant").await, 204);
    lose_first_change(context.db(), "price").await;
    ada.call(Method::PUT, PRICE, new.clone()).await.assert_status(503);
    assert_eq!(audited(&context, "approval.use").await, []);
    assert_eq!(ada.get("/admin/v1/approvals").await.json()[0]["state"], "granted");
    ada.call(Method::PUT, PRICE, new.clone()).await.assert_status(200);
    assert_eq!(changes(context.db()).await, 2);
    assert_eq!(audited(&context, "approval.use").await, [("ada".into(), approval.clone())]);
    assert_ne!(held(&ada, Method::PUT, PRICE, new).await, approval, "it counts once");
}

#[tokio::test]
async fn of_two_calls_that_find_one_approval_one_is_carried_out() {
    let context = TestContext::start().await;
    let [ada, bob] = treasurers(&context).await;
    let new = json!({"price": 41234.56});
    let approval = held(&ada, Method::PUT, PRICE, new.clone()).await;
    assert_eq!(decide(&bob, &approval, "grant").await, 204);
    let somebody = hold_pair(&context).await;
    let free = async {
        until_locks_are_awaited(context.db(), 2).await;
        somebody.rollback().await.unwrap();
    };
    let call = || ada.call(Method::PUT, PRICE, new.clone());
    let (first, second, ()) = futures::join!(call(), call(), free);
    let mut statuses = [first.status(), second.status()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    assert_eq!(audited(&context, "price.set").await, [("ada".into(), "BTC-EUR".into())]);
    assert_eq!(audited(&context, "approval.use").await, [("ada".into(), approval)]);
}

#[tokio::test]
async fn a_grant_that_is_taken_back_before_the_call_commits_counts_no_more() {
    let context = TestContext::start().await;
    let [ada, bob] = treasurers(&context).await;
    let new = json!({"price": 41234.56});
    let approval = held(&ada, Method::PUT, PRICE, new.clone()).await;
    assert_eq!(decide(&bob, &approval, "grant").await, 204);
    let somebody = hold_pair(&context).await;
    let refuse = async {
        until_a_lock_is_awaited(context.db()).await;
        assert_eq!(decide(&bob, &approval, "refuse").await, 204);
        somebody.rollback().await.unwrap();
    };
    let (refused, ()) = futures::join!(ada.call(Method::PUT, PRICE, new), refuse);
    refused.assert_status(409);
    assert_eq!(audited(&context, "price.set").await, []);
}

#[tokio::test]
async fn a_configuration_uses_its_approval_up() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Operator::new(&context, "ada", &["platform"]).await;
    let bob = Operator::new(&context, "bob", &["platform"]).await;
    let path = "/admin/v1/configuration";
    let fee = |percentage: f64| json!({ "defaultFeePercentage": percentage });
    let wanted = json!({"partners": {"acme": fee(1.5)}});
    let approval = held(&ada, Method::PUT, path, wanted.clone()).await;
    assert_eq!(decide(&bob, &approval, "grant").await, 204);
    ada.call(Method::PUT, path, wanted.clone()).await.assert_status(200);
    assert_eq!(audited(&context, "approval.use").await, [("ada".into(), approval.clone())]);
    let partner = "/admin/v1/partners/acme";
    context.admin(Method::PATCH, partner, fee(2.5)).await.assert_status(200);
    assert_ne!(held(&ada, Method::PUT, path, wanted).await, approval);
}

#[tokio::test]
async fn a_payment_that_is_recorded_meanwhile_leaves_its_approval() {
    let context = TestContext::start().await;
    let [ada, bob] = treasurers(&context).await;
    let path = "/admin/v1/payments";
    let large = json!({"kind": "received", "amount": 100_000, "currency": "EUR",
        "providerReference": "statement 17", "reason": "seen on the statement"});
    let approval = held(&ada, Method::POST, path, large.clone()).await;
    assert_eq!(decide(&bob, &approval, "grant").await, 204);
    context.admin(Method::POST, path, large.clone()).await.assert_status(201);
    let again = ada.call(Method::POST, path, large).await.assert_status(200).json();
    assert_eq!(again["duplicate"], true);
    assert_eq!(ada.get("/admin/v1/approvals").await.json()[0]["state"], "granted");
    assert_eq!(audited(&context, "approval.use").await, []);
}

#[tokio::test]
async fn an_operator_may_agree_to_their_own_end() {
    let context = TestContext::start().await;
    let olga = Operator::new(&context, "olga", &["owner"]).await;
    let otto = Operator::new(&context, "otto", &["owner"]).await;
    let (path, end) = ("/admin/v1/operators/otto", json!({"roles": ["viewer"], "disabled": true}));
    let approval = held(&olga, Method::PATCH, path, end.clone()).await;
    assert_eq!(decide(&otto, &approval, "grant").await, 204);
    olga.call(Method::PATCH, path, end.clone()).await.assert_status(204);
    assert_ne!(held(&olga, Method::PATCH, path, end).await, approval);
}
