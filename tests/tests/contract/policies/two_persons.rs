//! A partner whose policies take two persons, and its verification keys.

use bytes::Bytes;

use super::*;

const KEY: &str = "/admin/v1/partners/acme/verification-keys/partner-ed25519";

/// A partner that demands two persons, with a signature policy and its key, and two operators.
async fn demanding() -> (TestContext, [String; 2]) {
    let context = context().await;
    set_key(&context).await;
    push(&context, SIGNATURE, "ed25519-offer").await.assert_status(200);
    let demand = json!({"policyApprovalRequired": true});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", demand).await.assert_status(200);
    let operators = [
        context.operator("ada", &["platform"]).await,
        context.operator("bob", &["platform"]).await,
    ];
    (context, operators)
}

async fn call(context: &TestContext, by: &str, method: Method, path: &str, body: Value) -> Answer {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    context.admin_as(Some(by), method, path, body).await
}

/// The open approval of a call that waits, as the other operator sees it, once they have agreed.
async fn granted(context: &TestContext, by: &str, waits: &Answer) -> Value {
    let id = waits.assert_status(202).json()["approval"].clone();
    let listed = call(context, by, Method::GET, "/admin/v1/approvals", Value::Null).await.json();
    let found = listed.as_array().unwrap().iter().find(|approval| approval["id"] == id).unwrap();
    let grant = format!("/admin/v1/approvals/{}/grant", id.as_str().unwrap());
    call(context, by, Method::POST, &grant, Value::Null).await.assert_status(204);
    found["body"].clone()
}

#[tokio::test]
async fn a_verification_key_takes_two_persons_where_policies_do() {
    let (context, [ada, bob]) = demanding().await;
    let keys = "/admin/v1/partners/acme/verification-keys";
    let listed = async || context.admin(Method::GET, keys, Value::Null).await.json();
    let before = listed().await;
    let new = json!({"algorithm": "ed25519", "key": ed25519(8).1});
    for (method, body, done) in [(Method::PUT, &new, 200), (Method::DELETE, &json!({}), 204)] {
        let kept = listed().await;
        let waits = call(&context, &ada, method.clone(), KEY, body.clone()).await;
        assert_eq!(&granted(&context, &bob, &waits).await, body);
        assert_eq!(listed().await, kept);
        call(&context, &ada, method, KEY, body.clone()).await.assert_status(done);
        assert_ne!(listed().await, kept);
    }
    assert_ne!(listed().await, before);
    // Nobody is asked about what is no key.
    let none = json!({"algorithm": "ed25519", "key": "none"});
    call(&context, &ada, Method::PUT, KEY, none).await.assert_status(422);
}

#[tokio::test]
async fn a_change_of_a_policy_or_a_key_uses_its_approval_up() {
    let (context, [ada, bob]) = demanding().await;
    for path in [SIGNATURE, KEY] {
        let remove = async || call(&context, &ada, Method::DELETE, path, json!({})).await;
        granted(&context, &bob, &remove().await).await;
        remove().await.assert_status(204);
        let listed = call(&context, &ada, Method::GET, "/admin/v1/approvals", Value::Null).await;
        assert_eq!(listed.json()[0]["state"], "used");
        // Nobody is asked about what is gone.
        remove().await.assert_status(404);
    }
}

#[tokio::test]
async fn a_signing_secret_takes_two_persons_where_policies_do() {
    let (context, [ada, bob]) = demanding().await;
    let rotate = async |kind: &str| {
        let path = "/admin/v1/partners/acme/secrets/rotate";
        let body = json!({"kind": kind, "overlapSeconds": 0});
        call(&context, &ada, Method::POST, path, body).await
    };
    let waits = rotate("signing").await;
    let agreed = json!({"kind": "signing", "overlapSeconds": 0});
    assert_eq!(granted(&context, &bob, &waits).await, agreed);
    assert!(rotate("signing").await.assert_status(200).json()["secret"].is_string());
    rotate("signing").await.assert_status(202);
    for kind in ["webhook", "password"] {
        rotate(kind).await.assert_status(200);
    }
}

#[tokio::test]
async fn a_secret_is_neither_kept_nor_shown_while_it_waits() {
    let (context, [ada, bob]) = demanding().await;
    let path = "/admin/v1/partners/acme/verification-keys/shared";
    let body = |secret: &[u8; 32]| {
        json!({"algorithm": "hmac-sha256", "key": STANDARD.encode(secret),
            "notAfter": "2100-01-01T00:00:00Z"})
    };
    let (one, other) =
        (body(b"a secret of the partner, 32 byte"), body(b"another secret of it, of 32 byte"));
    let waits = call(&context, &ada, Method::PUT, path, one.clone()).await;
    let shown = granted(&context, &bob, &waits).await;
    let plain = digest_hex(one["key"].as_str().unwrap().as_bytes());
    let fingerprint = shown["fingerprint"].as_str().unwrap();
    assert_ne!(fingerprint, plain, "it could be guessed");
    assert_eq!(shown["notAfter"], one["notAfter"]);
    assert_eq!((&shown["algorithm"], &shown["key"]), (&one["algorithm"], &Value::Null));
    let own = call(&context, &ada, Method::GET, "/admin/v1/approvals", Value::Null).await;
    assert!(!own.text().contains(one["key"].as_str().unwrap()), "{}", own.text());

    // What was agreed to is this secret.
    call(&context, &ada, Method::PUT, path, other).await.assert_status(202);
    call(&context, &ada, Method::PUT, path, one).await.assert_status(200);
}

#[tokio::test]
async fn a_document_activates_no_settings_that_came_after_the_second_person() {
    let (context, [ada, bob]) = demanding().await;
    let settings = |fee: &str| {
        json!({"component": STANDARD.encode(component("tiered-fee")),
            "config": {"tiers": [fee]}})
    };
    let versions = format!("{FEE}/versions");
    let staged = call(&context, &ada, Method::POST, &versions, settings("0=20000")).await;
    let digest = staged.assert_status(201).json()["digest"].clone();
    let wanted = json!({"partners": {"acme": {"policies": {"fee": digest}}}});
    let apply =
        async || call(&context, &ada, Method::PUT, "/admin/v1/configuration", wanted.clone()).await;
    granted(&context, &bob, &apply().await).await;
    let later = call(&context, &ada, Method::POST, &versions, settings("0=90000")).await;
    later.assert_status(201);
    assert!(apply().await.assert_status(409).text().contains("different settings"));
    assert_eq!(history(&context, FEE).await["active"], Value::Null);
    let activate = format!("{versions}/1/activate");
    context.admin(Method::POST, &activate, json!({})).await.assert_status(200);
    assert_eq!(apply().await.assert_status(200).json()["changes"], json!([]));
}
