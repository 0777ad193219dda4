//! The connector for Ethereum between a real edge and a real chain.

use std::time::Duration;

use http::Method;
use rampart_tests::anvil::{CUSTOMER, TREASURY, quantity};
use rampart_tests::chain_shop::{CONFIRMATIONS, ChainShop};
use rampart_tests::deadline::{SOON, until};
use rust_decimal::Decimal;
use serde_json::{Value, json};

/// Payouts under kills and reorganisations.
mod payouts;

const WALLET: &str = "0x00000000000000000000000000000000000ab001";

#[tokio::test]
async fn a_configuration_is_checked_and_a_key_has_one_process() {
    let shop = ChainShop::start().await;
    let check = shop.connector("evm", &["--check"]);
    assert!(check.ended().await.success(), "{:?}", check.err());
    assert!(check.out().iter().any(|line| line.contains("wei")), "{:?}", check.out());
    let connector = shop.connector("evm", &[]);
    until("it serves", SOON, async || {
        connector.err().iter().any(|line| line.contains("serving")).then_some(())
    })
    .await;
    let second = shop.connector("evm", &[]);
    assert!(!second.ended().await.success());
    assert!(second.err().join("\n").contains("another process has this key"), "{:?}", second.err());
    connector.kill();
    let again = shop.connector("evm", &["--check"]);
    assert!(again.ended().await.success(), "a killed process keeps no key: {:?}", again.err());
    shop.configure("lost", "key = { file = \"/nowhere\" }");
    let lost = shop.connector("lost", &["--check"]);
    assert!(!lost.ended().await.success());
    assert!(lost.err().join("\n").contains("/nowhere"), "{:?}", lost.err());
}

#[tokio::test]
async fn an_external_signer_pays() {
    let shop = ChainShop::start().await;
    let signer =
        format!("key.signer = {{ url = \"{}\", address = \"{TREASURY}\" }}", shop.anvil.url);
    shop.configure("signer", &signer);
    let connector = shop.connector("signer", &[]);
    let order = shop.order("ETH-EUR", WALLET, 100).await;
    shop.pay(1).await;
    let read = shop.complete(&connector, order).await;
    let hash = read["blockchainInfo"]["transactionId"].clone();
    let sent = shop.anvil.call("eth_getTransactionByHash", json!([hash])).await;
    assert_eq!((&sent["from"], &sent["to"]), (&json!(TREASURY), &json!(WALLET)));
}

#[tokio::test]
async fn a_stuck_payout_is_replaced_by_a_higher_fee_with_its_nonce() {
    let shop = ChainShop::start().await;
    // No block comes by itself, and the next one wants more than the first transaction gives.
    shop.anvil.call("evm_setIntervalMining", json!([0])).await;
    let connector = shop.connector("evm", &[]);
    let order = shop.order("ETH-EUR", WALLET, 1_000).await;
    shop.pay(1).await;
    let pool = async || shop.anvil.call("txpool_content", json!([])).await["pending"].clone();
    let first = until("it is sent", SOON, async || only(&pool().await)).await;
    let second = until("it is replaced", SOON, async || {
        only(&pool().await).filter(|now| now["hash"] != first["hash"])
    })
    .await;
    assert_eq!(first["nonce"], second["nonce"]);
    shop.anvil.call("evm_setIntervalMining", json!([1])).await;
    let read = shop.complete(&connector, order).await;
    let hash = read["blockchainInfo"]["transactionId"].as_str().unwrap().to_owned();
    let sent = shop.anvil.call("eth_getTransactionByHash", json!([hash])).await;
    assert_eq!((&sent["nonce"], &sent["to"]), (&first["nonce"], &json!(WALLET)));
    assert_eq!(shop.anvil.call("txpool_status", json!([])).await["pending"], "0x0");
}

#[tokio::test]
async fn the_fee_of_a_failed_transaction_is_in_the_books() {
    let shop = ChainShop::start().await;
    shop.anvil.call("evm_setIntervalMining", json!([0])).await;
    let connector = shop.connector("evm", &[]);
    let order = shop.order("ETH-EUR", WALLET, 100).await;
    shop.pay(1).await;
    let sent = until("it is sent", SOON, async || {
        only(&shop.anvil.call("txpool_content", json!([])).await["pending"])
    })
    .await;
    // The wallet becomes a contract that takes no coins, after the connector has asked.
    shop.anvil.call("anvil_setCode", json!([WALLET, "0x5f5ffd"])).await;
    shop.anvil.call("evm_setIntervalMining", json!([1])).await;
    until("the order is held", SOON * 2, async || {
        assert!(connector.status().is_none(), "{:?}", connector.err());
        (shop.read(order).await["status"] == "blocked").then_some(())
    })
    .await;
    let receipt = shop.anvil.call("eth_getTransactionReceipt", json!([sent["hash"]])).await;
    assert_eq!(receipt["status"], "0x0", "{receipt}");
    let wei = quantity(&receipt["gasUsed"]) * quantity(&receipt["effectiveGasPrice"]);
    let path = "/admin/v1/ledger/balances?currency=ETH";
    let balances = shop.edge.admin(Method::GET, path, json!({})).await.assert_status(200).json();
    let mut lines = balances.as_array().unwrap().iter();
    let fee = lines.find(|line| line["kind"] == "fee_network").unwrap()["balance"].to_string();
    let fee: Decimal = fee.parse().unwrap();
    assert_eq!(fee, Decimal::from_i128_with_scale(wei.cast_signed(), 18).normalize());
    payouts::check_books(&shop).await;
}

#[tokio::test]
async fn a_payout_that_waits_for_confirmations_holds_up_no_other() {
    let shop = ChainShop::start().await;
    shop.anvil.call("evm_setIntervalMining", json!([0])).await;
    shop.configure_slots("narrow", 1);
    let connector = shop.connector("narrow", &[]);
    let count = async |at: &str| {
        quantity(&shop.anvil.call("eth_getTransactionCount", json!([TREASURY, at])).await)
    };
    let before = count("latest").await;
    let mut orders = Vec::new();
    for _ in 0..2 {
        orders.push(shop.order("ETH-EUR", WALLET, 1_000).await);
    }
    shop.pay(orders.len()).await;
    until("the first is sent", SOON, async || {
        assert!(connector.status().is_none(), "{:?}", connector.err());
        (count("pending").await > before).then_some(())
    })
    .await;
    until("the first is in a block", SOON, async || {
        if count("latest").await > before {
            return Some(());
        }
        shop.anvil.call("evm_mine", json!([])).await;
        None
    })
    .await;
    // It has one confirmation, and gets no other one.
    until("the second is sent", SOON, async || (count("pending").await > before + 1).then_some(()))
        .await;
    shop.anvil.call("evm_setIntervalMining", json!([1])).await;
    for order in orders {
        shop.complete(&connector, order).await;
    }
}

/// The one transaction that waits.
fn only(pending: &Value) -> Option<Value> {
    let accounts = pending.as_object()?.values().next()?;
    accounts.as_object()?.values().next().cloned()
}

#[tokio::test]
async fn deposits_come_to_addresses_that_the_connector_has_made() {
    let shop = ChainShop::start().await;
    let connector = shop.connector("evm", &[]);
    for (pair, amount, units) in
        [("ETH-EUR", json!(0.1), 100_000_000_000_000_000), ("USDC-EUR", json!(120.5), 120_500_000)]
    {
        let sale = until("there is an address", Duration::from_secs(90), async || {
            assert!(connector.status().is_none(), "{:?}", connector.err());
            let body = json!({"currencyPair": pair, "cryptoAmount": amount});
            let quote =
                shop.partner.post("/api/v1/sell/quote", body).await.assert_status(200).json();
            let body = json!({"quote": quote["quote"]});
            let confirmed = shop.partner.post("/api/v1/sell/confirm", body).await;
            (confirmed.status() == 200).then(|| confirmed.json())
        })
        .await;
        let address = sale["walletAddress"].as_str().unwrap();
        let hash = match pair {
            "ETH-EUR" => shop.anvil.send(CUSTOMER, address, units).await,
            _ => shop.anvil.send_token(&shop.token, TREASURY, address, units).await,
        };
        let told = async || deposit(&shop, &hash).await;
        let deposit = until("the deposit is told", SOON * 2, told).await;
        assert_eq!(deposit["orderId"], sale["orderId"], "{deposit}");
        assert_eq!((&deposit["amount"], &deposit["state"]), (&amount, &json!("matched")));
        let head = shop.anvil.head().await;
        let receipt = shop.anvil.call("eth_getTransactionReceipt", json!([hash])).await;
        let block = u64::try_from(quantity(&receipt["blockNumber"])).unwrap();
        assert!(head + 1 - block >= CONFIRMATIONS, "told before it was final");
    }
}

/// The payment of kind `deposit-received` of this transaction.
async fn deposit(shop: &ChainShop, hash: &str) -> Option<Value> {
    let listed = shop.edge.admin(Method::GET, "/admin/v1/payments?partner=acme", json!({})).await;
    let listed = listed.assert_status(200).json();
    let mut payments = listed.as_array().unwrap().iter();
    let found = payments.find(|payment| {
        payment["kind"] == "deposit-received"
            && payment["providerReference"].as_str().is_some_and(|known| known.starts_with(hash))
    });
    found.cloned()
}
