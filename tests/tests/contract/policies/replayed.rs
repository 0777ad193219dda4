//! An order says what its policies decided, and they decide it again.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use rampart_tests::buyer::WALLET;
use rampart_tests::keys::ed25519;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{FEE, SIGNATURE, push, set_key, stage, with_acme};

/// An offer that is signed with this nonce.
pub(super) async fn offer(context: &TestContext, acme: &Partner, nonce: &str) -> Value {
    let (pair, _) = ed25519(7);
    let now = context.clock().unix_seconds();
    let line = format!("returnUrl=app%3Ax&t={now}&n={nonce}");
    let signature = STANDARD.encode(pair.sign(line.as_bytes()));
    let offer = json!({"baseCurrency": "BTC", "quoteCurrency": "EUR",
        "paymentMethod": "creditCard", "returnUrl": "app:x",
        "signature": format!("t={now},n={nonce},s={signature}")});
    acme.post("/api/v2/buy/offer", offer).await.assert_status(200).json()
}

/// An order under a signed offer, priced by a fee policy: its id.
async fn order(context: &TestContext, acme: &Partner) -> i64 {
    let offer = offer(context, acme, "nonce-0001").await;
    let asked =
        json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 100});
    let token = format!("Bearer {}", acme.token().await);
    let post = async |path: &str, body: Value| {
        let request = acme.anonymous(Method::POST, path).header("authorization", &token);
        request.json(&body).send().await.assert_status(200).json()
    };
    let quote = post("/api/v1/buy/quote", asked).await;
    let confirm = json!({"quote": quote["quote"], "offerId": offer["offerUuid"],
        "walletAddress": WALLET, "walletType": "unhosted"});
    post("/api/v2/buy/confirm", confirm).await["orderId"].as_i64().unwrap()
}

async fn replay(context: &TestContext, order: i64) -> Value {
    let path = format!("/admin/v1/orders/{order}/replay");
    context.admin(Method::POST, &path, json!({})).await.assert_status(200).json()
}

#[tokio::test]
async fn an_orders_decisions_are_explained_and_made_again_the_same() {
    let (context, acme) = with_acme().await;
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    set_key(&context).await;
    push(&context, SIGNATURE, "ed25519-offer").await.assert_status(200);
    let order = order(&context, &acme).await;

    let shown = context.admin(Method::GET, &format!("/admin/v1/orders/{order}"), json!({})).await;
    let decisions = shown.assert_status(200).json()["policyDecisions"].clone();
    let kinds: Vec<_> = decisions.as_array().unwrap().iter().map(|d| d["kind"].clone()).collect();
    assert_eq!(kinds, ["fee", "signature"]);
    let (fee, signature) = (&decisions[0], &decisions[1]);
    assert_eq!((&fee["version"], &fee["rule"]), (&json!(1), &json!("tier-1")));
    assert!(fee["fuel"].as_u64().unwrap() > 0 && fee["digest"].as_str().unwrap().len() == 64);
    assert_eq!(fee["input"]["pay"], json!({"amount": "100", "currency": "EUR"}));
    // The requests' own ids have another form, which would tell a policy that it is live.
    let id = fee["requestId"].as_str().unwrap();
    assert_eq!((id.len(), &id[14..15]), (36, "7"), "{id} is no UUIDv7");
    assert_eq!((&signature["rule"], &signature["input"]), (&json!("authentic"), &Value::Null));
    assert!(!shown.text().contains("nonce-0001"), "what was signed is for a replay alone");

    // Other versions serve since, and one edge has never seen this one.
    context.admin(Method::DELETE, FEE, json!({})).await.assert_status(204);
    stage(&context, SIGNATURE, "ed25519-offer", json!({"activate": true})).await.assert_status(201);
    for edge in [&context, &context.second_edge().await] {
        let replayed = replay(edge, order).await;
        assert_eq!(replayed["same"], true, "{replayed}");
        let fee = &replayed["decisions"][0];
        assert_eq!(fee["then"]["fuel"], fee["now"]["fuel"]);
        assert_eq!(fee["now"]["decision"]["lines"][0]["charge"]["rate"], 15_000);
        let verdict = json!({"verdict": "authentic"});
        assert_eq!(replayed["decisions"][1]["now"]["decision"], verdict, "no more of the payload");
    }
}

#[tokio::test]
async fn a_dry_run_on_signed_payloads_shows_nothing_of_them() {
    let (context, acme) = with_acme().await;
    set_key(&context).await;
    push(&context, SIGNATURE, "ed25519-offer").await.assert_status(200);
    let logs = json!({"config": {"key": "jo@example.com"}});
    stage(&context, SIGNATURE, "ed25519-offer", logs).await.assert_status(201);
    offer(&context, &acme, "nonce-0001").await;
    let path = format!("{SIGNATURE}/dry-run");
    let recorded = async |version: i64| {
        let body = json!({"recorded": true, "version": version});
        let answer = context.admin(Method::POST, &path, body).await.assert_status(200).json();
        answer["decisions"][0].clone()
    };
    assert_eq!(recorded(1).await["decision"], json!({"verdict": "authentic"}));
    let logged = recorded(2).await;
    let rejected = json!({"verdict": "rejected", "reason": "unknown-key"});
    assert_eq!(logged["decision"], rejected);
    let line = logged["log"][0]["text"].as_str().unwrap();
    assert!(line.starts_with("key … "), "{line}");
}

#[tokio::test]
async fn a_replay_says_when_the_decision_would_be_another() {
    let (context, acme) = with_acme().await;
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    set_key(&context).await;
    push(&context, SIGNATURE, "ed25519-offer").await.assert_status(200);
    let order = order(&context, &acme).await;
    let key = "/admin/v1/partners/acme/verification-keys/partner-ed25519";
    context.admin(Method::DELETE, key, json!({})).await.assert_status(204);
    sqlx::query(
        "update buy_order set policy_decisions = jsonb_set(policy_decisions, '{0,fuel}', '1')",
    )
    .execute(context.db())
    .await
    .unwrap();
    let replayed = replay(&context, order).await;
    let same = |index: usize| replayed["decisions"][index]["same"].clone();
    assert_eq!([replayed["same"].clone(), same(0), same(1)], [false, false, false]);
    assert_eq!(replayed["decisions"][1]["now"]["decision"]["reason"], "unknown-key");
    for (path, status) in [("1", 404), ("x", 404)] {
        let path = format!("/admin/v1/orders/{path}/replay");
        context.admin(Method::POST, &path, json!({})).await.assert_status(status);
    }
}

#[tokio::test]
async fn a_payload_under_a_key_that_is_gone_holds_up_no_other() {
    let (context, acme) = with_acme().await;
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    set_key(&context).await;
    push(&context, SIGNATURE, "ed25519-offer").await.assert_status(200);
    let order = order(&context, &acme).await;
    for statement in [
        r#"update offer set
            signature_decision = jsonb_set(signature_decision, '{input}', '"AAAA"')"#,
        r#"update buy_order set
            policy_decisions = jsonb_set(policy_decisions, '{1,input}', '"AAAA"')"#,
    ] {
        sqlx::query(statement).execute(context.db()).await.unwrap();
    }
    let replayed = replay(&context, order).await;
    assert_eq!(replayed["decisions"][0]["same"], true);
    let signature = &replayed["decisions"][1];
    assert_eq!(signature["now"]["failure"], "the question does not open any more");
    assert_eq!(signature["then"]["rule"], "authentic");

    let recorded = async || {
        let path = format!("{SIGNATURE}/dry-run");
        context.admin(Method::POST, &path, json!({"recorded": true})).await
    };
    recorded().await.assert_status(409);
    offer(&context, &acme, "nonce-0002").await;
    let decisions = recorded().await.assert_status(200).json()["decisions"].clone();
    assert_eq!(decisions.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_version_that_is_gone_or_another_holds_up_no_other() {
    let (context, acme) = with_acme().await;
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    set_key(&context).await;
    push(&context, SIGNATURE, "ed25519-offer").await.assert_status(200);
    let order = order(&context, &acme).await;
    for (statement, failure) in [
        (
            r#"update buy_order set
                policy_decisions = jsonb_set(policy_decisions, '{0,digest}', '"00"')"#,
            "the version has another component now",
        ),
        (
            "update buy_order set policy_decisions = jsonb_set(policy_decisions, '{0,version}', '9')",
            "the version is stored no more",
        ),
    ] {
        sqlx::query(statement).execute(context.db()).await.unwrap();
        let replayed = replay(&context, order).await;
        let [fee, signature] = [0, 1].map(|index: usize| &replayed["decisions"][index]);
        assert_eq!(fee["now"], json!({"failure": failure}));
        assert_eq!((&fee["then"]["rule"], &fee["same"]), (&json!("tier-1"), &json!(false)));
        assert_eq!((&replayed["same"], &signature["same"]), (&json!(false), &json!(true)));
    }
}

#[tokio::test]
async fn what_was_signed_for_a_user_is_forgotten_with_the_user() {
    let (context, acme) = with_acme().await;
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    set_key(&context).await;
    push(&context, SIGNATURE, "ed25519-offer").await.assert_status(200);
    let order = order(&context, &acme).await;
    let uuid = acme.user("ada").await.log_in().await["uuid"].as_str().unwrap().to_owned();
    for statement in [
        "update buy_order set user_id = (select user_id from end_user)",
        "update offer set user_id = (select user_id from end_user)",
    ] {
        sqlx::query(statement).execute(context.db()).await.unwrap();
    }
    let path = format!("/admin/v1/users/{uuid}");
    context.admin(Method::PATCH, &path, json!({"deleted": true})).await.assert_status(200);
    let replayed = replay(&context, order).await;
    assert_eq!(replayed["decisions"][0]["same"], true);
    let signature = &replayed["decisions"][1];
    assert_eq!(signature["now"]["failure"], "the question was not kept");
    assert_eq!(signature["then"]["rule"], "authentic");
    let kept: i64 = sqlx::query_scalar(
        "select count(*) from offer where jsonb_exists(signature_decision, 'input')",
    )
    .fetch_one(context.db())
    .await
    .unwrap();
    assert_eq!(kept, 0);
}

#[tokio::test]
async fn a_clamped_fee_says_which_bound_held_it() {
    let (context, acme) = with_acme().await;
    push(&context, FEE, "tiered-fee").await.assert_status(200);
    set_key(&context).await;
    push(&context, SIGNATURE, "ed25519-offer").await.assert_status(200);
    let tenfold = json!({"config": {"tiers": ["0=100000"]}});
    context.admin(Method::PUT, &format!("{FEE}/config"), tenfold).await.assert_status(200);
    let order = order(&context, &acme).await;
    let shown = context.admin(Method::GET, &format!("/admin/v1/orders/{order}"), json!({})).await;
    let fee = shown.json()["policyDecisions"][0].clone();
    assert_eq!(fee["clamped"], json!(["partner"]));
    assert_eq!(fee["within"]["partner"], "0 to 5 % of the amount, the partner's cap");
    assert_eq!(replay(&context, order).await["same"], true);
}
