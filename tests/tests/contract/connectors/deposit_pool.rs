//! The deposit addresses of a connector, which partners share.

use super::purchase::live;
use super::sale::{ADDRESSES, sell, sell_by};
use super::*;

#[tokio::test]
async fn unpaid_sales_of_one_partner_leave_the_last_addresses_to_others() {
    const FREE: u32 = 24;
    // A quarter is for partners with fewer unpaid sales.
    const TAKEN: u32 = 18;
    let context = TestContext::with(|all| all.connectors.deposit_addresses_min = FREE).await;
    let (acme, connector) = live(&context).await;
    let other = json!({"slug": "other", "name": "Other", "mode": "live"});
    let other = context.partner_of(other).await;
    let address = |n: u32| json!({"address": format!("0x{:040}", n + 1)});
    let made = (0..FREE).map(address).collect();
    connector.fill_pool(&context, "ETH", Value::Array(made)).await;
    let token = format!("Bearer {}", acme.token().await);
    for _ in 0..TAKEN {
        sell_by(&acme, &token, "ETH-EUR", 0.1).await.assert_status(200);
    }
    sell_by(&acme, &token, "ETH-EUR", 0.1).await.assert_codes(&["ER016"]);
    let token = format!("Bearer {}", other.token().await);
    sell_by(&other, &token, "ETH-EUR", 0.1).await.assert_status(200);
}

#[tokio::test]
async fn as_many_sales_are_made_at_once_as_addresses_are_free() {
    const FREE: u32 = 12;
    let context = TestContext::with(|all| all.connectors.deposit_addresses_min = FREE).await;
    let (acme, connector) = live(&context).await;
    let address = |n: u32| json!({"address": format!("0x{:040}", n + 1)});
    let made = (0..FREE).map(address).collect();
    connector.fill_pool(&context, "ETH", Value::Array(made)).await;
    let token = format!("Bearer {}", acme.token().await);
    let send = |path: &str, body: &Value| {
        let request = acme.anonymous(Method::POST, path).header("authorization", &token);
        request.json(body).send()
    };
    let mut confirms = Vec::new();
    for _ in 0..FREE {
        let asked = json!({"currencyPair": "ETH-EUR", "cryptoAmount": 0.1});
        let quote = send("/api/v1/sell/quote", &asked).await.assert_status(200).json();
        confirms.push(send("/api/v1/sell/confirm", &json!({"quote": quote["quote"]})));
    }
    let sales = futures::future::join_all(confirms).await;
    let addresses: std::collections::BTreeSet<String> = sales
        .iter()
        .map(|sale| sale.assert_status(200).json()["walletAddress"].to_string())
        .collect();
    assert_eq!(addresses.len(), sales.len());
    sell(&acme).await.assert_codes(&["ER016"]);
}

#[tokio::test]
async fn a_pool_that_runs_low_again_is_filled_at_once() {
    let context = TestContext::with(|all| all.connectors.deposit_addresses_min = 1).await;
    let connector = Connector::of_live(&context).await;
    let live = json!({"slug": "acme", "name": "Acme", "mode": "live"});
    let acme = context.partner_of(live).await;
    let wanted = async || {
        context.core().fill_deposit_pools().await.unwrap();
        let mut wanted = connector.lease(100).await;
        wanted.retain(|command| command["body"]["asset"] == "ETH");
        wanted
    };
    for address in ADDRESSES {
        let command = wanted().await.remove(0);
        assert!(wanted().await.is_empty(), "one at a time");
        let made = json!([{ "address": address }]);
        connector.report(&command, "done", made).await.assert_status(200);
        assert!(wanted().await.is_empty(), "it is full");
        sell(&acme).await.assert_status(200);
    }
    let command = wanted().await.remove(0);
    connector.report(&command, "rejected", Value::Null).await.assert_status(200);
    context.clock().advance(chrono::TimeDelta::minutes(1));
    assert_eq!(wanted().await.len(), 1, "asked for again in the next minute");
}

#[tokio::test]
async fn a_pool_that_cannot_be_filled_holds_up_none_behind_it() {
    let context = TestContext::with(|all| all.connectors.deposit_addresses_min = 1).await;
    let connector = Connector::of_live(&context).await;
    let first_fails = "alter table command add constraint frozen check (asset <> 'ADA')";
    sqlx::query(first_fails).execute(context.db()).await.unwrap();
    context.core().fill_deposit_pools().await.unwrap();
    let filled = connector.lease(100).await;
    assert!(filled.iter().any(|command| command["body"]["asset"] == "ETH"), "{filled:?}");
    let failed = &context.core().metrics.worker_rows_failed;
    assert_eq!(failed.with_label_values(&["deposit addresses"]).get(), 1);
}

#[tokio::test]
async fn two_confirms_of_one_quote_share_the_last_address() {
    let context = TestContext::with(|all| all.connectors.deposit_addresses_min = 1).await;
    let (acme, connector) = live(&context).await;
    let made = json!([{"address": ADDRESSES[0]}]);
    connector.fill_pool(&context, "ETH", made).await;
    let token = format!("Bearer {}", acme.token().await);
    let send = |path: &str, body: &Value| {
        let request = acme.anonymous(Method::POST, path).header("authorization", &token);
        request.json(body).send()
    };
    let asked = json!({"currencyPair": "ETH-EUR", "cryptoAmount": 0.1});
    let quote = send("/api/v1/sell/quote", &asked).await.assert_status(200).json();
    let body = json!({"quote": quote["quote"]});
    let confirms = (0..6).map(|_| send("/api/v1/sell/confirm", &body));
    let sales = futures::future::join_all(confirms).await;
    for sale in &sales {
        assert_eq!(sale.assert_status(200).text(), sales[0].text());
    }
}
