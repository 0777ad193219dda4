//! Savings plans: the coins of a deposit wait for the checks of any order, and then leave.

use rampart_core::platform::settings::Deposits;
use rampart_tests::wallet::Wallet;

use super::*;

/// A shop whose bank takes deposits, and the code of Ada's plan of ETH to this address.
async fn plan_to(address: &str) -> (Shop, String) {
    let bank = Deposits {
        bank_name: "Real Bank".to_owned(),
        iban: "NL02REAL0123456789".to_owned(),
        bic: "REALNL2A".to_owned(),
    };
    let context = TestContext::with(|settings| settings.deposits = Some(bank)).await;
    let shop = Shop::over(context).await;
    let body = json!({"cryptoCurrency": "ETH", "walletAddress": address});
    let path = format!("{}/dca-codes", shop.user);
    let plan = shop.decide(&path, body).await.assert_status(201).json();
    (shop, plan["code"].as_str().unwrap().to_owned())
}

/// The order of a deposit to a plan.
async fn deposit(shop: &Shop, code: &str, amount: u32) -> i64 {
    let body = json!({"amount": amount, "currencyCode": "EUR", "reference": "bank-1"});
    let path = format!("/admin/v1/dca-codes/{code}/deposits");
    let made = shop.decide(&path, body).await.assert_status(201).json();
    assert_eq!(made["status"], "in progress");
    made["id"].as_i64().unwrap()
}

#[tokio::test]
async fn the_coins_of_a_deposit_leave_in_the_transaction_that_clears_the_last_check() {
    let wallet = Wallet::new(7).address();
    let (shop, code) = plan_to(&wallet).await;
    let order = deposit(&shop, &code, 1500).await;
    assert_eq!(shop.payouts(order).await, 0);
    let proof = json!({"reason": "a transfer from it has arrived"});
    let path = format!("/admin/v1/orders/{order}/wallet-proof");
    shop.decide(&path, proof).await.assert_status(200);
    assert_eq!(shop.payouts(order).await, 1);
    let payout = shop.connector.lease(10).await.remove(0);
    assert_eq!(
        (&payout["kind"], &payout["body"]["address"]),
        (&json!("payout.send"), &json!(wallet))
    );
}

#[tokio::test]
async fn the_wallet_of_a_deposit_is_screened() {
    let wallet = Wallet::new(7).address();
    let (shop, code) = plan_to(&wallet).await;
    let screener = shop.screener().await;
    let order = deposit(&shop, &code, 100).await;
    assert_eq!(shop.payouts(order).await, 0);
    let check = screener.lease(10).await.remove(0);
    assert_eq!(
        (&check["body"]["orderId"], &check["body"]["address"]),
        (&json!(order), &json!(wallet))
    );
    let clear = json!({"decision": "clear", "reasons": []});
    screener.report(&check, "done", clear).await.assert_status(200);
    assert_eq!(shop.payouts(order).await, 1);
}

#[tokio::test]
async fn the_sweep_finds_a_deposit_that_nothing_holds_any_more() {
    let (shop, code) = plan_to(&Wallet::new(7).address()).await;
    shop.change(json!({"verification": {"amld5": "pending"}})).await;
    let order = deposit(&shop, &code, 100).await;
    let verified = "update end_user set amld5_status = 'verified'";
    sqlx::query(verified).execute(shop.context.db()).await.unwrap();
    assert_eq!(shop.payouts(order).await, 0);
    shop.context.core().command_payouts().await.unwrap();
    assert_eq!(shop.payouts(order).await, 1);
}
