//! Savings plans: the coins of a deposit wait for the checks of any order, and then leave.

use chrono::TimeDelta;
use rampart_core::platform::crypto::Secret;
use rampart_core::platform::db::MIGRATIONS;
use rampart_core::platform::schema;
use rampart_core::platform::settings::{Database, Deposits};
use rampart_tests::cluster;
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

#[tokio::test]
async fn a_deposit_of_before_stays_simulated_once_its_client_is_live() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let gate = json!({"complianceGate": "before-payout"});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", gate).await.assert_status(200);
    let session = acme.user("ada").await.log_in().await;
    let path = format!("/admin/v1/users/{}/dca-codes", session["uuid"].as_str().unwrap());
    let body = json!({"cryptoCurrency": "ETH", "walletAddress": Wallet::new(7).address()});
    let plan = context.admin(Method::POST, &path, body).await.assert_status(201).json();
    let path = format!("/admin/v1/dca-codes/{}/deposits", plan["code"].as_str().unwrap());
    let body = json!({"amount": 100, "currencyCode": "EUR", "reference": "bank-1"});
    context.admin(Method::POST, &path, body).await.assert_status(201);
    context.clock().advance(TimeDelta::seconds(60));
    context.core().settle_sandbox_orders().await.unwrap();
    let payouts = async || -> Vec<Option<String>> {
        let connectors = "select connector from command where kind = 'payout.send'";
        sqlx::query_scalar(connectors).fetch_all(context.db()).await.unwrap()
    };
    assert!(payouts().await.is_empty(), "its user is to be verified");
    // An earlier build wrote no command for it.
    let earlier = "delete from command where kind = 'payment.create'";
    let deleted = sqlx::query(earlier).execute(context.db()).await.unwrap();
    assert_eq!(deleted.rows_affected(), 1);

    Connector::of_live(&context).await;
    let live = json!({"mode": "live"});
    context.admin(Method::PATCH, "/admin/v1/partners/acme", live).await.assert_status(200);
    for cleared in [
        "update end_user set identity_status = 'verified', amld5_status = 'verified', \
             privacy_agreement_status = 'verified', residential_address_status = 'verified', \
             dac8_status = 'present'",
        "update screening set state = 'clear'",
    ] {
        sqlx::query(cleared).execute(context.db()).await.unwrap();
    }
    context.core().command_payouts().await.unwrap();
    assert_eq!(payouts().await, [Some("sandbox".to_owned())]);
}

#[tokio::test]
async fn a_migration_gives_open_deposits_of_test_clients_the_payment_of_the_sandbox() {
    let url = cluster::empty_database().await;
    let pool = cluster::pool(&url).await;
    MIGRATIONS.run_to(219, &pool).await.unwrap();
    for statement in [
        "insert into client (client_id, slug, name, mode, username, revision, created_at) \
         select gen_random_uuid(), mode, mode, mode, mode, 1, now() \
         from (values ('test'), ('live')) known (mode)",
        "insert into buy_order (client_id, order_id, quote_id, status, pair, payment_method, \
             wallet_address, wallet_type, fiat_amount, fiat_currency, crypto_amount, \
             crypto_currency, price, partner_fee, provider_fee, payment_method_fee, network_fee, \
             spread_fee, affiliate_fee, is_estimated_quote, is_dca_order, terms_digest, \
             created_at, updated_at) \
         select client_id, number, gen_random_uuid(), known.status, 'BTC-EUR', 'bankTransfer', 'bc1q', \
             'unhosted', 100, 'EUR', 1, 'BTC', 100, 0, 0, 0, 0, 0, 0, false, is_deposit, '', \
             now(), now() \
         from client cross join (values (7, 'in progress', true), (8, 'completed', true), \
             (9, 'in progress', false)) known (number, status, is_deposit) \
         where slug in ('test', 'live')",
    ] {
        sqlx::query(statement).execute(&pool).await.unwrap();
    }
    let settings = Database { url: Some(Secret::new(url)), ..Database::default() };
    schema::migrate(&settings, |_| ()).await.unwrap();
    let given = "select c.slug || ' ' || m.order_id || ' ' || m.connector || ' ' || m.state \
        from command m join client c using (client_id) where m.kind = 'payment.create'";
    let given: Vec<String> = sqlx::query_scalar(given).fetch_all(&pool).await.unwrap();
    assert_eq!(given, ["test 7 sandbox done"]);
}
