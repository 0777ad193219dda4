//! Offers under a signature policy of the partner.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use http::Method;
use rampart_core::platform::crypto::Secret;
use rampart_core::platform::db::MIGRATIONS;
use rampart_core::platform::schema;
use rampart_core::platform::settings::Database;
use rampart_tests::cluster;
use rampart_tests::keys::ed25519;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{OFFER, offer, signature};
use crate::policies::{SIGNATURE, push, set_key, with_acme};

/// A context with a partner `acme`, whose offers an Ed25519 policy verifies, and what signs the return
/// URL `app:x` with a replay token.
async fn with_policy() -> (TestContext, Partner, impl Fn(&str) -> String) {
    let (context, acme) = with_acme().await;
    set_key(&context).await;
    push(&context, SIGNATURE, "ed25519-offer").await.assert_status(200);

    let (pair, _) = ed25519(7);
    let now = context.clock().unix_seconds();
    let signed = move |nonce: &str| {
        let text = format!("returnUrl=app%3Ax&t={now}&n={nonce}");
        format!("t={now},n={nonce},s={}", STANDARD.encode(pair.sign(text.as_bytes())))
    };
    (context, acme, signed)
}

#[tokio::test]
async fn a_signature_policy_replaces_the_built_in_scheme() {
    let (context, acme, signed) = with_policy().await;
    let post = async |members: Value| acme.post(OFFER, offer(members)).await;
    let genuine = json!({"returnUrl": "app:x", "signature": signed("nonce-0001")});
    post(genuine.clone()).await.assert_status(200);
    let decision: Value = sqlx::query_scalar("select signature_decision from offer")
        .fetch_one(context.db())
        .await
        .unwrap();
    assert_eq!((&decision["kind"], &decision["version"]), (&json!("signature"), &json!(1)));

    post(genuine).await.assert_codes(&["ER336"]);
    let altered = json!({"returnUrl": "app:y", "signature": signed("nonce-0002")});
    post(altered).await.assert_codes(&["ER336"]);
    let built_in = signature(&acme, "returnUrl=app%3Ax");
    post(json!({"returnUrl": "app:x", "signature": built_in})).await.assert_codes(&["ER338"]);
    // The policy decides what needs a signature: this one wants it on every offer.
    post(json!({})).await.assert_codes(&["ER339"]);
    post(json!({"signature": 7})).await.assert_codes(&["ER338"]);
}

#[tokio::test]
async fn a_replay_token_is_consumed_with_its_offer_alone() {
    let (context, acme, signed) = with_policy().await;
    let run = async |statement: &'static str| {
        sqlx::query(statement).execute(context.db()).await.unwrap();
    };
    let post = async |path: &str, key: &str, token: &str| {
        let body = offer(json!({"returnUrl": "app:x", "signature": signed(token)}));
        let request = acme.request(Method::POST, path).header("idempotency-key", key);
        request.json(&body).send().await
    };
    for (path, token) in [(OFFER, "nonce-0001"), ("/api/v2/buy/checkout", "nonce-0002")] {
        run("alter table offer add constraint broken check (false) not valid").await;
        post(path, token, token).await.assert_status(500);
        run("alter table offer drop constraint broken").await;
        let made = post(path, token, token).await;
        made.assert_status(200);
        let again = post(path, token, token).await;
        assert_eq!(again.assert_status(200).text(), made.text(), "{path}");
        post(path, "another-key", token).await.assert_codes(&["ER336"]);
    }
    let offers: i64 =
        sqlx::query_scalar("select count(*) from offer").fetch_one(context.db()).await.unwrap();
    assert_eq!(offers, 2);
}

#[tokio::test]
async fn concurrent_offers_with_a_replay_token_are_one_offer() {
    let (context, acme, signed) = with_policy().await;
    let genuine = offer(json!({"returnUrl": "app:x", "signature": signed("nonce-0001")}));
    let answers = join_all((0..4).map(|_| acme.post(OFFER, genuine.clone()))).await;
    let (made, refused): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status() == 200);
    assert_eq!(made.len(), 1);
    for answer in refused {
        answer.assert_codes(&["ER336"]);
    }
    let offers: i64 =
        sqlx::query_scalar("select count(*) from offer").fetch_one(context.db()).await.unwrap();
    assert_eq!(offers, 1);
}

#[tokio::test]
async fn a_replay_token_without_a_signing_time_is_remembered_for_good() {
    let (context, acme) = with_acme().await;
    set_key(&context).await;
    push(&context, SIGNATURE, "undated-signature").await.assert_status(200);
    let (pair, _) = ed25519(7);
    let undated = STANDARD.encode(pair.sign(b"undated"));
    let genuine = offer(json!({"returnUrl": "app:x", "signature": undated}));
    acme.post(OFFER, genuine.clone()).await.assert_status(200);
    acme.post(OFFER, genuine).await.assert_codes(&["ER336"]);
    let line = r#"rampart_replay_tokens_undated_total{partner="acme"} 1"#;
    let metrics = context.core().metrics.render();
    assert!(metrics.lines().any(|found| found == line), "{metrics}");
    let stays = "select expires_at = 'infinity' from signature_replay";
    let stays: bool = sqlx::query_scalar(stays).fetch_one(context.db()).await.unwrap();
    assert!(stays);
}

#[tokio::test]
async fn a_migration_remembers_earlier_replay_tokens_without_a_time_for_good() {
    let url = cluster::empty_database().await;
    let pool = cluster::pool(&url).await;
    MIGRATIONS.run_to(443, &pool).await.unwrap();
    let used = "insert into client (client_id, slug, name, mode, username, revision, created_at) \
             values (gen_random_uuid(), 'acme', 'acme', 'test', 'acme', 1, now()); \
         insert into signature_replay (client_id, token_digest, expires_at) \
             select client_id, token, now() + lifetime from client, \
                 (values ('dated'::bytea, interval '10 minutes'), ('undated', interval '365 days')) \
                     used (token, lifetime) \
             where slug = 'acme'";
    sqlx::raw_sql(used).execute(&pool).await.unwrap();
    let settings = Database { url: Some(Secret::new(url)), ..Database::default() };
    schema::migrate(&settings, |_| ()).await.unwrap();
    let lasting = "select encode(token_digest, 'escape') from signature_replay \
         where expires_at = 'infinity'";
    let lasting: Vec<String> = sqlx::query_scalar(lasting).fetch_all(&pool).await.unwrap();
    assert_eq!(lasting, ["undated"]);
}
