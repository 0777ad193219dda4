//! A whole purchase, as a partner's program makes it.

use http::Method;
use rampart_tests::caller::Protocol;
use rampart_tests::deadline::{SOON, until};
use rampart_tests::edge::Edge;
use rampart_tests::receiver::Receiver;
use serde_json::json;

use crate::buyer::{RETURN_URL, WALLET, confirm_offer, offer, order_of, quote};

#[tokio::test]
async fn a_purchase_over_http_1() {
    buys(&*Edge::shared().await, Protocol::Http1, "shop-of-one").await;
}

#[tokio::test]
async fn a_purchase_over_http_2() {
    buys(&*Edge::shared().await, Protocol::Http2, "shop-of-two").await;
}

/// A new partner buys, to the end.
pub(crate) async fn buys(edge: &Edge, protocol: Protocol, slug: &str) {
    let receiver = Receiver::start().await;
    let partner = edge.limited_partner(slug).await.over(protocol).authenticated().await;

    let methods = partner.get("/api/v2/buy/payment-methods?countryCode=nl").await;
    let methods = methods.assert_status(200).json();
    let mut listed = methods["paymentMethods"].as_array().unwrap().iter();
    assert!(listed.any(|method| method["code"] == "creditCard"));

    let quote = quote(&partner).await;
    assert_eq!(quote["fiatAmount"], json!(100));
    let quote = quote["quote"].as_str().unwrap();
    let offer = offer(&partner, &receiver.url("/hook")).await;
    let confirmed = confirm_offer(&partner, quote, &offer).send().await;
    let order = order_of(&confirmed);
    let again = confirm_offer(&partner, quote, &offer).send().await;
    assert_eq!(again.assert_status(200).json(), confirmed.json());

    let payment_url = confirmed.json()["paymentUrl"].as_str().unwrap().to_owned();
    let page = payment_url.strip_prefix(&edge.url("")).expect("a page of this edge").to_owned();
    let shown = partner.anonymous(Method::GET, &page).send().await;
    assert!(shown.assert_status(200).text().contains("100"), "{}", shown.text());
    let paid = partner.anonymous(Method::POST, &page).form("action=pay").send().await;
    assert_eq!((paid.status(), paid.header("location")), (303, Some(RETURN_URL)));

    let path = format!("/api/v2/buy/orders/{order}");
    let completed = until("the order is completed", SOON, async || {
        let read = partner.get(&path).await.assert_status(200).json();
        (read["status"] == "completed").then_some(read)
    })
    .await;
    assert_eq!(completed["walletAddress"], WALLET);
    assert_eq!(completed["partnerOrderIdentifier"], "cart-1");
    assert!(!completed["blockchainInfo"]["transactionId"].as_str().unwrap().is_empty());

    let heard = receiver.heard_at_least(1).await.remove(0);
    assert_eq!(heard.target, format!("/hook?orderId={order}&status=success"));
    let webhook = standardwebhooks::Webhook::new(partner.secret("webhookSecret")).unwrap();
    webhook.verify(&heard.body, &heard.headers).unwrap();
    let event = heard.json();
    assert_eq!(event["type"], "order.completed");
    assert_eq!(event["data"]["orderId"], json!(order));
}
