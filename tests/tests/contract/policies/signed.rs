//! Manifests that operators sign.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use rampart_core::policies::manifest::{self, ManifestContent};
use rampart_tests::answer::Answer;
use rampart_tests::guests::component;
use rampart_tests::keys::ed25519;
use rampart_tests::test_context::TestContext;
use ring::digest::{SHA256, digest};
use ring::signature::Ed25519KeyPair;
use serde_json::{Value, json};

use super::{FEE, context, history, push, stage};

const KEY: &str = "/admin/v1/operator-keys/release";
const PARTNER: &str = "/admin/v1/partners/acme";

fn members(version: i64, guest: &str) -> Value {
    let hash = digest(&SHA256, &component(guest));
    let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    json!({"partner": "acme", "kind": "fee", "version": version, "digest": hash,
        "config": {}, "failClosed": false})
}

/// The members of a push of this manifest, signed.
fn signed(pair: &Ed25519KeyPair, members: &Value) -> Value {
    let text = members.to_string();
    let message = format!("rampart policy manifest 1\n{text}");
    let signature = STANDARD.encode(pair.sign(message.as_bytes()));
    json!({"manifest": text, "signature": {"key": "release", "value": signature}})
}

async fn register(context: &TestContext, seed: u8) -> Ed25519KeyPair {
    let (pair, pem) = ed25519(seed);
    context.admin(Method::PUT, KEY, json!({"publicKey": pem})).await.assert_status(200);
    pair
}

async fn staged(context: &TestContext, members: Value) -> Answer {
    stage(context, FEE, "tiered-fee", members).await
}

#[tokio::test]
async fn where_it_is_required_only_what_an_operator_signed_changes_a_policy() {
    let context = context().await;
    push(&context, FEE, "hostile").await.assert_status(200);
    let require = json!({"policySignatureRequired": true});
    let changed = context.admin(Method::PATCH, PARTNER, require).await.assert_status(200).json();
    assert_eq!(changed["policySignatureRequired"], true);

    let refused = push(&context, FEE, "tiered-fee").await;
    assert!(refused.assert_status(422).text().contains("signed manifest is required"));
    staged(&context, json!({})).await.assert_status(422);
    let config = json!({"config": {}});
    context.admin(Method::PUT, &format!("{FEE}/config"), config).await.assert_status(422);
    assert_eq!(history(&context, FEE).await["active"], 1, "what serves, serves on");

    let pair = register(&context, 7).await;
    let good = signed(&pair, &members(2, "tiered-fee"));
    assert_eq!(staged(&context, good.clone()).await.assert_status(201).json()["version"], 2);
    staged(&context, good).await.assert_status(409);
    let newest = history(&context, FEE).await["versions"][0].clone();
    assert_eq!((&newest["signedBy"], &newest["active"]), (&json!("release"), &json!(false)));
    let activate = |version: i64| format!("{FEE}/versions/{version}/activate");
    context.admin(Method::POST, &activate(2), json!({})).await.assert_status(200);
    context.admin(Method::POST, &activate(1), json!({})).await.assert_status(409);
    let rollback = format!("{FEE}/rollback");
    context.admin(Method::POST, &rollback, json!({})).await.assert_status(409);
    assert_eq!(history(&context, FEE).await["active"], 2);

    // Configuration alone: the manifest names a component that is stored.
    let mut flat = members(3, "tiered-fee");
    flat["config"] = json!({"tiers": ["0=20000"]});
    let mut sent = signed(&pair, &flat);
    sent["activate"] = json!(true);
    let versions = format!("{FEE}/versions");
    context.admin(Method::POST, &versions, sent).await.assert_status(201);
    assert_eq!(history(&context, FEE).await["versions"][0]["config"], flat["config"]);

    context.admin(Method::DELETE, KEY, json!({})).await.assert_status(204);
    context.admin(Method::DELETE, KEY, json!({})).await.assert_status(404);
    context.admin(Method::POST, &activate(2), json!({})).await.assert_status(409);
    let next = signed(&pair, &members(4, "tiered-fee"));
    assert!(staged(&context, next).await.assert_status(422).text().contains("not registered"));
}

#[tokio::test]
async fn a_manifest_that_is_not_about_this_push_is_refused() {
    let context = context().await;
    let pair = register(&context, 7).await;
    let with = |name: &str, value: Value| {
        let mut changed = members(1, "tiered-fee");
        changed[name] = value;
        signed(&pair, &changed)
    };
    for (members, reason) in [
        (with("partner", json!("other")), "another policy"),
        (with("kind", json!("signature")), "another policy"),
        (with("digest", json!("00")), "its digest"),
        (with("config", json!({"floors": 1})), "no configuration `floors`"),
        (with("configs", json!({})), "`configs`"),
        (signed(&ed25519(8).0, &members(1, "tiered-fee")), "signature is not good"),
    ] {
        let text = staged(&context, members).await.assert_status(422).text().to_owned();
        assert!(text.contains(reason), "{text}");
    }
    staged(&context, with("version", json!(2))).await.assert_status(409);
    let mut both = with("failClosed", json!(true));
    both["config"] = json!({});
    staged(&context, both).await.assert_status(422);
    let mut altered = with("failClosed", json!(false));
    altered["manifest"] = altered["manifest"].as_str().unwrap().replace("false", "true").into();
    assert!(staged(&context, altered).await.assert_status(422).text().contains("not good"));
    assert_eq!(history(&context, FEE).await["versions"], json!([]));
    staged(&context, with("failClosed", json!(true))).await.assert_status(201);
}

#[tokio::test]
async fn what_the_command_signs_is_accepted() {
    let context = context().await;
    register(&context, 7).await;
    // PrivateKeyInfo of RFC 8410, section 7, up to the key itself.
    let head = [
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20,
    ];
    let info = STANDARD.encode([&head[..], &[7; 32]].concat());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{info}\n-----END PRIVATE KEY-----\n");
    let digest = manifest::digest_hex(&component("tiered-fee"));
    let config = json!({"tiers": ["0=20000"]}).as_object().unwrap().clone();
    let (partner, kind) = ("acme", "fee");
    let unsigned =
        ManifestContent { partner, kind, version: 1, digest: &digest, config, fail_closed: true };
    let (text, signature) = manifest::sign(&pem, &unsigned).unwrap();
    let signature = json!({"key": "release", "value": STANDARD.encode(signature)});
    let members = json!({"manifest": text, "signature": signature, "activate": true});
    staged(&context, members).await.assert_status(201);
    let newest = history(&context, FEE).await["versions"][0].clone();
    assert_eq!((&newest["failClosed"], &newest["active"]), (&json!(true), &json!(true)));
    assert!(manifest::sign("-----BEGIN PRIVATE KEY-----", &unsigned).is_err());
}

#[tokio::test]
async fn the_platform_may_require_signatures_of_every_partner() {
    let context = TestContext::with(|settings| {
        settings.policy.deadline_ms = 5_000;
        settings.policy.require_signature = true;
    })
    .await;
    context.partner("acme").await;
    push(&context, FEE, "tiered-fee").await.assert_status(422);
    let pair = register(&context, 7).await;
    staged(&context, signed(&pair, &members(1, "tiered-fee"))).await.assert_status(201);
}

#[tokio::test]
async fn an_operators_key_keeps_its_name() {
    let context = context().await;
    register(&context, 7).await;
    register(&context, 7).await;
    let other = json!({"publicKey": ed25519(8).1});
    context.admin(Method::PUT, KEY, other).await.assert_status(409);
    for body in [json!({"publicKey": "x"}), json!({}), json!({"publicKey": ed25519(9).1, "x": 1})] {
        let path = "/admin/v1/operator-keys/other";
        context.admin(Method::PUT, path, body).await.assert_status(422);
    }
    let spaced = "/admin/v1/operator-keys/two%20words";
    let key = json!({"publicKey": ed25519(9).1});
    context.admin(Method::PUT, spaced, key).await.assert_status(422);
    let listed = context.admin(Method::GET, "/admin/v1/operator-keys", json!({})).await.json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!((&listed[0]["name"], &listed[0]["createdBy"]), (&json!("release"), &json!("admin")));
}
