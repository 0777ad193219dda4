//! Reads of orders: one by one and as lists, by their owners alone.

use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

use super::{BTC, Shop, XRP, confirm_of, happen, user};

#[tokio::test]
async fn both_versions_tell_the_same_order() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let order = shop.order(&context, |body| body["partnerOrderIdentifier"] = json!("ref-1")).await;
    let v1 = shop.get(&format!("/api/v1/user/buy/orders/{order}")).await;
    let v2 = shop.get("/api/v2/buy/orders/ref-1").await;
    let (v1, v2) = (v1.assert_status(200).json(), v2.assert_status(200).json());
    let eur = |amount: Value| json!({"amount": amount, "currencyCode": "EUR"});
    let number = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    for (in_v1, in_v2) in [
        ("/id", "/id"),
        ("/date", "/date"),
        ("/currencyPair", "/currencyPair"),
        ("/status", "/status"),
        ("/price", "/fiatAmount"),
        ("/value", "/cryptoAmount"),
        ("/partnerFee", "/fees/partnerFee"),
        ("/feePercentage", "/fees/partnerFeePercentage"),
        ("/paymentMethodFee", "/fees/paymentMethodFee"),
        ("/networkFee", "/fees/networkFee"),
        ("/providerFee", "/fees/providerFee"),
        ("/spreadFee", "/fees/spreadFee"),
        ("/partnerOrderIdentifier", "/partnerOrderIdentifier"),
        ("/paymentMethod", "/paymentMethod"),
        ("/walletAddress", "/walletAddress"),
        ("/destinationTag", "/destinationTag"),
        ("/blockchainInfo", "/blockchainInfo"),
        ("/isDcaOrder", "/isDcaOrder"),
        ("/isEstimatedQuote", "/isEstimatedQuote"),
        ("/expiresAt", "/expiresAt"),
        ("/sourceCurrency", "/sourceCurrency"),
        ("/targetCurrency", "/targetCurrency"),
    ] {
        let (one, two) = (v1.pointer(in_v1), v2.pointer(in_v2));
        assert!(one.is_some() && one == two, "{in_v1} {one:?} {two:?}");
    }
    assert_eq!(v2["fiatAmount"], eur(number("100")));
    assert_eq!(v2["cryptoAmount"].to_string(), r#"{"amount":0.001,"currencyCode":"BTC"}"#);
    assert_eq!(v1["feeAmount"], eur(number("10")));
    assert_eq!(v2["fees"]["spreadFee"], eur(number("2.25")));
    assert_eq!(v2["fees"]["affiliateFee"], eur(number("0")));
    assert_eq!(v1["orderNotCompletedReasons"], json!([]));
    assert_eq!(v2["blockchainInfo"]["transactionId"], "");
    assert_eq!(
        v2["blockchainInfo"]["walletExplorer"],
        format!("https://mempool.space/address/{BTC}")
    );
    assert_eq!(v2["targetCurrency"]["caip19"], "bip122:000000000019d6689c085ae165831e93/slip44:0");
}

#[tokio::test]
async fn a_tag_is_an_integer_for_xrp() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let mut body =
        confirm_of(&shop.quote(&context, |quote| quote.pair = "XRP-EUR".parse().unwrap()));
    body["walletAddress"] = json!(XRP);
    body["destinationTag"] = json!("12345");
    let order = shop.v1(&body).await.assert_status(200).json()["orderId"].clone();
    for path in ["/api/v1/user/buy/orders", "/api/v2/buy/orders"] {
        let read = shop.get(&format!("{path}/{order}")).await.json();
        assert_eq!(read["destinationTag"].to_string(), "12345");
    }
}

#[tokio::test]
async fn somebody_elses_order_is_as_absent_as_none() {
    let context = TestContext::start().await;
    let (shop, rival) = (Shop::of(&context, "acme").await, Shop::of(&context, "rival").await);
    let order = shop.order(&context, |body| body["partnerOrderIdentifier"] = json!("ref-1")).await;
    let absent = rival.get("/api/v2/buy/orders/1234567890123456").await;
    absent.assert_status(404).assert_codes(&["ER035"]);
    for name in [order.to_string(), "ref-1".to_owned()] {
        for path in ["/api/v1/user/buy/orders", "/api/v2/buy/orders"] {
            let others = rival.get(&format!("{path}/{name}")).await;
            assert_eq!(others.assert_status(404).text(), absent.text());
        }
        let others = rival.get(&format!("/api/v2/buy/orders/{name}/timeline")).await;
        assert_eq!(others.assert_status(404).text(), absent.text());
    }
    // Another user of the same partner.
    let identifier = "z".repeat(36);
    user(&context, &shop.partner, &identifier).await;
    let neighbour = Shop { partner: shop.partner.clone(), user: shop.user, identifier };
    let others = neighbour.get(&format!("/api/v2/buy/orders/{order}")).await;
    assert_eq!(others.assert_status(404).text(), absent.text());
    assert_eq!(neighbour.get("/api/v2/buy/orders").await.json(), json!([]));
}

#[tokio::test]
async fn an_order_is_found_by_number_first_then_by_the_newest_of_a_name() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let named = |name: String| move |body: &mut Value| body["partnerOrderIdentifier"] = json!(name);
    let first = shop.order(&context, named("twice".to_owned())).await;
    let second = shop.order(&context, named("twice".to_owned())).await;
    let id = |answer: rampart_tests::answer::Answer| answer.json()["id"].as_i64();
    assert_eq!(id(shop.get("/api/v2/buy/orders/twice").await), Some(second));
    // A partner may name an order after another one's number.
    let third = shop.order(&context, named(first.to_string())).await;
    assert_eq!(id(shop.get(&format!("/api/v2/buy/orders/{first}")).await), Some(first));
    let digits = shop.order(&context, named("42".to_owned())).await;
    assert_eq!(id(shop.get("/api/v2/buy/orders/42").await), Some(digits));
    assert_eq!(id(shop.get(&format!("/api/v2/buy/orders/{third}")).await), Some(third));
}

#[tokio::test]
async fn a_name_that_no_order_can_have_is_malformed() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    for path in ["/api/v1/user/buy/orders", "/api/v2/buy/orders"] {
        shop.get(&format!("{path}/")).await.assert_status(400).assert_codes(&["ER033"]);
        let long = "9".repeat(256);
        shop.get(&format!("{path}/{long}")).await.assert_codes(&["ER034"]);
        shop.get(&format!("{path}/a%0Ab")).await.assert_codes(&["ER034"]);
        let longest = "9".repeat(255);
        shop.get(&format!("{path}/{longest}")).await.assert_status(404).assert_codes(&["ER035"]);
    }
}

#[tokio::test]
async fn a_list_is_read_page_by_page_newest_first() {
    let context = TestContext::start().await;
    let shop = Shop::of(&context, "acme").await;
    let mut orders = Vec::new();
    for n in 0..5 {
        let name = format!("ref-{n}");
        let order = shop.order(&context, |body| body["partnerOrderIdentifier"] = json!(name)).await;
        orders.insert(0, order);
    }
    let (mut seen, mut path) = (Vec::new(), "/api/v2/buy/orders?limit=2".to_owned());
    loop {
        let page = shop.get(&path).await;
        let page_orders = page.assert_status(200).json();
        seen.extend(page_orders.as_array().unwrap().iter().map(|o| o["id"].as_i64().unwrap()));
        let Some(link) = page.header("link") else {
            assert_eq!(page.header("x-next-cursor"), None);
            break;
        };
        assert!(link.ends_with(">; rel=\"next\"") && page_orders.as_array().unwrap().len() == 2);
        assert!(link.contains(page.header("x-next-cursor").unwrap()));
        path = link[1..link.find('>').unwrap()].to_owned();
    }
    assert_eq!(seen, orders);

    let ids = async |query: &str| {
        let page = shop.get(&format!("/api/v2/buy/orders?{query}")).await;
        let page = page.assert_status(200).json();
        page.as_array().unwrap().iter().map(|o| o["id"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    happen(&context, orders[1], json!({"event": "payment-received"})).await.assert_status(200);
    assert_eq!(ids("status=in%20progress").await, [orders[1]]);
    assert_eq!(ids("partnerOrderIdentifier=ref-4").await, [orders[0]]);
    assert!(ids("partnerOrderIdentifier=ref-9").await.is_empty());
    let date = shop.get(&format!("/api/v2/buy/orders/{}", orders[2])).await.json()["date"].clone();
    let date = date.as_str().unwrap();
    assert_eq!(ids(&format!("from={date}")).await, orders[..3]);
    assert_eq!(ids(&format!("to={date}")).await, orders[3..]);
    shop.get("/api/v2/buy/orders?limit=101&cursor=x").await.assert_codes(&["ER048"]);
}
