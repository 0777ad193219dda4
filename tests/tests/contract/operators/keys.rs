//! The ring of master keys, and its rotation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rampart_api::operate::key_rotation::rotate_keys;
use rampart_api::served_apis;
use rampart_core::platform::crypto::{MasterKey, Purpose, Secret};
use rampart_tests::outbox;
use rampart_tests::user::User;

use super::*;

/// The master key of every context, which is the earlier one here.
const OLD: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn new() -> String {
    STANDARD.encode([9; 32])
}

/// The prefix of what a key seals, in hex.
fn prefix(key: &str) -> String {
    let id = MasterKey::parse(&Secret::new(key)).unwrap().id();
    format!("524b01{id}")
}

/// Sealed values by the first bytes of each, as tables and counts.
async fn sealed_by(context: &TestContext, key: &str) -> i64 {
    sqlx::query_scalar(
        "select count(*) from (select sealed from client_secret union all \
         select sealed from verification_key union all select sealed from personal_key union all \
         select sealed from mail_outbox union all select sealed from lasting_key union all \
         select sealed from receipt_key) v (sealed) \
         where encode(substring(sealed from 1 for 7), 'hex') = $1",
    )
    .bind(prefix(key))
    .fetch_one(context.db())
    .await
    .unwrap()
}

#[tokio::test]
async fn a_rotation_seals_everything_again_and_loses_nothing() {
    // Without tenants' keys, below which there is less to seal again.
    let context = TestContext::with(|settings| settings.keys.per_tenant = Some(false)).await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let key = json!({"algorithm": "hmac-sha256", "key": STANDARD.encode([1; 32])});
    let path = "/admin/v1/partners/acme/verification-keys/main";
    context.admin(Method::PUT, path, key).await.assert_status(200);
    let path = "/admin/v1/receipt-keys";
    context.admin(Method::GET, path, Value::Null).await.assert_status(200);
    // As values were sealed before they carried the id of their key.
    let strip = "update personal_key set sealed = substring(sealed from 8)";
    sqlx::query(strip).execute(context.db()).await.unwrap();
    let (before, token) = (sealed_by(&context, OLD).await, ada.log_in().await["token"].clone());
    assert!(before >= 8, "{before}");

    let rotated = context
        .edge_with(|settings| {
            settings.keys.master = Some(Secret::new(format!("{}\n{OLD}", new())));
        })
        .await;
    let path = "/admin/v1/keys/rotation";
    let ring = rotated.admin(Method::GET, path, Value::Null).await.json();
    assert_eq!(
        (&ring["rotation"], ring["earlierKeyIds"].as_array().unwrap().len()),
        (&json!(null), 1)
    );
    rotate_keys(rotated.core()).await.unwrap();
    assert_eq!(sealed_by(&context, OLD).await, before, "nobody has asked");
    rotated.admin(Method::POST, path, Value::Null).await.assert_status(200);
    let edge = rotated.core();
    tokio::try_join!(rotate_keys(edge), rotate_keys(edge)).unwrap();
    rotate_keys(edge).await.unwrap();
    let ring = rotated.admin(Method::GET, path, Value::Null).await.json();
    assert!(ring["rotation"]["finishedAt"].is_string(), "{ring}");
    assert_eq!(ring["rotation"]["resealed"], before + 1);
    assert_eq!(
        (sealed_by(&context, OLD).await, sealed_by(&context, &new()).await),
        (0, before + 1)
    );

    // Tokens issued before count on; found by address, opened, and verified in the audit.
    let beside = acme.at(&rotated);
    let info = beside.request(Method::GET, "/api/v1/user/info");
    let token = format!("Bearer {}", token.as_str().unwrap());
    let info = info.header("user-authorization", &token).send().await;
    assert_eq!(info.assert_status(200).json()["firstName"], "Ada");
    let alone = context.edge_with(|settings| settings.keys.master = Some(Secret::new(new()))).await;
    let acme = acme.at(&alone);
    let login = json!({"emailAddress": ada.email, "password": ada.password});
    acme.post("/api/v1/user/login", login).await.assert_status(200);
    assert!(outbox::newest(&alone, &ada.email).await.text.contains("code"));
    let audit = alone.admin(Method::GET, "/admin/v1/audit/verification", Value::Null).await.json();
    assert_eq!(audit["intact"], true, "{audit}");
    assert!(alone.core().readiness().await.ready);
}

#[tokio::test]
async fn an_edge_that_lost_the_earlier_key_before_the_end_of_a_rotation_is_not_ready() {
    let context = TestContext::start().await;
    let edge = |keys: String| {
        context.edge_with(move |settings| settings.keys.master = Some(Secret::new(keys)))
    };
    let rotating = edge(format!("{}\n{OLD}", new())).await;
    // The newest secrets are of the new key.
    rotating.partner("acme").await;
    assert!(rotating.core().readiness().await.ready);
    let alone = edge(new()).await;
    let checks = alone.core().readiness().await.checks;
    let failing: Vec<_> = checks.iter().filter(|check| !check.ok).map(|check| check.name).collect();
    assert_eq!(failing, ["keys"]);
    // Nobody would find what it indexes, or verify what it chains.
    assert!(alone.core().keys.derive(Purpose::BlindIndex).is_err());
    assert!(alone.core().keys.derive(Purpose::Audit).is_err());
}

#[tokio::test]
async fn edges_that_know_both_keys_take_what_either_issues_while_the_new_one_is_brought_in() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let with = |keys: String| {
        context.edge_with(move |settings| settings.keys.master = Some(Secret::new(keys)))
    };
    let waiting = with(format!("{OLD}\n{}", new())).await;
    let restarted = with(format!("{}\n{OLD}", new())).await;
    let edges = [(&waiting, &restarted, "before"), (&restarted, &waiting, "after")];
    for (issuer, taker, slug) in edges {
        let at = |edge| User { partner: ada.partner.at(edge), ..ada.clone() };
        let (here, there) = (at(issuer), at(taker));
        let token = format!("Bearer {}", here.log_in().await["token"].as_str().unwrap());
        let info = there.partner.request(Method::GET, "/api/v1/user/info");
        info.header("user-authorization", &token).send().await.assert_status(200);

        let asked =
            json!({"currencyPair": "BTC-EUR", "paymentMethod": "creditCard", "fiatAmount": 50});
        let quote = here.post("/api/v1/buy/quote", &asked).await.assert_status(200).json();
        let confirm = json!({"quote": quote["quote"], "returnUrl": "https://shop.example/back",
            "walletAddress": rampart_tests::buyer::WALLET});
        let order = there.post("/api/v1/buy/confirm", &confirm).await.assert_status(200).json();
        let page = order["paymentUrl"].as_str().unwrap();
        let page = page.strip_prefix("https://pay.example.com").unwrap();
        here.partner.anonymous(Method::GET, page).send().await.assert_status(200);

        // Values that one seals are opened by the other: a partner's secrets, below its wrapped key.
        let made = issuer.partner(slug).await;
        taker.core().refresh().await.unwrap();
        made.at(taker).user("bob").await;
        assert!(taker.core().readiness().await.ready);
    }
}

#[tokio::test]
async fn a_live_partner_needs_a_configured_key() {
    let context = TestContext::with(|settings| settings.keys.master = None).await;
    let partner = |slug: &str, mode: &str| json!({"slug": slug, "name": slug, "mode": mode});
    let path = "/admin/v1/partners";
    let refused = context.admin(Method::POST, path, partner("live", "live")).await;
    assert!(refused.assert_status(409).text().contains("configured master key"));
    context.admin(Method::POST, path, partner("test", "test")).await.assert_status(201);
    sqlx::query("update client set mode = 'live'").execute(context.db()).await.unwrap();
    let settings = context.core().settings.clone();
    let started = rampart_core::Core::start(served_apis(), settings, context.clock().clone()).await;
    assert!(started.unwrap_err().to_string().contains("keys.master is not set"));
}

#[tokio::test]
async fn a_command_may_deliver_the_key() {
    let with = async |command: &[&str]| {
        let context = TestContext::start().await;
        let mut settings = context.core().settings.clone();
        settings.keys.master = None;
        settings.keys.master_command = command.iter().map(ToString::to_string).collect();
        rampart_core::Core::start(served_apis(), settings, context.clock().clone()).await
    };
    let core = with(&["/bin/echo", OLD]).await.unwrap();
    assert_eq!(core.keys.id(), MasterKey::parse(&Secret::new(OLD)).unwrap().id());
    for (command, named) in [
        (vec!["/bin/false"], "'/bin/false'"),
        (vec!["/nowhere/key"], "'/nowhere/key'"),
        (vec!["/bin/echo", "short"], "the output of keys.master_command"),
    ] {
        let sentence = with(&command).await.unwrap_err().to_string();
        assert!(sentence.contains(named) && !sentence.contains("short"), "{sentence}");
    }
}
