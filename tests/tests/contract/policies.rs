//! Policies as operators handle them: real components, through the admin API.

mod answers;
mod lifecycle;
mod limits;
mod recorded;
mod replayed;
mod signed;
mod signers;
mod told;
mod trials;
mod two_persons;
mod uncompiled;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use rampart_core::policies::manifest::digest_hex;
use rampart_tests::answer::Answer;
use rampart_tests::guests::component;
use rampart_tests::keys::ed25519;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

const FEE: &str = "/admin/v1/partners/acme/policies/fee";
pub(crate) const SIGNATURE: &str = "/admin/v1/partners/acme/policies/signature";
const METHOD_ORDER: &str = "/admin/v1/partners/acme/policies/method-order";

/// A deployment with a partner, `acme`.
async fn context() -> TestContext {
    with_acme().await.0
}

/// The same, with the partner.
pub(crate) async fn with_acme() -> (TestContext, Partner) {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    (context, acme)
}

/// Pushes a guest as a policy.
pub(crate) async fn push(context: &TestContext, path: &str, guest: &str) -> Answer {
    context.admin_bytes(Method::PUT, path, component(guest)).await
}

/// A version that serves nobody yet, of this guest with these members.
async fn stage(context: &TestContext, path: &str, guest: &str, mut members: Value) -> Answer {
    members["component"] = STANDARD.encode(component(guest)).into();
    context.admin(Method::POST, &format!("{path}/versions"), members).await
}

/// The key that `ed25519-offer` names: that of seed 7.
pub(crate) async fn set_key(context: &TestContext) {
    let key = "/admin/v1/partners/acme/verification-keys/partner-ed25519";
    let body = json!({"algorithm": "ed25519", "key": ed25519(7).1});
    context.admin(Method::PUT, key, body).await.assert_status(200);
}

async fn dry_run(context: &TestContext, path: &str, input: Value) -> Value {
    let path = format!("{path}/dry-run");
    let answer = context.admin(Method::POST, &path, json!({ "input": input })).await;
    answer.assert_status(200);
    answer.json()
}

async fn history(context: &TestContext, path: &str) -> Value {
    context.admin(Method::GET, path, json!({})).await.assert_status(200).json()
}

async fn actions(context: &TestContext) -> Vec<String> {
    let audit = context.admin(Method::GET, "/admin/v1/audit?target=acme", json!({})).await.json();
    let rows = audit.as_array().unwrap().iter();
    rows.map(|row| row["action"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_push_activates_the_next_version_and_a_rollback_the_one_before() {
    let context = context().await;
    let first = push(&context, FEE, "tiered-fee").await;
    let size = component("tiered-fee").len();
    first.assert_status(200);
    assert_eq!((&first.json()["version"], &first.json()["kind"]), (&json!(1), &json!("fee")));
    assert_eq!(first.json()["size"], size);
    assert_eq!(first.json()["digest"].as_str().unwrap().len(), 64);

    let decided = dry_run(&context, FEE, json!({"pay": {"amount": 600, "currency": "EUR"}})).await;
    assert_eq!(decided["decision"]["rule"], "tier-2");
    assert_eq!(decided["decision"]["lines"][0]["charge"]["rate"], 10_000);
    assert!(decided["fuel"].as_u64().unwrap() > 0 && decided["time"]["microseconds"].is_u64());

    assert_eq!(push(&context, FEE, "hostile").await.assert_status(200).json()["version"], 2);
    assert_eq!(dry_run(&context, FEE, json!({})).await["decision"]["rule"], "behaved");

    let rollback = format!("{FEE}/rollback");
    let back = context.admin(Method::POST, &rollback, json!({})).await;
    assert_eq!(back.assert_status(200).json(), first.json());
    assert_eq!(dry_run(&context, FEE, json!({})).await["decision"]["rule"], "tier-1");
    context.admin(Method::POST, &rollback, json!({})).await.assert_status(409);
    assert_eq!(history(&context, FEE).await["active"], 1, "a refused rollback changes nothing");

    assert_eq!(push(&context, FEE, "hostile").await.json()["version"], 3);
    assert_eq!(context.admin(Method::POST, &rollback, json!({})).await.json()["version"], 1);

    context.admin(Method::DELETE, FEE, json!({})).await.assert_status(204);
    context.admin(Method::DELETE, FEE, json!({})).await.assert_status(404);
    let gone = context.admin(Method::POST, &format!("{FEE}/dry-run"), json!({"input": {}})).await;
    gone.assert_status(404);
    assert_eq!(context.admin(Method::POST, &rollback, json!({})).await.json()["version"], 1);

    let history = history(&context, FEE).await;
    let versions = history["versions"].as_array().unwrap();
    let shown: Vec<_> = versions.iter().map(|v| (&v["version"], &v["active"])).collect();
    let (yes, no) = (json!(true), json!(false));
    assert_eq!(shown, [(&json!(3), &no), (&json!(2), &no), (&json!(1), &yes)]);
    assert_eq!(versions[2]["info"]["name"], "rampart/tiered-fee");
    let push = "policy.push";
    let (back, remove) = ("policy.rollback", "policy.remove");
    let expected = [back, remove, back, push, back, push, push, "partner.create"];
    assert_eq!(actions(&context).await, expected);
}

#[tokio::test]
async fn what_does_not_fit_is_refused_with_the_reason_and_changes_nothing() {
    let context = context().await;
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    let (before, log) = (history(&context, FEE).await, actions(&context).await);
    let config = |text: &str| format!("{FEE}?config={text}");
    let cases = [
        (FEE.to_owned(), "\0asm nonsense".into(), "not a component"),
        (FEE.to_owned(), vec![0; (2 << 20) + 1].into(), "at most 2097152"),
        (FEE.to_owned(), component("country-order"), "not exactly fee"),
        (FEE.to_owned(), component("hostile-start"), "`describe` failed: fuel"),
        (config("{%22mode%22:%22loop%22}"), component("hostile"), "fuel"),
        (config("{%22mode%22:1}"), component("hostile"), "`mode` is not text"),
        (config("{%22mood%22:1}"), component("hostile"), "no configuration `mood`"),
        (config("{%22mode%22:%22refuse%22}"), component("hostile"), "cannot be `refuse`"),
        (config("loop"), component("hostile"), "a JSON object"),
        (format!("{FEE}?failClosed=1"), component("hostile"), "true or false"),
        (format!("{METHOD_ORDER}?failClosed=true"), component("country-order"), "falls back"),
    ];
    for (path, body, reason) in cases {
        let answer = context.admin_bytes(Method::PUT, &path, body).await;
        answer.assert_status(422);
        let error = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(reason), "{path}: {error}");
    }
    let nowhere = format!("{FEE}s");
    push(&context, &nowhere, "tiered-fee").await.assert_status(404);
    push(&context, "/admin/v1/partners/nobody/policies/fee", "tiered-fee").await.assert_status(404);
    assert_eq!((history(&context, FEE).await, actions(&context).await), (before, log));
    let kept: i64 = sqlx::query_scalar("select count(*) from policy_component")
        .fetch_one(context.db())
        .await
        .unwrap();
    assert_eq!(kept, 1);
}

#[tokio::test]
async fn of_pushes_at_once_each_gets_a_version_of_its_own() {
    let context = context().await;
    let other = context.second_edge().await;
    let (a, b) = tokio::join!(
        async { tokio::join!(push(&context, FEE, "tiered-fee"), push(&context, FEE, "hostile")) },
        async { tokio::join!(push(&other, FEE, "tiered-fee"), push(&other, FEE, "hostile")) },
    );
    let mut versions: Vec<_> = [&a.0, &a.1, &b.0, &b.1]
        .map(|answer| answer.assert_status(200).json()["version"].as_i64().unwrap())
        .into();
    versions.sort_unstable();
    assert_eq!(versions, [1, 2, 3, 4]);
    for edge in [&context, &other] {
        let history = history(edge, FEE).await;
        assert_eq!(history["active"], 4);
        let active = history["versions"][0]["digest"].clone();
        assert_eq!(dry_run(edge, FEE, json!({})).await["digest"], active);
    }
}

#[tokio::test]
async fn a_configuration_is_checked_applied_and_kept() {
    let context = context().await;
    let path = format!("{FEE}/config");
    let flat = json!({"config": {"tiers": ["0=20000"], "minimum": 2.50}});
    context.admin(Method::PUT, &path, flat.clone()).await.assert_status(404);
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    let configured = context.admin(Method::PUT, &path, flat).await;
    assert_eq!(configured.assert_status(200).json()["version"], 2);
    let charge = |decided: Value| decided["decision"]["lines"][0]["charge"].clone();
    let expected = json!({"rate": 20_000, "atLeast": 2.5, "atMost": null}).to_string();
    assert_eq!(charge(dry_run(&context, FEE, json!({})).await).to_string(), expected);

    for (config, reason) in [
        (json!({"tiers": ["5=1"]}), "must begin at 0"),
        (json!({"tiers": "0=1"}), "`tiers` is not texts"),
        (json!({"floor": "1"}), "no configuration `floor`"),
    ] {
        let refused = context.admin(Method::PUT, &path, json!({ "config": config })).await;
        refused.assert_status(422);
        assert!(refused.text().contains(reason), "{}", refused.text());
    }
    context.admin(Method::PUT, &path, json!({"configs": {}})).await.assert_status(422);

    let closed = context.admin(Method::PUT, &path, json!({"failClosed": true})).await;
    assert_eq!(closed.assert_status(200).json()["version"], 3);
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    let newest = history(&context, FEE).await["versions"][0].clone();
    assert_eq!((&newest["version"], &newest["failClosed"]), (&json!(4), &json!(true)));
    assert_eq!(newest["config"].to_string(), r#"{"tiers":["0=20000"],"minimum":2.5}"#);
    assert_eq!(charge(dry_run(&context, FEE, json!({})).await).to_string(), expected);
}

#[tokio::test]
async fn a_dry_run_shows_what_went_wrong() {
    let context = context().await;
    let path = format!("{FEE}?config={{%22mode%22:%22error@FR%22}}");
    push(&context, &path, "hostile").await.assert_status(200);
    let failed = dry_run(&context, FEE, json!({"country": "FR"})).await;
    assert_eq!(failed["decision"], Value::Null);
    assert_eq!(failed["failure"]["cause"], "error");
    assert_eq!(failed["failure"]["message"], "unsupported: this and that");
    let unknown = json!({"input": {"city": "Paris"}});
    let refused = context.admin(Method::POST, &format!("{FEE}/dry-run"), unknown).await;
    assert!(refused.assert_status(422).text().contains("`city`"));

    push(&context, METHOD_ORDER, "country-order").await.assert_status(200);
    let ranked = dry_run(&context, METHOD_ORDER, json!({"user": {"country": "NL"}})).await;
    assert_eq!(
        ranked["decision"]["shown"][0],
        json!({"id": "bankredirect1", "badge": "recommended"})
    );
}

#[tokio::test]
async fn a_verification_key_serves_its_partner_until_it_is_taken_away() {
    let context = context().await;
    let other = context.partner("other").await;
    let (pair, pem) = ed25519(7);
    let keys = |slug: &str| format!("/admin/v1/partners/{slug}/verification-keys/partner-ed25519");
    let body = json!({"algorithm": "ed25519", "key": pem});
    let lacking = async || {
        let refused = push(&context, SIGNATURE, "ed25519-offer").await;
        assert!(refused.assert_status(422).text().contains("`partner-ed25519`"));
    };
    lacking().await;
    context.admin(Method::PUT, &keys(&other.slug), body.clone()).await.assert_status(200);
    lacking().await;
    let mut expired = body.clone();
    expired["notAfter"] = json!("2026-01-01T00:00:00Z");
    context.admin(Method::PUT, &keys("acme"), expired.clone()).await.assert_status(200);
    lacking().await;
    let put = context.admin(Method::PUT, &keys("acme"), body.clone()).await;
    assert_eq!(put.assert_status(200).json()["algorithm"], "ed25519");
    push(&context, SIGNATURE, "ed25519-offer").await.assert_status(200);
    let now = context.clock().unix_seconds();
    let signed = pair.sign(format!("fee=1.50&t={now}&n=nonce-0001").as_bytes());
    let claim = format!("t={now},n=nonce-0001,s={}", STANDARD.encode(signed));
    let fields: Value = serde_json::from_str(r#"{"fee": 1.50}"#).unwrap();
    let input = json!({"fields": fields, "signature": claim});
    let judged = async || dry_run(&context, SIGNATURE, input.clone()).await["decision"].clone();
    let authentic = judged().await;
    assert_eq!(authentic["verdict"], "authentic");
    assert_eq!(authentic["signer"]["replayToken"], "nonce-0001");

    let mut future = body.clone();
    future["notBefore"] = json!("2100-01-01T00:00:00Z");
    for outside in [expired, future] {
        let put = context.admin(Method::PUT, &keys("acme"), outside).await;
        put.assert_status(200);
        assert_eq!(judged().await["verdict"], "rejected", "{}", put.text());
    }
    let mut reversed = body.clone();
    (reversed["notBefore"], reversed["notAfter"]) =
        (json!("2027-01-01T00:00:00Z"), json!("2026-01-01T00:00:00Z"));
    context.admin(Method::PUT, &keys("acme"), reversed).await.assert_status(422);

    let another = json!({"algorithm": "ed25519", "key": ed25519(8).1});
    context.admin(Method::PUT, &keys("acme"), another).await.assert_status(200);
    assert_eq!(judged().await["reason"], "bad-signature");
    context.admin(Method::DELETE, &keys("acme"), json!({})).await.assert_status(204);
    assert_eq!(judged().await["reason"], "unknown-key");
    context.admin(Method::DELETE, &keys("acme"), json!({})).await.assert_status(404);
}

#[tokio::test]
async fn verification_keys_are_listed_without_the_keys() {
    let context = context().await;
    let (secret, pem) = (STANDARD.encode(b"a secret of the partner, 32 byte"), ed25519(7).1);
    let keys = "/admin/v1/partners/acme/verification-keys";
    for (name, algorithm, key) in [("shared", "hmac-sha256", &secret), ("main", "ed25519", &pem)] {
        let body = json!({"algorithm": algorithm, "key": key, "notAfter": "2100-01-01T00:00:00Z"});
        context.admin(Method::PUT, &format!("{keys}/{name}"), body).await.assert_status(200);
    }
    let answer = context.admin(Method::GET, keys, Value::Null).await;
    let listed = answer.assert_status(200).json();
    let facts = ["name", "algorithm", "fingerprint", "notBefore", "notAfter"];
    let row = |row: &Value| facts.map(|member| row[member].clone());
    let until = json!("2100-01-01T00:00:00Z");
    let main = [
        json!("main"),
        json!("ed25519"),
        json!(digest_hex(pem.trim().as_bytes())),
        Value::Null,
        until.clone(),
    ];
    let shared = [json!("shared"), json!("hmac-sha256"), Value::Null, Value::Null, until];
    assert_eq!(listed.as_array().unwrap().iter().map(row).collect::<Vec<_>>(), [main, shared]);
    assert!(listed[0]["createdAt"].is_string() && !answer.text().contains(&secret), "{listed}");
    let unknown = "/admin/v1/partners/nobody/verification-keys";
    context.admin(Method::GET, unknown, Value::Null).await.assert_status(404);
}

/// A partner with a fee policy that gives back what it is told, and two verification keys.
async fn with_mirror() -> TestContext {
    let context = context().await;
    for name in ["one", "two"] {
        let path = format!("/admin/v1/partners/acme/verification-keys/{name}");
        let body = json!({"algorithm": "ed25519", "key": ed25519(7).1});
        context.admin(Method::PUT, &path, body).await.assert_status(200);
    }
    let path = format!("{FEE}?config={{%22integer%22:1}}");
    push(&context, &path, "mirror-fee").await.assert_status(200);
    context
}

#[tokio::test]
async fn a_policy_cannot_tell_a_dry_run_from_a_live_call() {
    let context = with_mirror().await;
    let report = dry_run(&context, FEE, json!({})).await;
    let mirrored: Vec<_> = report["log"][0]["text"].as_str().unwrap().split('|').collect();
    let [partner, request_id, now, rehearsal, ..] = mirrored[..] else { panic!("{report}") };
    assert_eq!((partner, rehearsal), ("acme", "0"));
    assert_eq!((request_id.len(), &request_id[14..15]), (36, "7"), "{request_id} is no UUIDv7");
    let now: i64 = now.parse().unwrap();
    assert!((context.clock().unix_seconds() - now).abs() < 60, "{now}");
}

#[tokio::test]
async fn a_key_that_is_none_is_refused_without_being_quoted() {
    let context = context().await;
    let secret = STANDARD.encode(b"a secret of the partner, 32 byte");
    let path = "/admin/v1/partners/acme/verification-keys/main";
    for (body, reason) in [
        (json!({"algorithm": "md5", "key": secret}), "one of hmac-sha256"),
        (json!({"algorithm": "ed25519", "key": secret}), "PEM"),
        (json!({"algorithm": "hmac-sha256", "key": "c2hvcnQ="}), "16 to 1024 bytes"),
        (json!({"algorithm": "hmac-sha256", "key": secret, "x": 1}), "`x`"),
    ] {
        let refused = context.admin(Method::PUT, path, body).await;
        let text = refused.assert_status(422).text().to_owned();
        assert!(text.contains(reason) && !text.contains(&secret), "{text}");
    }
    let body = json!({"algorithm": "hmac-sha256", "key": secret});
    let put = context.admin(Method::PUT, path, body).await;
    assert!(!put.assert_status(200).text().contains(&secret));
    let audit = context.admin(Method::GET, "/admin/v1/audit", json!({})).await;
    assert!(!audit.text().contains(&secret));
    let sealed: Vec<u8> = sqlx::query_scalar("select sealed from verification_key")
        .fetch_one(context.db())
        .await
        .unwrap();
    assert!(!sealed.windows(8).any(|part| secret.as_bytes().starts_with(part)));
}

#[tokio::test]
async fn partners_with_one_component_share_it() {
    let context = context().await;
    context.partner("other").await;
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    let path = "/admin/v1/partners/other/policies/fee";
    assert_eq!(push(&context, path, "tiered-fee").await.assert_status(200).json()["version"], 1);
    let kept: i64 = sqlx::query_scalar("select count(*) from policy_component")
        .fetch_one(context.db())
        .await
        .unwrap();
    assert_eq!(kept, 1);
    let restarted = context.second_edge().await;
    assert_eq!(restarted.core().policies_pending(), 0);
    assert_eq!(dry_run(&restarted, path, json!({})).await["decision"]["rule"], "tier-1");
}
