//! Verification of users: questions, accounts, levels; and the trades that they allow.

mod accounts;
mod amld5;
mod facts;
mod iban_photo;
mod limits;
mod status;

use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::cluster::commit_once_awaited;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::User;
use serde_json::{Value, json};

/// Path of an operator's calls about the user.
pub(crate) async fn admin_path(user: &User) -> String {
    format!("/admin/v1/users/{}", user.log_in().await["uuid"].as_str().unwrap())
}

/// An account that an operator opens for the user.
pub(crate) async fn opened(context: &TestContext, user: &User, body: Value) -> Value {
    let path = format!("{}/accounts", admin_path(user).await);
    let made = context.admin(Method::POST, &path, body).await;
    made.assert_status(201).json()
}

/// A change of an account by an operator.
pub(crate) async fn changed(
    context: &TestContext,
    user: &User,
    identifier: &str,
    body: Value,
) -> Value {
    let path = format!("{}/accounts/{identifier}", admin_path(user).await);
    context.admin(Method::PATCH, &path, body).await.assert_status(200).json()
}

/// The answer to a confirm that has read its account, and whose user is locked until all accounts
/// are disabled.
pub(crate) async fn disabled_beside(
    context: &TestContext,
    confirm: impl Future<Output = Answer>,
) -> Answer {
    let mut somebody = context.db().begin().await.unwrap();
    for statement in
        ["select from end_user for no key update", "update payment_account set disabled_at = now()"]
    {
        sqlx::query(statement).execute(&mut *somebody).await.unwrap();
    }
    futures::join!(confirm, commit_once_awaited(context.db(), somebody)).0
}

/// The user's accounts as operators see them.
async fn seen(context: &TestContext, user: &User) -> Vec<Value> {
    let path = format!("{}/accounts", admin_path(user).await);
    let seen = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
    seen.as_array().unwrap().clone()
}
