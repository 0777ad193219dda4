//! The money of a sale: it waits for its user and its account, as coins do.

use super::screening::queue;
use super::*;

/// Valid, and nobody's.
const ADDRESS: &str = "0x52908400098527886E0F7030069857D2E4169EE7";
const IBAN: &str = "NL91ABNA0417164300";

/// Ada's account, and an address of the pool.
async fn prepare(shop: &Shop) {
    let limits = json!({"user_day_limit": 1_000_000, "user_day_limit_coin_to_fiat": 1_000_000});
    shop.change(json!({ "limitOverrides": limits })).await;
    let account = json!({"type": "bankTransfer", "identifier": IBAN, "name": "Ada Lovelace",
        "verified": true});
    shop.decide(&format!("{}/accounts", shop.user), account).await.assert_status(201);
    shop.connector.fill_pool(&shop.context, "ETH", json!([{ "address": ADDRESS }])).await;
}

/// Confirms a sale to Ada's account.
async fn confirm(shop: &Shop) -> Answer {
    confirm_to(shop, json!(IBAN)).await
}

async fn confirm_to(shop: &Shop, account: Value) -> Answer {
    let asked = json!({"currencyPair": "ETH-EUR", "cryptoAmount": 0.1});
    let quote = shop.ada.post("/api/v1/sell/quote", &asked).await.assert_status(200).json();
    let confirm = json!({"quote": quote["quote"], "accountIdentifier": account});
    shop.ada.post("/api/v1/sell/confirm", &confirm).await
}

/// Ada's sale to her account, before its coins arrive; its number.
pub(super) async fn sale(shop: &Shop) -> i64 {
    prepare(shop).await;
    let sale = confirm(shop).await.assert_status(200).json();
    sale["orderId"].as_i64().unwrap()
}

/// The coins of the sale arrive.
pub(super) async fn deposit(shop: &Shop) {
    let deposit = json!({"id": "d-1", "kind": "deposit.received", "asset": "ETH", "amount": 0.1,
        "occurredAt": "2026-03-01T12:00:00Z", "providerReference": "0xdead", "address": ADDRESS,
        "transactionId": "0xdead", "confirmations": 12});
    shop.connector.event(deposit).await.assert_status(200);
}

/// Transfers that the connector gets.
pub(super) async fn transfers(shop: &Shop) -> Vec<Value> {
    shop.context.core().command_transfers().await.unwrap();
    let only = json!({"kinds": ["transfer.send"], "max": 10});
    let leased = shop.connector.call(Method::POST, "/connectors/v1/commands/lease", only).await;
    leased.assert_status(200).json().as_array().unwrap().clone()
}

/// States of the transfers that were commanded.
pub(super) async fn states(shop: &Shop) -> Vec<(String, bool)> {
    let query = "select state, sealed_body is not null from command where kind = 'transfer.send'";
    sqlx::query_as(query).fetch_all(shop.context.db()).await.unwrap()
}

/// An operator's change of Ada's account.
async fn account(shop: &Shop, body: Value) {
    let path = format!("{}/accounts/{IBAN}", shop.user);
    shop.context.admin(Method::PATCH, &path, body).await.assert_status(200);
}

#[tokio::test]
async fn nothing_is_transferred_to_an_account_that_is_disabled() {
    let shop = Shop::open().await;
    let sale = sale(&shop).await;
    account(&shop, json!({"disabled": true})).await;
    deposit(&shop).await;
    assert!(transfers(&shop).await.is_empty());
    assert!(states(&shop).await.is_empty());
    let read = shop.ada.get(&format!("/api/v1/user/sell/orders/{sale}")).await;
    let read = read.assert_status(200).json();
    assert_eq!(read["status"], "in progress");
    assert_eq!(read["orderNotCompletedReasons"][0]["code"], "015");
    account(&shop, json!({"disabled": false})).await;
    assert_eq!(states(&shop).await.len(), 1, "commanded by the change itself");
    account(&shop, json!({"disabled": true})).await;
    assert!(transfers(&shop).await.is_empty(), "nor one that was commanded before");
    account(&shop, json!({"disabled": false})).await;
    let transfer = transfers(&shop).await.remove(0);
    assert_eq!(transfer["body"]["iban"], IBAN);
}

#[tokio::test]
async fn a_sale_that_names_no_account_says_so() {
    let shop = Shop::open().await;
    prepare(&shop).await;
    let sale = confirm_to(&shop, Value::Null).await.assert_status(200).json();
    let path = format!("/api/v1/user/sell/orders/{}", sale["orderId"]);
    let reasons = shop.ada.get(&path).await.json()["orderNotCompletedReasons"].take();
    assert_eq!((&reasons[0]["code"], &reasons[0]["url"]), (&json!("017"), &Value::Null));
    assert_eq!(reasons[0]["supportActionRequired"], true);
}

#[tokio::test]
async fn a_users_sale_without_an_account_is_paid_out_by_hand() {
    let shop = Shop::open().await;
    prepare(&shop).await;
    let sale = confirm_to(&shop, Value::Null).await.assert_status(200).json();
    let id = &sale["orderId"];
    deposit(&shop).await;
    assert!(transfers(&shop).await.is_empty());
    assert!(states(&shop).await.is_empty(), "no connector knows whom it would pay");
    assert_eq!(queue(&shop).await, [json!([id.to_string(), ["held"]])]);
    let read = shop.ada.get(&format!("/api/v1/user/sell/orders/{id}")).await;
    let read = read.assert_status(200).json();
    assert_eq!(read["status"], "in progress");
    assert_eq!(read["orderNotCompletedReasons"][0]["code"], "017");
    let late = "update sell_order set updated_at = now() - interval '2 hours'";
    sqlx::query(late).execute(shop.context.db()).await.unwrap();
    shop.context.core().measure_money().await.unwrap();
    let ages = &shop.context.core().metrics.order_age;
    assert!(ages.with_label_values(&["live", "sell", "in progress"]).get() >= 7_200);
    for kind in ["transfer-sent", "transfer-completed"] {
        let body = json!({"partner": "acme", "kind": kind, "amount": read["price"]["amount"],
            "currency": "EUR", "providerReference": "by-hand", "orderId": id,
            "reason": "by hand"});
        shop.decide("/admin/v1/payments", body).await.assert_status(201);
        assert_eq!(queue(&shop).await, [Value::Null; 0], "{kind}");
    }
    let read = shop.ada.get(&format!("/api/v1/user/sell/orders/{id}")).await;
    assert_eq!(read.assert_status(200).json()["status"], "completed");
}

#[tokio::test]
async fn the_page_of_a_sales_account_answers() {
    let shop = Shop::open().await;
    let forget = sqlx::query("update end_user set region = null");
    forget.execute(shop.context.db()).await.unwrap();
    let sale = sale(&shop).await;
    deposit(&shop).await;
    let page = async || {
        let read = shop.ada.get(&format!("/api/v1/user/sell/orders/{sale}")).await;
        let reasons = read.assert_status(200).json()["orderNotCompletedReasons"].take();
        assert_eq!(reasons[0]["code"], "015", "{reasons}");
        path(&reasons[0])
    };
    account(&shop, json!({"disabled": true})).await;
    let shown = visit(&shop.partner, &page().await).await;
    let text = shown.assert_status(200).text();
    assert!(text.contains("proof that the account which is paid is yours"), "{text}");
    send(&shop.partner, &page().await, &[]).await.assert_status(200);
    account(&shop, json!({"disabled": false, "verified": false})).await;
    let shown = visit(&shop.partner, &page().await).await;
    let text = shown.assert_status(200).text();
    assert!(text.contains("see that the account which is paid is yours"), "{text}");
    assert!(text.contains("name=\"proof\""), "{text}");
    let refused = send(&shop.partner, &page().await, &[]).await;
    assert!(refused.assert_status(400).text().contains("href=\"#field-proof\""));
}

#[tokio::test]
async fn a_sale_waits_for_its_user() {
    let shop = Shop::open().await;
    sale(&shop).await;
    shop.change(json!({"disabled": true})).await;
    deposit(&shop).await;
    assert!(transfers(&shop).await.is_empty());
    let pending = json!({"verification": {"identity": "pending"}});
    shop.change(pending).await;
    shop.change(json!({"disabled": false})).await;
    assert!(transfers(&shop).await.is_empty(), "who the user is is not known");
    assert!(states(&shop).await.is_empty());
    shop.change(json!({"verification": {"identity": "verified"}})).await;
    assert_eq!(states(&shop).await.len(), 1);
    shop.change(json!({"disabled": true})).await;
    assert!(transfers(&shop).await.is_empty(), "it was commanded before");
    shop.change(json!({"disabled": false})).await;
    assert_eq!(transfers(&shop).await.len(), 1);
}

#[tokio::test]
async fn nothing_is_transferred_to_a_user_who_is_erased() {
    let shop = Shop::open().await;
    sale(&shop).await;
    deposit(&shop).await;
    assert_eq!(states(&shop).await, [("open".to_owned(), true)]);
    shop.change(json!({"deleted": true})).await;
    assert_eq!(states(&shop).await, [("rejected".to_owned(), false)], "with name and IBAN");
    assert!(transfers(&shop).await.is_empty());
    assert_eq!(states(&shop).await.len(), 1);
}

#[tokio::test]
async fn a_transfer_that_is_tried_again_ends_with_its_user() {
    let shop = Shop::open().await;
    sale(&shop).await;
    deposit(&shop).await;
    let transfer = transfers(&shop).await.remove(0);
    shop.change(json!({"deleted": true})).await;
    assert_eq!(states(&shop).await, [("open".to_owned(), true)], "it may have left");
    let told = shop.connector.report(&transfer, "retry", Value::Null).await;
    assert_eq!(told.assert_status(200).json()["state"], "rejected");
    assert_eq!(states(&shop).await, [("rejected".to_owned(), false)]);
}

#[tokio::test]
async fn a_sale_whose_user_must_be_checked_before_is_refused_with_the_reasons() {
    let shop = Shop::open().await;
    prepare(&shop).await;
    shop.change(json!({"verification": {"identity": "pending", "residentialAddress": "missing",
        "privacyAgreement": "pending"}}))
        .await;
    let gates = async |gates: Value| {
        let path = "/admin/v1/partners/acme";
        shop.context.admin(Method::PATCH, path, gates).await.assert_status(200);
    };
    gates(json!({"complianceGate": "before-payment"})).await;
    let refused = confirm(&shop).await;
    refused.assert_status(400).assert_codes(&["ER011"]);
    assert!(refused.text().contains("The user's identity is not verified."), "{}", refused.text());
    // Nobody asks the user of a sale for these.
    for other in ["registration is not completed", "residential address"] {
        assert!(!refused.text().contains(other), "{}", refused.text());
    }
    let made = "select count(*) from sell_order";
    let made: i64 = sqlx::query_scalar(made).fetch_one(shop.context.db()).await.unwrap();
    assert_eq!(made, 0);
    shop.change(json!({"verification": {"identity": "verified"}})).await;
    confirm(&shop).await.assert_status(200);
}
