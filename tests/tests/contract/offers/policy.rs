//! Offers under a signature policy of the partner.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use rampart_tests::guests::component;
use rampart_tests::keys::ed25519;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{OFFER, offer, signature};

const SIGNATURE: &str = "/admin/v1/partners/acme/policies/signature";

#[tokio::test]
async fn a_signature_policy_replaces_the_built_in_scheme() {
    // Fuel decides on a busy machine, not the clock.
    let context = TestContext::with(|settings| settings.policy.deadline_ms = 5_000).await;
    let acme = context.partner("acme").await;
    let (pair, pem) = ed25519(7);
    let key = "/admin/v1/partners/acme/verification-keys/partner-ed25519";
    let body = json!({"algorithm": "ed25519", "key": pem});
    context.admin(Method::PUT, key, body).await.assert_status(200);
    context
        .admin_bytes(Method::PUT, SIGNATURE, component("ed25519-offer"))
        .await
        .assert_status(200);

    let now = context.clock().unix_seconds();
    let signed = |nonce: &str| {
        let text = format!("returnUrl=app%3Ax&t={now}&n={nonce}");
        format!("t={now},n={nonce},s={}", STANDARD.encode(pair.sign(text.as_bytes())))
    };
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
