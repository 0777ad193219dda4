//! Manifests that operators sign.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use http::Method;
use rampart_core::policies::manifest::{self, ManifestContent};
use rampart_tests::answer::Answer;
use rampart_tests::cluster::until_a_lock_is_awaited;
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

/// A statement about a change, signed by the release key of this context.
fn statement(context: &TestContext, pair: &Ed25519KeyPair, mut members: Value) -> Value {
    members["at"] = json!(context.clock().unix_seconds());
    let text = members.to_string();
    let signature = pair.sign(format!("rampart policy change 1\n{text}").as_bytes());
    json!({"statement": text, "key": "release", "value": STANDARD.encode(signature)})
}

fn about(action: &str) -> Value {
    json!({"action": action, "partner": "acme", "kind": "fee"})
}

fn activation(version: i64, percentage: i16) -> Value {
    let mut members = about("policy.activate");
    (members["version"], members["percentage"]) = (json!(version), json!(percentage));
    members
}

/// A partner whose policies must be signed, with version 1 active and 2 staged, both signed.
async fn required() -> (TestContext, Ed25519KeyPair) {
    let context = context().await;
    let pair = register(&context, 7).await;
    for (version, guest) in [(1, "hostile"), (2, "tiered-fee")] {
        let mut sent = signed(&pair, &members(version, guest));
        sent["activate"] = json!(version == 1);
        stage(&context, FEE, guest, sent).await.assert_status(201);
    }
    let kept = json!({"algorithm": "ed25519", "key": ed25519(6).1});
    let path = format!("{PARTNER}/verification-keys/kept");
    context.admin(Method::PUT, &path, kept).await.assert_status(200);
    let require = json!({"policySignatureRequired": true});
    let changed = context.admin(Method::PATCH, PARTNER, require).await.assert_status(200).json();
    assert_eq!(changed["policySignatureRequired"], true);
    (context, pair)
}

#[tokio::test]
async fn where_it_is_required_only_what_an_operator_signed_becomes_a_version() {
    let (context, pair) = required().await;
    let refused = push(&context, FEE, "tiered-fee").await;
    assert!(refused.assert_status(422).text().contains("signed manifest is required"));
    staged(&context, json!({})).await.assert_status(422);
    let config = json!({"config": {}});
    context.admin(Method::PUT, &format!("{FEE}/config"), config).await.assert_status(422);
    assert_eq!(history(&context, FEE).await["active"], 1, "what serves, serves on");

    // Configuration alone: the manifest names a component that is stored.
    let mut flat = members(3, "tiered-fee");
    flat["config"] = json!({"tiers": ["0=20000"]});
    let mut sent = signed(&pair, &flat);
    sent["activate"] = json!(true);
    let versions = format!("{FEE}/versions");
    context.admin(Method::POST, &versions, sent.clone()).await.assert_status(201);
    context.admin(Method::POST, &versions, sent).await.assert_status(409);
    let newest = history(&context, FEE).await["versions"][0].clone();
    assert_eq!((&newest["config"], &newest["active"]), (&flat["config"], &json!(true)));
    assert_eq!(newest["signedBy"], "release");
}

#[tokio::test]
async fn a_key_that_is_removed_during_an_examination_makes_no_version() {
    let (context, pair) = required().await;
    let mut sent = signed(&pair, &members(3, "tiered-fee"));
    sent["activate"] = json!(true);
    let mut somebody = context.db().begin().await.unwrap();
    let row = "select from client where slug = 'acme' for update";
    sqlx::query(row).execute(&mut *somebody).await.unwrap();
    let remove = async {
        until_a_lock_is_awaited(context.db()).await;
        sqlx::query("delete from operator_key").execute(context.db()).await.unwrap();
        somebody.rollback().await.unwrap();
    };
    let (refused, ()) = futures::join!(staged(&context, sent), remove);
    let told = "no registered key has signed the version";
    assert!(refused.assert_status(409).text().contains(told), "{}", refused.text());
    assert_eq!(history(&context, FEE).await["active"], 1);
}

#[tokio::test]
async fn a_stolen_token_changes_no_policy_whose_changes_must_be_signed() {
    let (context, pair) = required().await;
    let before = history(&context, FEE).await;
    let keys = || async {
        let keys = "select string_agg(k.name || ' ' || c.revision, ',') \
                    from verification_key k join client c using (client_id)";
        sqlx::query_scalar::<_, Option<String>>(keys).fetch_one(context.db()).await.unwrap()
    };
    let kept = keys().await;
    let path = |end: &str| format!("{FEE}{end}");
    let stolen = [
        (Method::POST, path("/versions/2/activate"), json!({})),
        (Method::POST, path("/versions/2/activate"), json!({"percentage": 10})),
        (Method::POST, path("/versions/2/shadow"), json!({})),
        (Method::POST, path("/rollback"), json!({})),
        (Method::DELETE, path(""), json!({})),
        (Method::DELETE, path("/trial"), json!({})),
        (Method::PATCH, PARTNER.to_owned(), json!({"policySignatureRequired": false})),
        (Method::PUT, "/admin/v1/operator-keys/thief".into(), json!({"publicKey": ed25519(9).1})),
        (Method::DELETE, KEY.into(), json!({})),
        (
            Method::PUT,
            format!("{PARTNER}/verification-keys/partner-ed25519"),
            json!({"algorithm": "ed25519", "key": ed25519(9).1}),
        ),
        (Method::DELETE, format!("{PARTNER}/verification-keys/kept"), json!({})),
    ];
    for (method, path, body) in stolen {
        let answer = context.admin(method.clone(), &path, body.clone()).await;
        assert_eq!(answer.status(), 409, "{method} {path}: {}", answer.text());
        assert!(answer.text().contains("signed by a registered key"), "{}", answer.text());
        // A key of the thief's own is not registered, and one statement is not another's.
        for signer in [&ed25519(9).0, &pair] {
            let mut body = body.clone();
            body["signed"] = statement(&context, signer, about("policy.other"));
            let answer = context.admin(method.clone(), &path, body).await;
            assert_eq!(answer.status(), 422, "{method} {path}: {}", answer.text());
        }
    }
    assert_eq!(history(&context, FEE).await, before);
    assert_eq!(keys().await, kept);
}

#[tokio::test]
async fn a_signed_statement_sets_the_verification_key_that_it_names() {
    let (context, pair) = required().await;
    let path = format!("{PARTNER}/verification-keys/main");
    let (key, until) = (ed25519(8).1, "2100-01-01T00:00:00Z");
    let fingerprint = manifest::digest_hex(key.trim().as_bytes());
    let about = json!({"action": "verification-key.put", "partner": "acme", "key": "main",
        "fingerprint": fingerprint, "algorithm": "ed25519", "notAfter": until});
    let put = async |name: &str, value: Value| {
        let mut body = json!({"algorithm": "ed25519", "key": key, "notAfter": until,
            "signed": statement(&context, &pair, about.clone())});
        body[name] = value;
        context.admin(Method::PUT, &path, body).await
    };
    for (name, value) in [
        ("key", json!(ed25519(9).1)),
        ("notAfter", Value::Null),
        ("notAfter", json!("2101-01-01T00:00:00Z")),
        ("notBefore", json!("2020-01-01T00:00:00Z")),
    ] {
        let refused = put(name, value).await;
        assert!(refused.assert_status(422).text().contains("another change"), "{name}");
    }
    put("notAfter", json!(until)).await.assert_status(200);
    let gone = json!({"action": "verification-key.delete", "partner": "acme", "key": "main"});
    context.admin(Method::DELETE, &path, json!({})).await.assert_status(409);
    let gone = json!({"signed": statement(&context, &pair, gone)});
    context.admin(Method::DELETE, &path, gone.clone()).await.assert_status(204);
    context.admin(Method::DELETE, &path, gone).await.assert_status(409);
}

#[tokio::test]
async fn no_statement_is_kept_by_which_a_secret_could_be_guessed() {
    let (context, pair) = required().await;
    let path = format!("{PARTNER}/verification-keys/main");
    let secret = STANDARD.encode([8; 16]);
    let fingerprint = manifest::digest_hex(secret.as_bytes());
    let about = json!({"action": "verification-key.put", "partner": "acme", "key": "main",
        "fingerprint": fingerprint, "algorithm": "hmac-sha256"});
    let signed = statement(&context, &pair, about);
    let text = signed["statement"].as_str().unwrap().to_owned();
    let body = json!({"algorithm": "hmac-sha256", "key": secret, "signed": signed});
    context.admin(Method::PUT, &path, body.clone()).await.assert_status(200);
    context.admin(Method::PUT, &path, body).await.assert_status(409);
    let kept = "select digest || statement from signed_change";
    let kept: String = sqlx::query_scalar(kept).fetch_one(context.db()).await.unwrap();
    assert!(kept.contains("hmac-sha256") && !kept.contains(&fingerprint), "{kept}");
    assert!(!kept.contains(&manifest::digest_hex(text.as_bytes())), "{kept}");
}

#[tokio::test]
async fn a_signed_statement_changes_a_policy_once() {
    let (context, pair) = required().await;
    let activate = format!("{FEE}/versions/2/activate");
    let canary = json!({"percentage": 10, "signed": statement(&context, &pair, activation(2, 10))});
    context.admin(Method::POST, &activate, canary.clone()).await.assert_status(200);
    let end = json!({"signed": statement(&context, &pair, about("policy.end-trial"))});
    context.admin(Method::DELETE, &format!("{FEE}/trial"), end).await.assert_status(204);
    let again = context.admin(Method::POST, &activate, canary).await;
    assert!(again.assert_status(409).text().contains("used before"));

    let whole = json!({"signed": statement(&context, &pair, activation(2, 100))});
    let racing = (0..4).map(|_| context.admin(Method::POST, &activate, whole.clone()));
    let answers = futures::future::join_all(racing).await;
    let taken = answers.iter().filter(|answer| answer.status() == 200).count();
    assert_eq!(taken, 1, "of racing requests with one statement one wins");
    let rollback = json!({"signed": statement(&context, &pair, about("policy.rollback"))});
    let rolled = context.admin(Method::POST, &format!("{FEE}/rollback"), rollback).await;
    assert_eq!(rolled.assert_status(200).json()["version"], 1);

    let mut old = about("policy.remove");
    old["at"] = json!(context.clock().unix_seconds() - 1_000);
    let text = old.to_string();
    let signature = pair.sign(format!("rampart policy change 1\n{text}").as_bytes());
    let old = json!({"statement": text, "key": "release", "value": STANDARD.encode(signature)});
    context.admin(Method::DELETE, FEE, json!({"signed": old})).await.assert_status(409);
    let remove = json!({"signed": statement(&context, &pair, about("policy.remove"))});
    context.admin(Method::DELETE, FEE, remove).await.assert_status(204);

    let other = ed25519(8).1;
    let digest = manifest::digest_hex(other.trim().as_bytes());
    let add = json!({"action": "operator-key.register", "key": "other", "fingerprint": digest});
    let add = json!({"publicKey": other, "signed": statement(&context, &pair, add)});
    let path = "/admin/v1/operator-keys/other";
    context.admin(Method::PUT, path, add).await.assert_status(200);
    let gone = json!({"action": "operator-key.remove", "key": "release"});
    let gone = json!({"signed": statement(&context, &pair, gone)});
    context.admin(Method::DELETE, KEY, gone).await.assert_status(204);
    let waive = json!({"action": "policy.waive-signature", "partner": "acme"});
    let waive = json!({"policySignatureRequired": false,
        "signed": statement(&context, &pair, waive)});
    let refused = context.admin(Method::PATCH, PARTNER, waive).await;
    assert!(refused.assert_status(422).text().contains("not registered"), "its key was removed");
}

#[tokio::test]
async fn a_call_that_waited_for_a_second_person_is_signed_anew() {
    let (context, pair) = required().await;
    let demand = json!({"policyApprovalRequired": true});
    context.admin(Method::PATCH, PARTNER, demand).await.assert_status(200);
    let ada = context.operator("ada", &["platform"]).await;
    let bob = context.operator("bob", &["platform"]).await;
    let activate = async |percentage: i16| {
        context.clock().advance(TimeDelta::seconds(1));
        let signed = statement(&context, &pair, activation(2, percentage));
        let body = json!({"percentage": percentage, "signed": signed}).to_string();
        let path = format!("{FEE}/versions/2/activate");
        context.admin_as(Some(&ada), Method::POST, &path, body.into()).await
    };
    let held = activate(10).await.assert_status(202).json();
    assert_eq!(activate(10).await.assert_status(202).json(), held, "the same call waits");
    let grant = format!("/admin/v1/approvals/{}/grant", held["approval"].as_str().unwrap());
    let granted = context.admin_as(Some(&bob), Method::POST, &grant, "".into()).await;
    granted.assert_status(204);
    assert_ne!(activate(20).await.assert_status(202).json(), held, "another change");
    activate(10).await.assert_status(200);
    activate(10).await.assert_status(202);
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
    let mut at_once = with("activate", json!(false));
    at_once["activate"] = json!(true);
    let refused = staged(&context, at_once).await.assert_status(422).text().to_owned();
    assert!(refused.contains("its upload does not activate"), "{refused}");
    assert_eq!(history(&context, FEE).await["versions"], json!([]));
    staged(&context, with("activate", json!(false))).await.assert_status(201);
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
    let (partner, kind, version, fail_closed, activate) = ("acme", "fee", 1, true, None);
    let unsigned =
        ManifestContent { partner, kind, version, digest: &digest, config, fail_closed, activate };
    let (text, signature) = manifest::sign(&pem, &unsigned).unwrap();
    let signature = json!({"key": "release", "value": STANDARD.encode(signature)});
    let members = json!({"manifest": text, "signature": signature, "activate": true});
    staged(&context, members).await.assert_status(201);
    let newest = history(&context, FEE).await["versions"][0].clone();
    assert_eq!((&newest["failClosed"], &newest["active"]), (&json!(true), &json!(true)));
    assert!(manifest::sign("-----BEGIN PRIVATE KEY-----", &unsigned).is_err());
}

#[tokio::test]
async fn the_platform_may_require_signatures_of_every_partner_by_keys_of_its_settings() {
    let (pair, root) = ed25519(7);
    let context = TestContext::with(|settings| {
        settings.policy.require_signature = true;
        settings.policy.root_keys.insert("release".to_owned(), root);
    })
    .await;
    context.partner("acme").await;
    push(&context, FEE, "tiered-fee").await.assert_status(422);
    let thief = json!({"publicKey": ed25519(9).1});
    for name in ["release", "thief"] {
        let path = format!("/admin/v1/operator-keys/{name}");
        context.admin(Method::PUT, &path, thief.clone()).await.assert_status(409);
    }
    let waive = json!({"policySignatureRequired": false});
    context.admin(Method::PATCH, PARTNER, waive).await.assert_status(409);
    staged(&context, signed(&pair, &members(1, "tiered-fee"))).await.assert_status(201);
    let activate = json!({"signed": statement(&context, &pair, activation(1, 100))});
    let path = format!("{FEE}/versions/1/activate");
    context.admin(Method::POST, &path, activate).await.assert_status(200);
}

#[tokio::test]
async fn the_end_of_a_requirement_waits_for_no_row_of_its_partner() {
    let context = context().await;
    let mut order = context.db().begin().await.unwrap();
    let refer = "select from client where slug = 'acme' for key share";
    sqlx::query(refer).execute(&mut *order).await.unwrap();
    let waive = json!({"policySignatureRequired": false});
    context.admin(Method::PATCH, PARTNER, waive).await.assert_status(200);
    order.rollback().await.unwrap();
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
