//! A sale of a live partner: its address comes from the pool, its money goes out by a command.

use super::*;

/// Valid, and nobody's.
const ADDRESSES: [&str; 2] =
    ["0x52908400098527886E0F7030069857D2E4169EE7", "0x8617E340B3D01FA5F11F306F4090FD50E238070D"];

async fn sell(partner: &Partner) -> rampart_tests::answer::Answer {
    let token = format!("Bearer {}", partner.token().await);
    let post = async |path: &str, body: Value| {
        let request = partner.anonymous(Method::POST, path).header("authorization", &token);
        request.json(&body).send().await
    };
    let asked = json!({"currencyPair": "ETH-EUR", "cryptoAmount": 0.1});
    let quote = post("/api/v1/sell/quote", asked).await.assert_status(200).json();
    post("/api/v1/sell/confirm", json!({"quote": quote["quote"]})).await
}

#[tokio::test]
async fn a_sale_takes_an_address_of_the_pool_and_its_money_goes_out() {
    let context = TestContext::with(|settings| settings.connectors.deposit_addresses_min = 2).await;
    let connector = Connector::of_live(&context).await;
    let live = json!({"slug": "acme", "name": "Acme", "mode": "live"});
    let acme = context.partner_of(live).await;
    sell(&acme).await.assert_codes(&["ER016"]);
    context.core().fill_deposit_pools().await.unwrap();
    context.core().fill_deposit_pools().await.unwrap();
    let wanted = connector.lease(100).await;
    let of_eth: Vec<_> = wanted.iter().filter(|c| c["body"]["asset"] == "ETH").collect();
    assert_eq!(of_eth.len(), 1, "{wanted:?}");
    assert_eq!(
        (&of_eth[0]["kind"], &of_eth[0]["body"]["count"]),
        (&json!("deposit.address"), &json!(2))
    );
    let made =
        json!([{"address": ADDRESSES[0]}, {"address": ADDRESSES[1]}, {"address": "nonsense"}]);
    connector.report(of_eth[0], "done", made).await.assert_status(200);

    let (one, two) = tokio::join!(sell(&acme), sell(&acme));
    let (one, two) = (one.assert_status(200).json(), two.assert_status(200).json());
    assert_ne!(one["walletAddress"], two["walletAddress"], "one address for each sale");
    sell(&acme).await.assert_codes(&["ER016"]);

    let deposit = json!({"id": "d-1", "kind": "deposit.received", "asset": "ETH", "amount": 0.1,
        "occurredAt": "2026-03-01T12:00:00Z", "providerReference": "0xdead",
        "address": one["walletAddress"], "transactionId": "0xdead", "confirmations": 12});
    connector.event(deposit).await.assert_status(200);
    context.core().command_transfers().await.unwrap();
    context.core().command_transfers().await.unwrap();
    let only = json!({"kinds": ["transfer.send"], "max": 10});
    let path = "/connectors/v1/commands/lease";
    let transfers = connector.call(Method::POST, path, only).await.json();
    assert_eq!(transfers.as_array().unwrap().len(), 1, "{transfers}");
    let body = &transfers[0]["body"];
    assert_eq!((&body["orderId"], &body["currency"]), (&one["orderId"], &json!("EUR")));
    let sent = json!({"providerReference": "sepa-1"});
    connector.report(&transfers[0], "done", sent).await.assert_status(200);
    let completed = json!({"id": "t-1", "kind": "transfer.completed", "partner": "acme",
        "occurredAt": "2026-03-01T13:00:00Z", "orderId": one["orderId"],
        "providerReference": "sepa-1", "amount": body["amount"], "currency": "EUR"});
    connector.event(completed).await.assert_status(200);
    let path = format!("/admin/v1/orders/{}", one["orderId"]);
    let seen = context.admin(Method::GET, &path, json!({})).await.assert_status(200).json();
    assert_eq!(seen["status"], "completed");
}
