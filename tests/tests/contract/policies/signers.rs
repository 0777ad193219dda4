//! Keys of operators: signatures can be required while there is one.

use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::cluster::commit_once_awaited;
use rampart_tests::keys::ed25519;
use rampart_tests::test_context::TestContext;
use serde_json::json;

use super::context;

const KEY: &str = "/admin/v1/operator-keys/release";

async fn require(context: &TestContext) -> Answer {
    let require = json!({"policySignatureRequired": true});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", require).await
}

async fn register(context: &TestContext) {
    let key = json!({"publicKey": ed25519(7).1});
    context.admin(Method::PUT, KEY, key).await.assert_status(200);
}

#[tokio::test]
async fn signatures_are_required_once_somebody_can_sign() {
    let context = context().await;
    let refused = require(&context).await.assert_status(409).json();
    assert_eq!(refused["error"], "no key is registered to sign with");
    register(&context).await;
    require(&context).await.assert_status(200);
}

#[tokio::test]
async fn a_key_that_goes_meanwhile_is_none_to_sign_with() {
    let context = context().await;
    register(&context).await;
    let mut removal = context.db().begin().await.unwrap();
    sqlx::query("delete from operator_key").execute(&mut *removal).await.unwrap();
    let commit = commit_once_awaited(context.db(), removal);
    let (refused, ()) = futures::join!(require(&context), commit);
    refused.assert_status(409);
}

#[tokio::test]
async fn the_last_key_stays_while_signatures_are_required() {
    let context = context().await;
    register(&context).await;
    let mut requirement = context.db().begin().await.unwrap();
    sqlx::query("select from operator_key for key share").execute(&mut *requirement).await.unwrap();
    let require = "update client set policy_signature_required = true where slug = 'acme'";
    sqlx::query(require).execute(&mut *requirement).await.unwrap();
    let commit = commit_once_awaited(context.db(), requirement);
    let removal = context.admin(Method::DELETE, KEY, json!({}));
    let (refused, ()) = futures::join!(removal, commit);
    let refused = refused.assert_status(409).json();
    assert_eq!(refused["error"], "it is the last key, and a partner's policies must be signed");
}

#[tokio::test]
async fn of_two_keys_that_are_removed_at_once_one_stays_while_signatures_are_required() {
    let context = context().await;
    for (name, seed) in [("release", 7), ("other", 8)] {
        let key = json!({"publicKey": ed25519(seed).1});
        let path = format!("/admin/v1/operator-keys/{name}");
        context.admin(Method::PUT, &path, key).await.assert_status(200);
    }
    let mut other = context.db().begin().await.unwrap();
    for statement in [
        "update client set policy_signature_required = true where slug = 'acme'",
        "delete from operator_key where name = 'other'",
        // As its row of the audit does.
        "select from audit_head for update",
    ] {
        sqlx::query(statement).execute(&mut *other).await.unwrap();
    }
    let commit = commit_once_awaited(context.db(), other);
    let removal = context.admin(Method::DELETE, KEY, json!({}));
    let (refused, ()) = futures::join!(removal, commit);
    refused.assert_status(409);
}
