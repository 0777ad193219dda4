//! Cards, wallet-provider accounts, and the operator's say in all of them.

use http::Method;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{admin_path, changed, opened, seen};

const CARDS: &str = "/api/v2/user/accounts/cards/processor";
const VERIFY: &str = "/api/v1/user/verify/card";
const WALLET: &str = "/api/v1/user/verify/payprovider";
const INFO: &str = "/api/v1/user/info";

fn session(identifier: &str) -> Value {
    json!({"sessionIdentifier": identifier, "cardHolderName": "Ada Lovelace", "currencyCode": "EUR"})
}

#[tokio::test]
async fn a_card_is_added_once_and_verified_once() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let added = ada.post(CARDS, &session("session-1")).await.assert_status(200).json();
    let identifier = added["accountIdentifier"].as_str().unwrap();
    assert!(identifier.len() == 16 && identifier.contains("******"), "{identifier}");
    assert_eq!(added["accountHolderName"], "Ada Lovelace");
    assert_eq!(ada.post(CARDS, &session("session-1")).await.json(), added);
    assert_eq!(seen(&context, &ada).await.len(), 1);
    let body = json!({"accountIdentifier": identifier});
    let started = ada.post(VERIFY, &body).await.assert_status(200).json();
    assert_eq!(started, json!({"type": "sandbox", "status": "initiated", "data": {}}));
    ada.post(VERIFY, &body).await.assert_codes(&["ER398"]);
    let accounts = ada.get(INFO).await.json()["enabledAccounts"].clone();
    let label = format!("Card … {}", &identifier[12..]);
    assert_eq!(
        accounts,
        json!([{"type": "creditCard", "label": label, "identifier": identifier, "verified": true,
            "limitRaised": false}])
    );
}

#[tokio::test]
async fn what_is_no_card_session_is_refused() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let ada = acme.user("ada").await;
    for (change, codes) in [
        (json!({"sessionIdentifier": ""}), &["ER393"][..]),
        (json!({"sessionIdentifier": null}), &["ER393"]),
        (json!({"cardHolderName": " "}), &["ER399"]),
        (json!({"currencyCode": null}), &["ER109"]),
        (json!({"currencyCode": ""}), &["ER109"]),
        (json!({"currencyCode": "BTC"}), &["ER114"]),
        (json!({"currencyCode": 7}), &["ER114"]),
        (json!({"sessionIdentifier": "sandbox-not-instant"}), &["ER188"]),
        (json!({"sessionIdentifier": "sandbox-refused"}), &["ER401"]),
    ] {
        let mut body = session("session-1");
        for (name, value) in change.as_object().unwrap() {
            body[name] = value.clone();
        }
        ada.post(CARDS, &body).await.assert_status(400).assert_codes(codes);
    }
    ada.post(CARDS, &json!({})).await.assert_codes(&["ER109", "ER393", "ER399"]);
    acme.post(CARDS, session("session-1")).await.assert_codes(&["ER700"]);
}

#[tokio::test]
async fn a_card_that_cannot_be_verified_says_why() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let (ada, eve) = (acme.user("ada").await, acme.user("eve").await);
    let verify =
        async |identifier: Value| ada.post(VERIFY, &json!({"accountIdentifier": identifier})).await;
    for wrong in [json!(null), json!(""), json!(7)] {
        verify(wrong).await.assert_codes(&["ER380"]);
    }
    verify(json!("411111******0000")).await.assert_codes(&["ER396"]);
    let hers = eve.post(CARDS, &session("session-9")).await.json()["accountIdentifier"].clone();
    verify(hers).await.assert_codes(&["ER396"]);
    let added = ada.post(CARDS, &session("sandbox-unverifiable")).await.json();
    let identifier = added["accountIdentifier"].as_str().unwrap();
    verify(json!(identifier)).await.assert_codes(&["ER400"]);
    changed(&context, &ada, identifier, json!({"disabled": true})).await;
    verify(json!(identifier)).await.assert_codes(&["ER397"]);
    ada.post(CARDS, &session("sandbox-unverifiable")).await.assert_codes(&["ER401"]);
    let body = json!({"type": "creditCard", "identifier": "555555******4444", "name": ""});
    opened(&context, &ada, body).await;
    verify(json!("555555******4444")).await.assert_codes(&["ER399"]);
    let both = json!({"disabled": true, "verified": true});
    changed(&context, &ada, "555555******4444", both).await;
    verify(json!("555555******4444")).await.assert_codes(&["ER397", "ER398", "ER399"]);
    let body = json!({"type": "bankTransfer", "identifier": "NL91ABNA0417164300", "name": "Ada"});
    opened(&context, &ada, body).await;
    verify(json!("NL91ABNA0417164300")).await.assert_codes(&["ER380"]);
}

#[tokio::test]
async fn a_wallet_providers_token_names_an_account() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    for wrong in [json!({}), json!({"access_token": ""}), json!({"access_token": null})] {
        ada.post(WALLET, &wrong).await.assert_codes(&["ER393"]);
    }
    let refused = ada.post(WALLET, &json!({"access_token": "sandbox-refused"})).await;
    assert_eq!(refused.assert_status(200).json()["status"], "failed");
    assert!(seen(&context, &ada).await.is_empty());
    for _ in 0..2 {
        let started = ada.post(WALLET, &json!({"access_token": "A21AAF"})).await;
        assert_eq!(started.assert_status(200).json()["status"], "initiated");
    }
    let accounts = seen(&context, &ada).await;
    assert_eq!((accounts.len(), &accounts[0]["verified"]), (1, &json!(true)));
    assert_eq!(accounts[0]["type"], "walletpay");
}

#[tokio::test]
async fn of_racing_accounts_no_more_are_opened_than_a_user_may_have() {
    let context = TestContext::start().await;
    let edge = context.second_edge().await;
    let mut ada = context.partner("acme").await.user("ada").await;
    edge.core().refresh().await.unwrap();
    sqlx::query(
        "insert into payment_account (client_id, user_id, account_id, type, sealed, \
             identifier_index, last_used_at, created_at) \
         select client_id, user_id, gen_random_uuid(), 'walletpay', '', \
             sha256(n::text::bytea), now(), now() \
         from end_user, generate_series(1, 31) n",
    )
    .execute(context.db())
    .await
    .unwrap();
    let here = ada.clone();
    ada.partner = ada.partner.at(&edge);
    let tries = (0..8).map(|n| {
        let user = if n % 2 == 0 { &here } else { &ada };
        async move { user.post(CARDS, &session(&format!("session-{n}"))).await }
    });
    let answers = futures::future::join_all(tries).await;
    let opened = answers.iter().filter(|answer| answer.status() == 200).count();
    let stored: i64 = sqlx::query_scalar("select count(*) from payment_account")
        .fetch_one(context.db())
        .await
        .unwrap();
    assert_eq!((opened, stored), (1, 32));
}

#[tokio::test]
async fn an_operator_opens_changes_and_finds_accounts() {
    let context = TestContext::start().await;
    let ada = context.partner("acme").await.user("ada").await;
    let body = json!({"type": "bankTransfer", "identifier": "nl91 abna 0417 1643 00",
        "name": "A. Lovelace", "verified": true, "limitRaised": true, "limit": 7500});
    let made = opened(&context, &ada, body.clone()).await;
    assert_eq!(made["accountIdentifier"], "NL91ABNA0417164300");
    assert_eq!((&made["verified"], &made["limit"]), (&json!(true), &json!(7500)));
    let iban = json!([{"number": "NL91ABNA0417164300", "holder": "A. Lovelace", "verified": true}]);
    assert_eq!(ada.get(INFO).await.json()["enabledIbanAccounts"], iban);
    let id = made["accountId"].as_str().unwrap();
    assert_eq!(
        changed(&context, &ada, id, json!({"verified": false})).await["verified"],
        json!(false)
    );
    let unlimited = changed(&context, &ada, id, json!({"limit": null})).await;
    assert_eq!((&unlimited["limit"], &unlimited["limitRaised"]), (&Value::Null, &json!(true)));
    changed(&context, &ada, "NL91ABNA0417164300", json!({"disabled": true})).await;
    assert_eq!(ada.get(INFO).await.json()["enabledAccounts"], json!([]));

    let path = admin_path(&ada).await;
    let accounts = format!("{path}/accounts");
    context.admin(Method::POST, &accounts, body).await.assert_status(409);
    for wrong in [
        json!({"type": "bankTransfer", "identifier": "NL91ABNA0417164301", "name": "Ada"}),
        json!({"type": "bankTransfer", "identifier": "NL20INGB0001234567", "name": ""}),
        json!({"type": "bankTransfer", "identifier": "NL20INGB0001234567", "name": " "}),
        json!({"type": "creditCard", "identifier": "4111111111111111", "name": "Ada"}),
        json!({"type": "cash", "identifier": "x", "name": "Ada"}),
        json!({"type": "walletpay", "identifier": "", "name": "Ada"}),
        json!({"type": "walletpay", "identifier": "x"}),
        json!({"type": "walletpay", "identifier": "x", "name": "Ada", "limit": -1}),
        json!({"type": "walletpay", "identifier": "x", "name": "Ada", "verifyed": true}),
    ] {
        context.admin(Method::POST, &accounts, wrong).await.assert_status(422);
    }
    let nothing = format!("{accounts}/NL91ABNA0417164301");
    context.admin(Method::PATCH, &nothing, json!({})).await.assert_status(404);
    let uuid = path.rsplit('/').next().unwrap();
    let audit =
        context.admin(Method::GET, &format!("/admin/v1/audit?target={uuid}"), json!({})).await;
    assert_eq!(audit.json().as_array().unwrap().len(), 4);
    assert!(!audit.text().contains("NL91") && !audit.text().contains("Lovelace"));
}
