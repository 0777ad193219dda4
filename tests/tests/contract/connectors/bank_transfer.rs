//! The account that the pay page tells a payer by bank transfer.

use rampart_tests::order_fixture::OrderFixture;

use super::purchase::{live, order, paid};
use super::sale::queue;
use super::*;

/// A result of `payment.create` as the connector of a bank account has it.
fn announced(reference: &Value) -> Value {
    json!({"providerReference": reference, "bankTransfer": {"name": "Zoë & Söhne GmbH",
        "iban": "NL02 ABNA 0123 4567 89", "bic": "ABNANL2A", "reference": reference}})
}

#[tokio::test]
async fn the_page_says_where_to_pay_until_the_money_is_there() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let token = acme.token().await;
    let order = OrderFixture::confirmed(&acme, &token, json!(250.5), json!({})).await;
    let create = connector.lease(1).await.remove(0);
    let made = announced(&create["body"]["paymentReference"]);
    connector.report(&create, "done", made).await.assert_status(200);
    let page = async |language: &str| {
        let request = acme.anonymous(Method::GET, &order.pay_path);
        request.header("accept-language", language).send().await
    };
    let english = page("en").await;
    english.assert_status(200);
    for part in [
        "Zoë &amp; Söhne GmbH",
        "NL02 ABNA 0123 4567 89",
        r#"data-copy="NL02ABNA0123456789""#,
        r#"data-copy="ABNANL2A""#,
        &format!("data-copy=\"{}\"", order.id),
        r#"data-copy="250.5""#,
        "Your order goes on by itself",
        "Transfer exactly this amount",
        r#"http-equiv="refresh" content="30""#,
        "https://shop.example/back",
    ] {
        assert!(english.text().contains(part), "{part} in {}", english.text());
    }
    assert!(!english.text().contains("agreed with the shop"));
    let german = page("de").await;
    for part in ["Verwendungszweck", "250,50 EUR", r#"data-copy="250,5""#] {
        assert!(german.text().contains(part), "{part} in {}", german.text());
    }
    let mut event = paid(&order, 250);
    event["amount"] = json!(250.5);
    connector.event(event).await.assert_status(200);
    let after = page("en").await;
    assert!(!after.text().contains("NL02"), "nobody is to pay again: {}", after.text());
}

#[tokio::test]
async fn half_an_account_is_not_shown() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for (member, value) in [
        ("name", json!("Acme\nPay elsewhere")),
        ("iban", json!("NL03ABNA0123456789")),
        ("bic", json!("<b>")),
        ("reference", Value::Null),
    ] {
        let order = order(&acme, 100).await;
        let create = connector.lease(1).await.remove(0);
        let mut made = announced(&create["body"]["paymentReference"]);
        made["bankTransfer"][member] = value;
        connector.report(&create, "done", made).await.assert_status(200);
        let page = acme.anonymous(Method::GET, &order.pay_path).send().await;
        page.assert_status(200);
        assert!(page.text().contains("agreed with the shop"), "{member}: {}", page.text());
        assert!(!page.text().contains("ABNA"), "{member}: {}", page.text());
    }
}

#[tokio::test]
async fn an_order_whose_payer_cannot_be_told_where_to_pay_waits_for_support() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    for (place, is_unpayable) in [
        ("NL02 ABNA 0123 4567 89", false),
        ("NL03ABNA0123456789", true),
        ("https://psp.example/pay", false),
        ("http://psp.example/pay", true),
    ] {
        assert_eq!(queue(&context).await, [Value::Null; 0], "{place}");
        let order = order(&acme, 100).await;
        let leased = connector.lease(2).await;
        // The order before was cancelled, and with it its payment.
        let create = leased.into_iter().find(|command| command["kind"] == "payment.create");
        let create = create.unwrap();
        let mut made = announced(&create["body"]["paymentReference"]);
        if place.contains("://") {
            made["bankTransfer"] = Value::Null;
            made["redirectUrl"] = json!(place);
        } else {
            made["bankTransfer"]["iban"] = json!(place);
        }
        connector.report(&create, "done", made).await.assert_status(200);
        if is_unpayable {
            let waits = json!([order.id.to_string(), ["unpayable"]]);
            assert_eq!(queue(&context).await, [waits]);
            order.event(&context, "cancel").await.assert_status(200);
        }
    }
    assert_eq!(queue(&context).await, [Value::Null; 0], "its order is over");
}
