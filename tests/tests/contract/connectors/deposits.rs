//! Coins that arrive: which sale they are of.

use rampart_tests::going_live::CONNECTOR;

use super::purchase::live;
use super::sale::{ADDRESSES, sell, sell_of, transfers};
use super::*;
use crate::payments::problems;

#[tokio::test]
async fn a_tag_is_known_as_a_number_too() {
    for (made, told) in [(json!(12345), json!(12345)), (json!("0012345"), json!("012345"))] {
        let context = TestContext::start().await;
        let (acme, connector) = live(&context).await;
        let made = json!([{"address": "rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh", "tag": made}]);
        connector.fill_pool(&context, "XRP", made).await;
        let sale = sell_of(&acme, "XRP-EUR", 200.0).await.assert_status(200).json();
        assert_eq!(sale["destinationTag"], 12345);
        let deposit = json!({"id": "d-1", "kind": "deposit.received", "asset": "XRP", "amount": 200,
            "occurredAt": "2026-03-01T12:00:00Z", "providerReference": "ab12",
            "address": sale["walletAddress"], "tag": told, "transactionId": "ab12",
            "confirmations": 12});
        connector.event(deposit).await.assert_status(200);
        let path = format!("/admin/v1/orders/{}", sale["orderId"]);
        let seen = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
        assert_eq!(seen["status"], "in progress");
    }
}

#[tokio::test]
async fn an_address_is_known_in_the_case_in_which_a_node_spells_it() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let address = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    connector.fill_pool(&context, "ETH", json!([{ "address": address }])).await;
    let sale = sell(&acme).await.assert_status(200).json();
    assert_eq!(sale["walletAddress"], address);
    let deposit = json!({"id": "d-1", "kind": "deposit.received", "asset": "ETH", "amount": 0.1,
        "occurredAt": "2026-03-01T12:00:00Z", "providerReference": "0xdead",
        "address": address.to_lowercase(), "transactionId": "0xdead", "confirmations": 12});
    connector.event(deposit).await.assert_status(200);
    let path = format!("/admin/v1/orders/{}", sale["orderId"]);
    let seen = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
    assert_eq!(seen["status"], "in progress");
}

#[tokio::test]
async fn an_address_in_two_spellings_is_that_of_one_sale() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let address = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    let made = json!([{ "address": address.to_lowercase() }, { "address": address }]);
    connector.fill_pool(&context, "ETH", made).await;
    assert_eq!(sell(&acme).await.assert_status(200).json()["walletAddress"], address);
    sell(&acme).await.assert_codes(&["ER016"]);
}

#[tokio::test]
async fn an_address_that_an_earlier_version_has_stored_is_of_its_sale_alone() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let address = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed".to_lowercase();
    let taken = "insert into deposit_address (connector, asset, address, tag, added_at, taken_by, \
                 taken_for) select $1, 'ETH', $2, '', now(), client_id, 7 from client \
                 where slug = 'acme'";
    sqlx::query(taken).bind(CONNECTOR).bind(&address).execute(context.db()).await.unwrap();
    connector.fill_pool(&context, "ETH", json!([{ "address": address }])).await;
    sell(&acme).await.assert_codes(&["ER016"]);
}

#[tokio::test]
async fn of_sales_with_one_address_the_coins_are_those_of_their_asset() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    context.core().fill_deposit_pools().await.unwrap();
    let made = json!([{"address": ADDRESSES[0]}]);
    for command in connector.lease(100).await {
        if ["ETH", "USDC"].iter().any(|asset| command["body"]["asset"] == *asset) {
            connector.report(&command, "done", made.clone()).await.assert_status(200);
        }
    }
    let of_usdc = sell_of(&acme, "USDC-EUR", 200.0).await.assert_status(200).json();
    let of_eth = sell(&acme).await.assert_status(200).json();
    assert_eq!(of_eth["walletAddress"], of_usdc["walletAddress"]);
    for (sale, asset, amount) in [(&of_eth, "ETH", 0.1), (&of_usdc, "USDC", 200.0)] {
        let deposit = json!({"id": asset, "kind": "deposit.received", "asset": asset,
            "amount": amount, "occurredAt": "2026-03-01T12:00:00Z", "providerReference": asset,
            "address": sale["walletAddress"], "confirmations": 12});
        connector.event(deposit).await.assert_status(200);
        let path = format!("/admin/v1/orders/{}", sale["orderId"]);
        let seen = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
        assert_eq!(seen["status"], "in progress", "{asset}");
    }
}

/// Matches the newest payment that waits to the sale; the references of all, newest first.
async fn match_newest(context: &TestContext, sale: &Value) -> Vec<String> {
    let path = "/admin/v1/payments?state=unmatched";
    let payments = context.admin(Method::GET, path, Value::Null).await.assert_status(200).json();
    let path = format!("/admin/v1/payments/{}/match", payments[0]["id"].as_str().unwrap());
    let body = json!({"orderId": sale["orderId"]});
    context.admin(Method::POST, &path, body).await.assert_status(200);
    let references = payments.as_array().unwrap().iter();
    references.map(|one| one["providerReference"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_sale_names_the_transaction_of_the_deposit_that_is_matched_to_it() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    connector.fill_pool(&context, "ETH", json!([{"address": ADDRESSES[0]}])).await;
    let sale = sell(&acme).await.assert_status(200).json();
    let deposit = json!({"id": "d-1", "kind": "deposit.received", "asset": "ETH", "amount": 0.1,
        "occurredAt": "2026-03-01T12:00:00Z", "providerReference": "0xdead/0",
        "address": ADDRESSES[1], "transactionId": "0xdead", "confirmations": 12});
    connector.event(deposit).await.assert_status(200);
    assert_eq!(match_newest(&context, &sale).await, ["0xdead/0"]);
    let named = sqlx::query_scalar("select transaction_id from sell_order");
    let named: Option<String> = named.fetch_one(context.db()).await.unwrap();
    assert_eq!(named.as_deref(), Some("0xdead"));
}

#[tokio::test]
async fn coins_of_a_statement_are_booked_once_and_matched_to_their_sale() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    connector.fill_pool(&context, "ETH", json!([{"address": ADDRESSES[0]}])).await;
    let sale = sell(&acme).await.assert_status(200).json();
    let reconcile = async |line: &str| {
        let path = format!("/admin/v1/reconciliations?connector={CONNECTOR}");
        let statement = format!("date,amount,currency,providerReference\n2026-03-01,{line}\n");
        let made = context.admin_bytes(Method::POST, &path, statement.into()).await;
        let made = made.assert_status(201).json();
        assert_eq!(made["differences"], json!([]), "{line}");
        (made["matched"].clone(), made["recorded"].clone())
    };
    let deposit = async |reference: &str, address: &Value| {
        let deposit = json!({"id": reference, "kind": "deposit.received", "asset": "ETH",
            "amount": 0.1, "occurredAt": "2026-03-01T12:00:00Z", "providerReference": reference,
            "address": address, "confirmations": 12});
        connector.event(deposit).await.assert_status(200).json()["duplicate"].clone()
    };
    assert_eq!(deposit("0xfirst", &json!("somebody's")).await, json!(false));
    assert_eq!(reconcile("0.1,ETH,0xfirst").await, (json!(1), json!(0)), "it is known");
    let both = "0.1,ETH,0xfirst\n2026-03-01,0.1,ETH,0xsecond";
    assert_eq!(reconcile(both).await, (json!(1), json!(1)));
    assert_eq!(deposit("0xsecond", &sale["walletAddress"]).await, json!(true));
    assert_eq!(match_newest(&context, &sale).await, ["0xsecond", "0xfirst"]);
    assert_eq!(transfers(&context, &connector).await.len(), 1);
    assert_eq!(problems(&context).await, [Value::Null; 0]);
}
