//! The calls that create or change something, each sent again under its key.

use http::Method;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::orders::{BTC, Shop, count};

/// Sends the request twice, which gives one answer, and then another body, which is refused.
async fn replay(shop: &Shop, path: &str, body: &Value) {
    let send = async |body: &Value| {
        let request = shop.request(Method::POST, path).header("idempotency-key", "k");
        request.json(body).send().await
    };
    let first = send(body).await;
    assert!(first.status() < 300, "{path}: {} {}", first.status(), first.text());
    assert_eq!(first.header("idempotency-replayed"), None, "{path}");
    let again = send(body).await;
    assert_eq!((again.status(), again.bytes()), (first.status(), first.bytes()), "{path}");
    assert_eq!(again.header("idempotency-replayed"), Some("true"), "{path}");
    assert_eq!(again.header("content-type"), first.header("content-type"), "{path}");
    let mut other = body.clone();
    match other.as_object_mut() {
        Some(members) => _ = members.insert("other".to_owned(), json!(true)),
        None => other = json!([other[0], other[0]]),
    }
    send(&other).await.assert_status(422).assert_codes(&["ER999"]);
}

#[tokio::test]
async fn users_and_their_accounts() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    replay(&shop, "/api/v1/user/verify/payprovider", &json!({"access_token": "A21AAF"})).await;
    assert_eq!(count(&context, "select count(*) from command").await, 1);
    let card = json!({"sessionIdentifier": "session-1", "cardHolderName": "Ada Lovelace",
        "currencyCode": "EUR"});
    let added = shop.request(Method::POST, "/api/v2/user/accounts/cards/processor").json(&card);
    let added = added.send().await.assert_status(200).json();
    let card = json!({"accountIdentifier": added["accountIdentifier"]});
    replay(&shop, "/api/v1/user/verify/card", &card).await;
    let answers = json!([{"key": "kyc-amld5-employment-status", "answer": "Employed"}]);
    replay(&shop, "/api/v1/user/verify/amld5", &answers).await;
    let invitation = json!({"identifier": format!("{:n<36}", "new"),
        "returnUrl": "https://shop.example/back"});
    replay(&shop, "/api/v1/user/register-identifier", &invitation).await;
    replay(&shop, "/api/v2/sandbox/user/events", &json!({"event": "disable"})).await;
    let told = "select count(*) from event where type = 'user.disabled'";
    assert_eq!(count(&context, told).await, 1);
}

/// Asserts that one row of the table was written by a transaction that has saved an answer.
async fn assert_saved_with(context: &TestContext, table: &str) {
    let together = format!(
        "select count(*) from {table} e join idempotency_key k on k.client_id = e.client_id \
         where k.status = 200 and k.xmin = e.xmin"
    );
    let together: i64 =
        sqlx::query_scalar(AssertSqlSafe(together)).fetch_one(context.db()).await.unwrap();
    assert_eq!(together, 1, "{table}: in a transaction of its own");
}

#[tokio::test]
async fn mails_to_set_a_new_password() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let asked = json!({"emailAddress": "ada@mail.example.com"});
    replay(&shop, "/api/v1/user/reset-password", &asked).await;
    let mails = "select count(*) from mail_outbox where kind = 'reset-password'";
    assert_eq!(count(&context, mails).await, 1);
}

#[tokio::test]
async fn orders_sales_and_events() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let quoted = json!({"currencyPair": "BTC-EUR", "cryptoAmount": "0.01"});
    let quoted = shop.request(Method::POST, "/api/v1/sell/quote").json(&quoted).send().await;
    let quoted = json!({"quote": quoted.assert_status(200).json()["quote"]});
    let sale = shop.request(Method::POST, "/api/v1/sell/confirm").json(&quoted).send().await;
    let sale = sale.assert_status(200).json()["orderId"].clone();
    replay(&shop, &format!("/api/v2/sandbox/sell/orders/{sale}/expire"), &json!({})).await;
    assert_saved_with(&context, "sell_order").await;
    let order = OrderFixture::order(&context, shop.partner(), None, None).await.id;
    replay(&shop, &format!("/api/v2/sandbox/orders/{order}/cancel"), &json!({})).await;
    assert_saved_with(&context, "buy_order").await;
    let ended = "select count(*) from event where type = 'order.cancelled'";
    assert_eq!(count(&context, ended).await, 2, "one each");
    let mine = shop.v1(&crate::orders::confirm_of(&shop.quote(&context, |_| ()))).await;
    let mine = mine.assert_status(200).json()["orderId"].clone();
    let canonical = format!("orderId={mine}&reason=seen&walletAddress={BTC}");
    let proof = json!({"orderId": mine, "walletAddress": BTC, "reason": "seen",
        "signature": shop.partner().sign(&canonical)});
    replay(&shop, &format!("/api/v2/buy/orders/{mine}/wallet-proof"), &proof).await;
    let events = shop.partner().get("/api/v2/events").await.assert_status(200).json();
    let event = events[0]["id"].as_str().unwrap();
    replay(&shop, &format!("/api/v2/events/{event}/redeliver"), &json!({})).await;
}
