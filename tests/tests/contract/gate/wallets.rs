//! Proofs that an unhosted wallet is its user's.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use rampart_tests::keys::ed25519;
use rampart_tests::wallet::Wallet;

use super::*;
use crate::policies::{SIGNATURE, push, set_key};

/// The path, the nonce and the message of the page on which an order's wallet is proven.
async fn challenge(shop: &Shop, order: i64) -> (String, String, String) {
    let reason = shop.reasons(order).await.remove(0);
    assert_eq!(reason["code"], "021");
    let path = path(&reason);
    let page = visit(&shop.partner, &path).await;
    page.assert_status(200);
    // The end of the message, which the script shows in the reader's zone.
    let text = page.text();
    assert!(text.contains("<time datetime=") && text.contains("enhance(document);"), "{text}");
    let nonce = between(&page, "name=\"nonce\" value=\"", "\"").to_owned();
    let message = between(&page, "<code>", "</code>").to_owned();
    assert!(text.contains(&format!("data-copy=\"{message}\"")), "{text}");
    (path, nonce, message)
}

async fn proof(shop: &Shop, order: i64) -> Option<String> {
    let kind = "select kind from wallet_proof where order_id = $1";
    sqlx::query_scalar(kind).bind(order).fetch_optional(shop.context.db()).await.unwrap()
}

#[tokio::test]
async fn a_signed_message_frees_the_coins_in_its_transaction() {
    let (shop, wallet) = (Shop::open().await, Wallet::new(7));
    let order = shop.paid(1500, &wallet.address()).await;
    assert_eq!(shop.payouts(order).await, 0);
    let (path, nonce, message) = challenge(&shop, order).await;
    assert!(message.contains(&order.to_string()) && message.contains(&wallet.address()));
    let sign = |wallet: &Wallet| wallet.sign(&message);
    for (nonce, signature) in [
        (&*nonce, "0x00".to_owned()),
        (&*nonce, sign(&Wallet::new(8))),
        (&*nonce, wallet.sign("another message")),
        ("another", sign(&wallet)),
    ] {
        let form = [("nonce", nonce), ("signature", &*signature)];
        send(&shop.partner, &path, &form).await.assert_status(400);
        assert_eq!(shop.payouts(order).await, 0);
    }
    let genuine = [("nonce", &*nonce), ("signature", &*sign(&wallet))];
    send(&shop.partner, &path, &genuine).await.assert_status(200);
    assert_eq!(
        (shop.payouts(order).await, proof(&shop, order).await.unwrap()),
        (1, "signature".to_owned())
    );
    assert!(shop.reasons(order).await.is_empty());
    send(&shop.partner, &path, &genuine).await.assert_status(200);
    assert_eq!(shop.payouts(order).await, 1);
    assert_eq!(shop.connector.lease(10).await[0]["body"]["address"], wallet.address());
}

#[tokio::test]
async fn a_message_that_has_expired_is_deleted_and_another_one_is_shown() {
    let (shop, wallet) = (Shop::open().await, Wallet::new(7));
    let order = shop.paid(1500, &wallet.address()).await;
    let (_, nonce, _) = challenge(&shop, order).await;
    let left = async |advance: TimeDelta| {
        shop.context.clock().advance(advance);
        shop.context.core().delete_expired_wallet_challenges().await.unwrap();
        let count = sqlx::query_scalar::<_, i64>("select count(*) from wallet_challenge");
        count.fetch_one(shop.context.db()).await.unwrap()
    };
    assert_eq!(left(TimeDelta::minutes(14)).await, 1);
    assert_eq!(left(TimeDelta::minutes(2)).await, 0);
    assert_ne!(challenge(&shop, order).await.1, nonce);
}

#[tokio::test]
async fn a_message_is_good_for_its_order_and_time_alone() {
    let (shop, wallet) = (Shop::open().await, Wallet::new(7));
    let order = shop.paid(1500, &wallet.address()).await;
    let other = shop.paid(1500, &wallet.address()).await;
    let (path, nonce, message) = challenge(&shop, order).await;
    let (other_path, ..) = challenge(&shop, other).await;
    let signature = wallet.sign(&message);
    let form = [("nonce", &*nonce), ("signature", &*signature)];
    send(&shop.partner, &other_path, &form).await.assert_status(400);
    let (_, same, _) = challenge(&shop, order).await;
    assert_eq!(same, nonce, "a page that is loaded again shows the same message");
    shop.context.clock().advance(TimeDelta::seconds(901));
    send(&shop.partner, &path, &form).await.assert_status(400);
    assert_eq!(shop.payouts(order).await + shop.payouts(other).await, 0);
    let (_, nonce, message) = challenge(&shop, order).await;
    let signature = wallet.sign(&message);
    let form = [("nonce", &*nonce), ("signature", &*signature)];
    send(&shop.partner, &path, &form).await.assert_status(200);
    assert_eq!((shop.payouts(order).await, shop.payouts(other).await), (1, 0));
}

#[tokio::test]
async fn the_partner_asserts_under_its_signature() {
    let (shop, wallet) = (Shop::open().await, Wallet::new(7).address());
    let order = shop.paid(1500, &wallet).await;
    let path = format!("/api/v2/buy/orders/{order}/wallet-proof");
    let body = |reason: &str, signature: &str| {
        json!({"orderId": order, "walletAddress": wallet, "reason": reason,
            "signature": signature})
    };
    let canonical = format!("orderId={order}&reason=seen&walletAddress={wallet}");
    let genuine = shop.partner.sign(&canonical);
    let refused = async |body: Value, code: &str| {
        shop.ada.post(&path, &body).await.assert_codes(&[code]);
        assert_eq!(shop.payouts(order).await, 0);
    };
    refused(body("seen", &"0".repeat(64)), "ER336").await;
    refused(body("another reason", &genuine), "ER336").await;
    refused(body("seen", ""), "ER339").await;
    let mut other = body("seen", &genuine);
    other["walletAddress"] = json!(Wallet::new(8).address());
    refused(other, "ER014").await;
    let mut number = body("seen", &genuine);
    number["signature"] = json!(7);
    refused(number, "ER338").await;
    let nowhere = shop.ada.post("/api/v2/buy/orders/%00/wallet-proof", &json!({})).await;
    nowhere.assert_codes(&["ER014", "ER034", "ER048", "ER339"]);
    let recorded = shop.ada.post(&path, &body("seen", &genuine)).await.assert_status(200).json();
    assert_eq!(recorded, json!({"orderId": order, "recorded": true}));
    assert_eq!(
        (shop.payouts(order).await, proof(&shop, order).await.unwrap()),
        (1, "partner".to_owned())
    );
    let again = shop.ada.post(&path, &body("seen", &genuine)).await.assert_status(200).json();
    assert_eq!(again["recorded"], false);
    assert_eq!(shop.payouts(order).await, 1);
}

#[tokio::test]
async fn a_signature_that_a_policy_accepts_once_asserts_once() {
    let (shop, wallet) = (Shop::open().await, Wallet::new(7).address());
    let (first, second) = (shop.paid(1500, &wallet).await, shop.paid(1500, &wallet).await);
    set_key(&shop.context).await;
    push(&shop.context, SIGNATURE, "ed25519-offer").await.assert_status(200);
    let (pair, _) = ed25519(7);
    let now = shop.context.clock().unix_seconds();
    let assert_wallet = async |order: i64, nonce: &str| {
        let text = format!("orderId={order}&reason=seen&walletAddress={wallet}&t={now}&n={nonce}");
        let signature = STANDARD.encode(pair.sign(text.as_bytes()));
        let body = json!({"orderId": order, "walletAddress": wallet, "reason": "seen",
            "signature": format!("t={now},n={nonce},s={signature}")});
        shop.ada.post(&format!("/api/v2/buy/orders/{order}/wallet-proof"), &body).await
    };
    let recorded = async |order: i64, nonce: &str| {
        assert_wallet(order, nonce).await.assert_status(200).json()["recorded"].clone()
    };
    assert_eq!(recorded(first, "nonce-0001").await, true);
    assert_eq!(recorded(first, "nonce-0001").await, false);
    assert_wallet(second, "nonce-0001").await.assert_codes(&["ER336"]);
    assert_eq!((shop.payouts(first).await, shop.payouts(second).await), (1, 0));
    assert_eq!(recorded(second, "nonce-0002").await, true);
    assert_eq!(shop.payouts(second).await, 1);
}

#[tokio::test]
async fn a_policy_is_shown_no_signature_that_is_no_text() {
    let (shop, wallet) = (Shop::open().await, Wallet::new(7).address());
    let order = shop.paid(1500, &wallet).await;
    set_key(&shop.context).await;
    push(&shop.context, SIGNATURE, "ed25519-offer").await.assert_status(200);
    let path = format!("/api/v2/buy/orders/{order}/wallet-proof");
    for (signature, code) in [(json!(7), "ER338"), (Value::Null, "ER339"), (json!(""), "ER339")] {
        let body = json!({"orderId": order, "walletAddress": wallet, "reason": "seen",
            "signature": signature});
        shop.ada.post(&path, &body).await.assert_codes(&[code]);
    }
    assert_eq!(shop.payouts(order).await, 0);
}

#[tokio::test]
async fn an_assertion_may_spell_the_wallet_otherwise() {
    let (shop, wallet) = (Shop::open().await, Wallet::new(7).address());
    let order = shop.paid(1500, &wallet).await;
    let capitals = format!("0x{}", wallet.trim_start_matches("0x").to_uppercase());
    assert_ne!(capitals, wallet);
    let canonical = format!("orderId={order}&reason=seen&walletAddress={capitals}");
    let body = json!({"orderId": order, "walletAddress": capitals, "reason": "seen",
        "signature": shop.partner.sign(&canonical)});
    let path = format!("/api/v2/buy/orders/{order}/wallet-proof");
    let recorded = shop.ada.post(&path, &body).await.assert_status(200).json();
    assert_eq!((&recorded["recorded"], shop.payouts(order).await), (&json!(true), 1));
}

#[tokio::test]
async fn a_reason_is_signed_as_it_is_sent() {
    let (shop, wallet) = (Shop::open().await, Wallet::new(7).address());
    let order = shop.paid(1500, &wallet).await;
    let encoded = "%20se%CC%81en%20";
    let canonical = format!("orderId={order}&reason={encoded}&walletAddress={wallet}");
    let body = json!({"orderId": order, "walletAddress": wallet, "reason": " se\u{301}en ",
        "signature": shop.partner.sign(&canonical)});
    let path = format!("/api/v2/buy/orders/{order}/wallet-proof");
    let recorded = shop.ada.post(&path, &body).await.assert_status(200).json();
    assert_eq!((&recorded["recorded"], shop.payouts(order).await), (&json!(true), 1));
}

#[tokio::test]
async fn an_operator_accepts_other_proof_with_a_reason() {
    let (shop, wallet) = (Shop::open().await, Wallet::new(7).address());
    let order = shop.paid(1500, &wallet).await;
    let path = format!("/admin/v1/orders/{order}/wallet-proof");
    shop.decide(&path, json!({})).await.assert_status(422);
    shop.decide(&path, json!({"reason": " "})).await.assert_status(422);
    assert_eq!(shop.payouts(order).await, 0);
    let reason = json!({"reason": "a transfer from it has arrived"});
    shop.decide(&path, reason.clone()).await.assert_status(200);
    assert_eq!(
        (shop.payouts(order).await, proof(&shop, order).await.unwrap()),
        (1, "operator".to_owned())
    );
    shop.decide(&path, reason).await.assert_status(409);
    let audited: Value =
        sqlx::query_scalar("select detail from audit where action = 'order.wallet-proof'")
            .fetch_one(shop.context.db())
            .await
            .unwrap();
    assert_eq!(audited["reason"], "a transfer from it has arrived");
}
