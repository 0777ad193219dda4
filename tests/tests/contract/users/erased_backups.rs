//! Erased users in backups of every table: the rotation that ends them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use http::Method;
use rampart_api::operate::key_rotation::rotate_keys;
use rampart_core::platform::crypto::Secret;
use rampart_tests::answer::Answer;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::User;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::erasure::{customer, erase, execute, open};

/// The master key of every context, which is the earlier one here.
const EARLIER: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const ROTATION: &str = "/admin/v1/keys/rotation";

/// An edge that uses a new master key, and has these earlier ones.
async fn edge(context: &TestContext, earlier: &[&str]) -> TestContext {
    let new = STANDARD.encode([9; 32]);
    let keys = [&[new.as_str()][..], earlier].concat().join("\n");
    context.edge_with(move |settings| settings.keys.master = Some(Secret::new(keys))).await
}

async fn shown(edge: &TestContext, user: &str) -> Answer {
    edge.admin(Method::GET, &format!("/admin/v1/users/{user}"), json!({})).await
}

/// True if the edge opens the one key of this table, which was sealed for `place`.
async fn opens(edge: &TestContext, table: &str, place: &str) -> bool {
    let select = format!("select client_id, user_id, sealed from {table}");
    let (client, user, sealed): (Uuid, Uuid, Vec<u8>) =
        sqlx::query_as(AssertSqlSafe(select)).fetch_one(edge.db()).await.unwrap();
    let place = format!("{place}/{client}/{user}");
    edge.core().cipher(client.into()).open(&place, &sealed).is_ok()
}

#[tokio::test]
async fn a_backup_from_before_an_erasure_opens_nothing_once_its_master_key_is_gone() {
    let context = TestContext::start().await;
    let user = customer(&context).await;
    let bob = context.partner("other").await.user("bob").await;
    let compliance = context.operator("compliance", &["compliance"]).await;
    // As a base backup holds them, and one from after the erasure.
    execute(&context, "create table user_backup as table end_user").await;
    execute(&context, "create table key_backup as table personal_key").await;
    erase(&context, &user).await;
    execute(&context, "create table retention_backup as table retention_key").await;

    let both = edge(&context, &[EARLIER]).await;
    both.admin(Method::POST, ROTATION, Value::Null).await.assert_status(200);
    // The key that the house got by that is in use.
    both.clock().advance(TimeDelta::seconds(61));
    rotate_keys(both.core()).await.unwrap();
    let status = both.admin(Method::GET, ROTATION, Value::Null).await.assert_status(200).json();
    assert!(status["rotation"]["finishedAt"].is_string(), "{status}");
    let alone = edge(&context, &[]).await;
    for edge in [&both, &alone] {
        let bob = User { partner: bob.partner.at(edge), ..bob.clone() };
        let info = bob.get("/api/v1/user/info").await.assert_status(200).json();
        assert_eq!(info["firstName"], "Ada");
        let kept = open(edge, &compliance, &user, "").await.assert_status(200).json();
        assert_eq!(kept["personal"]["lastName"], "Erasedlast");
    }

    let key = format!(
        "insert into personal_key (client_id, user_id, sealed) \
         select client_id, user_id, sealed from key_backup where user_id = '{user}'"
    );
    assert_eq!(execute(&context, &key).await, 1);
    let personal = format!(
        "update end_user u set personal = b.personal, deleted_at = null from user_backup b \
         where b.user_id = u.user_id and u.user_id = '{user}'"
    );
    assert_eq!(execute(&context, &personal).await, 1);
    let opened = shown(&both, &user).await.assert_status(200).json();
    assert_eq!(opened["personal"]["lastName"], "Erasedlast");
    shown(&alone, &user).await.assert_status(500);
    assert!(opens(&both, "retention_backup", "retention_key").await);
    assert!(!opens(&alone, "retention_backup", "retention_key").await);
    assert!(opens(&alone, "retention_key", "retention_key").await);
}
