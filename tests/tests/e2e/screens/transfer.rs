//! The payment page of a bank transfer, as a buyer at a live partner sees it.

use http::Method;
use rampart_tests::bank::ACCOUNT;
use rampart_tests::edge::Edge;
use rampart_tests::remote_connector::RemoteConnector;
use serde_json::json;

use super::Visitor;
use crate::buyer::{RETURN_URL, WALLET};

/// A connector that the payments by bank transfer of the partner `acme` go to.
async fn bank_of_acme(edge: &Edge) -> RemoteConnector {
    let kinds = ["payment.create", "payment.cancel", "payment.refund"];
    let bank = RemoteConnector::add(edge, "bank", &kinds).await;
    let path = "/admin/v1/routes";
    let mut routes = edge.admin(Method::GET, path, json!({})).await.assert_status(200).json();
    let route = json!({"partner": "acme", "method": "bankTransfer", "direction": "in",
        "connector": "bank"});
    routes["routes"].as_array_mut().unwrap().insert(0, route);
    edge.admin(Method::PUT, path, routes).await.assert_status(200);
    bank
}

#[tokio::test]
async fn the_account_to_pay_to_looks_as_it_should() {
    let edge = Edge::with(|setup| {
        // A live partner needs mail; this one's buyer is a guest.
        setup.set("mail.smtp_url", "smtp://127.0.0.1:1");
    })
    .await;
    let body = json!({"slug": "acme", "name": "Acme", "mode": "live"});
    let partner = edge.partner_of(body).await.authenticated().await;
    let bank = bank_of_acme(&edge).await;
    let asked = json!({"currencyPair": "BTC-EUR", "paymentMethod": "bankTransfer",
        "fiatAmount": 100});
    let quote = partner.post("/api/v1/buy/quote", asked).await.assert_status(200).json();
    let body = json!({"quote": quote["quote"], "walletAddress": WALLET,
        "returnUrl": RETURN_URL});
    let confirmed = partner.post("/api/v1/buy/confirm", body).await.assert_status(200).json();
    let create = bank.next("payment.create").await;
    let reference = &create["body"]["paymentReference"];
    let account = json!({"name": "Acme Payments B.V.", "iban": ACCOUNT, "bic": "ABNANL2A",
        "reference": reference});
    bank.done(&create, json!({"providerReference": reference, "bankTransfer": account})).await;
    let mut visitor = Visitor::start().await;
    visitor.browser.open(confirmed["paymentUrl"].as_str().unwrap()).await;
    visitor.browser.shows("NL02 ABNA 0123 4567 89").await;
    visitor.look_whole("pay-transfer").await;
    visitor.end();
}
