//! Erasure: what is destroyed, what law wants kept, who opens it, and for how long.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::buyer::WALLET;
use rampart_tests::cluster::{changes, lose_first_change};
use rampart_tests::connector::Connector;
use rampart_tests::dump;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::test_context::TestContext;
use rampart_tests::user::{image, registration};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::Visit;
use super::documents::registered;

const IBAN: &str = "NL58ABNA0000000001";
const UNUSED_IBAN: &str = "NL31ABNA0000000002";

pub(super) async fn execute(context: &TestContext, statement: &str) -> u64 {
    let statement = AssertSqlSafe(statement.to_owned());
    sqlx::query(statement).execute(context.db()).await.unwrap().rows_affected()
}

/// A user with a document, two accounts, and an order from one of them; its id.
pub(super) async fn customer(context: &TestContext) -> String {
    let acme = context.partner("acme").await;
    let mut body = registration("erasedada");
    body["firstName"] = json!("Erasedfirst");
    body["lastName"] = json!("Erasedlast");
    body["identityDocument"] = json!([{"documentType": "passport", "documentSide": "front",
        "data": STANDARD.encode(image(700))}]);
    let user = registered(&acme, body).await;
    let path = format!("/admin/v1/users/{user}/accounts");
    let mut accounts = Vec::new();
    for iban in [IBAN, UNUSED_IBAN] {
        let account = json!({"type": "bankTransfer", "identifier": iban,
            "name": "Erasedfirst Erasedlast", "verified": true});
        let opened = context.admin(Method::POST, &path, account).await;
        accounts.push(opened.assert_status(201).json()["accountId"].as_str().unwrap().to_owned());
    }
    OrderFixture::order(context, &acme, None, None).await;
    let order = format!("update buy_order set user_id = '{user}', account_id = '{}'", accounts[0]);
    execute(context, &order).await;
    user
}

pub(super) async fn erase(context: &TestContext, user: &str) {
    let path = format!("/admin/v1/users/{user}");
    context.admin(Method::PATCH, &path, json!({"deleted": true})).await.assert_status(200);
}

pub(super) async fn open(context: &TestContext, token: &str, user: &str, document: &str) -> Answer {
    let path = format!("/admin/v1/users/{user}/retained-record{document}");
    let body = Bytes::from_static(br#"{"reason": "a request of the police"}"#);
    context.admin_as(Some(token), Method::POST, &path, body).await
}

#[tokio::test]
async fn what_law_wants_kept_opens_for_compliance_alone() {
    let context = TestContext::start().await;
    let user = customer(&context).await;
    let compliance = context.operator("compliance", &["compliance"]).await;
    open(&context, &compliance, &user, "").await.assert_status(404);
    erase(&context, &user).await;
    context.core().remove_documents().await.unwrap();

    let dump = dump::of(context.db()).await;
    for text in ["Erasedfirst", "Erasedlast", "erasedada", "Keizersgracht", IBAN, UNUSED_IBAN] {
        assert_eq!(dump::found(&dump, text), None, "{text} is in clear");
    }
    let path = format!("/admin/v1/users/{user}");
    let shown = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
    assert_eq!((&shown["deleted"], &shown["personal"]["lastName"]), (&json!(true), &Value::Null));

    for role in ["support", "platform", "owner"] {
        let token = context.operator(role, &[role]).await;
        open(&context, &token, &user, "").await.assert_status(403);
    }
    context
        .admin(
            Method::POST,
            &format!("/admin/v1/users/{user}/retained-record"),
            json!({"reason": "why"}),
        )
        .await
        .assert_status(403);
    let path = format!("/admin/v1/users/{user}/retained-record");
    let no_reason = Bytes::from_static(br#"{"reason": " "}"#);
    context.admin_as(Some(&compliance), Method::POST, &path, no_reason).await.assert_status(422);

    let kept = open(&context, &compliance, &user, "").await.assert_status(200).json();
    assert_eq!(kept["personal"]["lastName"], "Erasedlast");
    assert_eq!(kept["personal"]["dateOfBirth"], "1990-12-10");
    for contact in ["email", "phoneNumber", "shareToken"] {
        assert_eq!(kept["personal"][contact], Value::Null, "{contact} is kept");
    }
    assert_eq!(kept["accounts"].as_array().unwrap().len(), 1, "the other one was not traded with");
    assert_eq!(kept["accounts"][0]["identifier"], IBAN);
    let document = &kept["documents"][0];
    assert_eq!((&document["type"], &document["side"]), (&json!("passport"), &json!("front")));
    let id = format!("/documents/{}", document["id"].as_str().unwrap());
    let seen = open(&context, &compliance, &user, &id).await;
    assert_eq!(seen.assert_status(200).header("content-type"), Some("image/png"));
    assert!(seen.bytes() == image(700));
    open(&context, &compliance, &user, "/documents/0199a000-0000-7000-8000-000000000006")
        .await
        .assert_status(404);

    let path = format!("/admin/v1/audit?target={user}");
    let audit = context.admin(Method::GET, &path, json!({})).await.json();
    let openings: Vec<_> = audit
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["action"].as_str().unwrap().starts_with("user.retained"))
        .collect();
    assert_eq!(openings.len(), 3, "{audit}");
    assert_eq!(openings[2]["actor"], "compliance");
    assert_eq!(openings[1]["detail"]["id"], document["id"], "the image that was shown");
    assert_eq!(openings[2]["detail"], json!({"reason": "a request of the police"}));
}

#[tokio::test]
async fn what_providers_reported_of_the_payer_goes_and_the_payment_stays() {
    let context = TestContext::start().await;
    let user = customer(&context).await;
    let connector = Connector::of_live(&context).await;
    let order: i64 =
        sqlx::query_scalar("select order_id from buy_order").fetch_one(context.db()).await.unwrap();
    let paid = json!({"id": "paid", "kind": "payment.received", "partner": "acme", "orderId": order,
        "occurredAt": "2026-03-01T12:00:00Z", "providerReference": "pay-1", "amount": 100,
        "currency": "EUR", "reason": format!("from Erasedfirst Erasedlast, {IBAN}")});
    connector.event(paid.clone()).await.assert_status(200);
    let stranger = json!({"id": "other", "kind": "payment.received", "amount": 7, "currency": "EUR",
        "occurredAt": "2026-03-01T12:00:00Z", "providerReference": "pay-2"});
    connector.event(stranger).await.assert_status(200);
    let reports = "select from payment_report";
    let events = "select from connector_event where sealed_report is not null";
    assert_eq!((execute(&context, reports).await, execute(&context, events).await), (2, 2));
    erase(&context, &user).await;
    assert_eq!((execute(&context, reports).await, execute(&context, events).await), (1, 1));
    assert_eq!(execute(&context, "select from payment").await, 2);
    assert_eq!(connector.event(paid).await.assert_status(200).json(), json!({"duplicate": true}));
}

#[tokio::test]
async fn what_is_told_of_an_erased_payer_is_not_kept() {
    let context = TestContext::start().await;
    let user = customer(&context).await;
    let connector = Connector::of_live(&context).await;
    let order: i64 =
        sqlx::query_scalar("select order_id from buy_order").fetch_one(context.db()).await.unwrap();
    let told = |id: &str, amount: u32| {
        json!({"id": id, "kind": "payment.received", "partner": "acme", "amount": amount,
            "occurredAt": "2026-03-01T12:00:00Z", "providerReference": id, "currency": "EUR",
            "reason": format!("from Erasedfirst Erasedlast, {IBAN}")})
    };
    connector.event(told("unmatched", 100)).await.assert_status(200);
    erase(&context, &user).await;
    let kept = async || {
        let events = "select from connector_event where sealed_report is not null";
        let reports = execute(&context, "select from payment_report").await;
        (reports, execute(&context, events).await)
    };
    assert_eq!(kept().await, (1, 1), "nobody knows whose it is");
    let payment: String = sqlx::query_scalar(
        "select payment_id::text from payment where provider_reference = 'unmatched'",
    )
    .fetch_one(context.db())
    .await
    .unwrap();
    let path = format!("/admin/v1/payments/{payment}/match");
    let to = json!({ "orderId": order });
    context.admin(Method::POST, &path, to).await.assert_status(200);
    assert_eq!(kept().await, (0, 0));
    let mut late = told("late", 7);
    late["orderId"] = json!(order);
    connector.event(late).await.assert_status(200);
    assert_eq!(kept().await, (0, 0));
    assert_eq!(execute(&context, "select from payment").await, 2);
}

#[tokio::test]
async fn why_a_payment_was_denied_goes_with_the_user() {
    let context = TestContext::start().await;
    let user = customer(&context).await;
    let connector = Connector::of_live(&context).await;
    let order: i64 =
        sqlx::query_scalar("select order_id from buy_order").fetch_one(context.db()).await.unwrap();
    let denied = json!({"id": "denied", "kind": "payment.failed", "partner": "acme",
        "orderId": order, "occurredAt": "2026-03-01T12:00:00Z",
        "reason": "the card of Erasedfirst Erasedlast is blocked"});
    connector.event(denied.clone()).await.assert_status(200);
    let kept = "select from connector_event where sealed_report is not null";
    assert_eq!(execute(&context, kept).await, 0, "no payment leads there");
    let is_told =
        async || dump::found(&dump::of(context.db()).await, "Erasedfirst Erasedlast").is_some();
    assert!(is_told().await, "support sees it");
    erase(&context, &user).await;
    assert!(!is_told().await);
    assert_eq!(connector.event(denied).await.assert_status(200).json(), json!({"duplicate": true}));
}

#[tokio::test]
async fn of_an_identity_check_the_outcome_alone_is_kept() {
    let context = TestContext::start().await;
    let connector = Connector::of_live(&context).await;
    let checked = json!({"id": "check", "kind": "identity.completed", "outcome": "verified",
        "occurredAt": "2026-03-01T12:00:00Z", "reason": "Erasedfirst Erasedlast, 1990-12-10"});
    connector.event(checked.clone()).await.assert_status(200);
    assert_eq!(execute(&context, "select from connector_event").await, 1);
    let kept = "select from connector_event where sealed_report is not null";
    assert_eq!(execute(&context, kept).await, 0);
    let again = connector.event(checked).await;
    assert_eq!(again.assert_status(200).json(), json!({"duplicate": true}));
}

#[tokio::test]
async fn a_saved_answer_of_a_registration_goes_with_the_user() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let body = registration("erasedada");
    let register = async || {
        let request = acme.request(Method::POST, "/api/v2/user").header("idempotency-key", "k");
        request.json(&body).send().await
    };
    register().await.assert_status(200);
    assert_eq!(register().await.header("idempotency-replayed"), Some("true"));
    let user: String = sqlx::query_scalar("select user_id::text from end_user")
        .fetch_one(context.db())
        .await
        .unwrap();
    erase(&context, &user).await;
    assert_eq!(execute(&context, "select from idempotency_key").await, 0);
}

#[tokio::test]
async fn a_savings_plan_of_an_erased_user_is_neither_listed_nor_named() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let user = acme.user("ada").await.log_in().await["uuid"].as_str().unwrap().to_owned();
    let plan = json!({"cryptoCurrency": "BTC", "walletAddress": WALLET, "name": "Ada's"});
    let path = format!("/admin/v1/users/{user}/dca-codes");
    let opened = context.admin(Method::POST, &path, plan.clone()).await.assert_status(201).json();
    erase(&context, &user).await;
    context.admin(Method::POST, &path, plan).await.assert_status(404);

    let bearer = format!("Bearer {}", acme.token().await);
    let request =
        |method, path: &str| acme.anonymous(method, path).header("authorization", &bearer);
    let plans = "/api/v2/user/dca-codes";
    let listed = request(Method::GET, plans).send().await;
    assert_eq!(listed.assert_status(200).json(), json!([]));
    let path = format!("{plans}/{}", opened["code"].as_str().unwrap());
    let named = request(Method::PATCH, &path).json(&json!({"name": "Ada's"})).send().await;
    named.assert_status(404).assert_codes(&["ER999"]);
    assert_eq!(execute(&context, "select from dca_plan where name is not null").await, 0);
}

#[tokio::test]
async fn what_came_with_a_checkout_for_an_erased_user_goes_with_the_user() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    let user = ada.log_in().await["uuid"].as_str().unwrap().to_owned();
    for identifier in [&ada.identifier, &"s".repeat(40)] {
        let body = json!({"baseCurrency": "BTC", "quoteCurrency": "EUR",
            "paymentMethod": "creditCard", "quoteCurrencyAmount": 250, "identifier": identifier,
            "returnUrl": "https://shop.example/back", "kycShareToken": "share-token-1"});
        acme.post("/api/v2/buy/checkout", body).await.assert_status(200);
    }
    let kept = "select from checkout \
        where sealed_share_token is not null and identifier_digest is not null";
    assert_eq!(execute(&context, kept).await, 2);
    erase(&context, &user).await;
    assert_eq!(execute(&context, kept).await, 1, "the other one is somebody else's");
}

#[tokio::test]
async fn a_backup_without_the_keys_does_not_bring_an_erased_user_back() {
    let context = TestContext::start().await;
    let user = customer(&context).await;
    // As a dump of every table but those of keys would hold it.
    execute(&context, "create table backup as table end_user").await;
    erase(&context, &user).await;
    let personal = "update end_user u set personal = b.personal, sealed_key = b.sealed_key, \
        deleted_at = null from backup b where b.user_id = u.user_id";
    assert_eq!(execute(&context, personal).await, 1);
    let path = format!("/admin/v1/users/{user}");
    let shown = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
    assert_eq!((&shown["deleted"], &shown["personal"]["email"]), (&json!(false), &Value::Null));
    let keys: i64 = sqlx::query_scalar("select count(*) from personal_key")
        .fetch_one(context.db())
        .await
        .unwrap();
    assert_eq!(keys, 0);
}

#[tokio::test]
async fn after_the_retention_nothing_is_left_and_copies_are_unreadable() {
    let context = TestContext::start().await;
    let user = customer(&context).await;
    let compliance = context.operator("compliance", &["compliance"]).await;
    erase(&context, &user).await;
    context.core().destroy_retained_records().await.unwrap();
    let kept = open(&context, &compliance, &user, "").await.assert_status(200).json();
    let folder = context.core().settings.documents.folder.clone().unwrap();
    let file = folder.join(kept["documents"][0]["id"].as_str().unwrap());
    assert!(file.exists(), "the image is kept");

    execute(&context, "create table backup as table retained_record").await;
    execute(&context, "update retained_record set last_order_at = now() - interval '5 years'")
        .await;
    open(&context, &compliance, &user, "").await.assert_status(404);
    let edge = context.core();
    tokio::try_join!(edge.destroy_retained_records(), edge.destroy_retained_records()).unwrap();
    context.core().remove_documents().await.unwrap();
    assert!(!file.exists(), "the image is gone");
    for table in ["retained_record", "retention_key"] {
        assert_eq!(execute(&context, &format!("select from {table}")).await, 0, "{table}");
    }
    // A copy that somebody kept has no key any more, and none of another record opens it.
    execute(&context, "insert into retained_record table backup").await;
    open(&context, &compliance, &user, "").await.assert_status(404);
    let other = context.partner("other").await.user("bob").await.log_in().await;
    let key = format!(
        "insert into retention_key select r.client_id, r.user_id, k.sealed \
         from retained_record r, personal_key k where k.user_id = '{}'",
        other["uuid"].as_str().unwrap()
    );
    assert_eq!(execute(&context, &key).await, 1);
    open(&context, &compliance, &user, "").await.assert_status(500);
}

#[tokio::test]
async fn a_damaged_image_is_not_in_the_way_of_an_erasure() {
    for bytes in [0, 700] {
        let context = TestContext::start().await;
        let user = customer(&context).await;
        let compliance = context.operator("compliance", &["compliance"]).await;
        let path = format!("/admin/v1/users/{user}");
        let shown = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
        let folder = context.core().settings.documents.folder.clone().unwrap();
        let file = folder.join(shown["documents"][0]["id"].as_str().unwrap());
        std::fs::write(file, vec![0_u8; bytes]).unwrap();
        erase(&context, &user).await;
        let kept = open(&context, &compliance, &user, "").await.assert_status(200).json();
        assert_eq!(kept["personal"]["lastName"], "Erasedlast");
        assert_eq!(kept["documents"], json!([]), "nobody can open it");
    }
}

#[tokio::test]
async fn without_an_order_in_the_time_nothing_is_kept() {
    let context = TestContext::with(|settings| settings.privacy.retention_years = 2).await;
    let user = customer(&context).await;
    let compliance = context.operator("compliance", &["compliance"]).await;
    execute(&context, "update buy_order set created_at = now() - interval '2 years'").await;
    erase(&context, &user).await;
    open(&context, &compliance, &user, "").await.assert_status(404);
    assert_eq!(execute(&context, "select from retained_record").await, 0);
}

#[tokio::test]
async fn a_key_that_an_older_edge_stored_is_moved() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let older = "with gone as (delete from personal_key returning user_id, sealed) \
        update end_user u set sealed_key = gone.sealed from gone where gone.user_id = u.user_id";
    assert_eq!(execute(&context, older).await, 1);
    ada.get("/api/v1/user/info").await.assert_status(200);
    let edge = context.core();
    tokio::try_join!(edge.move_personal_keys(), edge.move_personal_keys()).unwrap();
    assert_eq!(execute(&context, "select from end_user where sealed_key <> ''").await, 0);
    assert_eq!(execute(&context, "select from personal_key").await, 1);
    let info = ada.get("/api/v1/user/info").await.assert_status(200).json();
    assert_eq!(info["firstName"], "Ada");
}

#[tokio::test]
async fn an_erasure_that_lost_to_a_deadlock_is_tried_again() {
    let visit = Visit::start().await;
    let page = visit.sign_in().await;
    lose_first_change(visit.context.db(), "personal_key").await;
    let done = visit.act(&page, "erase&password=password-of-ada").await;
    assert!(done.assert_status(200).text().contains("Je account is gewist."));
    assert_eq!(changes(visit.context.db()).await, 2);
}
