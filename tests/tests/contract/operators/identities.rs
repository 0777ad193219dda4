//! Persons of an approval, told apart by what stays as it is.

use rampart_tests::cluster::commit_once_awaited;

use super::approvals::{decide, held};
use super::*;

const PRICE: &str = "/admin/v1/prices/BTC-EUR";

async fn state(operator: &Operator<'_>) -> Value {
    operator.get("/admin/v1/approvals").await.json()[0]["state"].clone()
}

#[tokio::test]
async fn what_an_edge_of_the_version_before_has_written_goes_by_names() {
    let context = TestContext::start().await;
    let [ada, bob] = treasurers(&context).await;
    let new = json!({"price": 41234.56});
    let approval = held(&ada, Method::PUT, PRICE, new.clone()).await;
    let forget = async || {
        let forget = "update approval set requested_by_identity = null, granted_by_identity = null";
        sqlx::query(forget).execute(context.db()).await.unwrap();
    };
    forget().await;
    assert_eq!(held(&ada, Method::PUT, PRICE, new.clone()).await, approval);
    assert_eq!(ada.get("/admin/v1/approvals").await.json()[0]["own"], true);
    assert_eq!(decide(&ada, &approval, "grant").await, 403);
    assert_eq!(decide(&bob, &approval, "grant").await, 204);
    forget().await;
    held(&bob, Method::PUT, PRICE, new.clone()).await;
    ada.call(Method::PUT, PRICE, new).await.assert_status(200);
}

#[tokio::test]
async fn what_an_operator_has_agreed_to_waits_again_once_the_role_is_lost() {
    let context = TestContext::start().await;
    let [ada, bob] = treasurers(&context).await;
    let new = json!({"price": 41234.56});
    let approval = held(&ada, Method::PUT, PRICE, new.clone()).await;
    assert_eq!(decide(&bob, &approval, "grant").await, 204);
    for (roles, expected) in
        [(json!(["treasury", "support"]), "granted"), (json!(["support"]), "pending")]
    {
        let roles = json!({ "roles": roles });
        context.admin(Method::PATCH, "/admin/v1/operators/bob", roles).await.assert_status(204);
        assert_eq!(state(&ada).await, expected);
    }
    assert_eq!(held(&ada, Method::PUT, PRICE, new).await, approval);
}

#[tokio::test]
async fn nobody_agrees_by_a_role_that_is_lost_meanwhile() {
    let context = TestContext::start().await;
    let [ada, bob] = treasurers(&context).await;
    let approval = held(&ada, Method::PUT, PRICE, json!({"price": 41234.56})).await;
    let mut somebody = context.db().begin().await.unwrap();
    let take = "update operator set roles = '{support}' where name = 'bob'";
    sqlx::query(take).execute(&mut *somebody).await.unwrap();
    let take = commit_once_awaited(context.db(), somebody);
    let (status, ()) = futures::join!(decide(&bob, &approval, "grant"), take);
    assert_eq!(status, 409);
    assert_eq!(state(&ada).await, "pending");
}
