//! The provider's form for cards on the pay page.

use chrono::TimeDelta;
use rampart_tests::answer::Answer;
use rampart_tests::going_live::CONNECTOR;
use rampart_tests::order_fixture::OrderFixture;

use super::purchase::{live, order};
use super::sale::queue;
use super::*;

fn form() -> Value {
    json!({"scriptUrl": "https://js.psp.example/v3/", "publicKey": "pk_live_1",
        "origins": ["https://api.psp.example"]})
}

async fn put(context: &TestContext, name: &str, form: Value) -> Answer {
    let path = format!("/admin/v1/connectors/{name}/card-element");
    context.admin(Method::PUT, &path, json!({ "cardElement": form })).await
}

/// A live partner, its connector with a form for cards, and a payment that is made.
async fn at_the_form(context: &TestContext) -> (Partner, Connector, OrderFixture) {
    let connector = Connector::of_live(context).await;
    let body = json!({"slug": "acme", "name": "Acme", "mode": "live"});
    let acme = context.partner_of(body).await;
    put(context, CONNECTOR, form()).await.assert_status(200);
    let token = acme.token().await;
    let order = OrderFixture::confirmed(&acme, &token, json!(250), json!({})).await;
    let create = connector.lease(1).await.remove(0);
    let made = json!({"clientToken": "pi_1_secret_2", "providerReference": "pi_1"});
    connector.report(&create, "done", made).await.assert_status(200);
    (acme, connector, order)
}

#[tokio::test]
async fn an_operator_allows_a_form_and_takes_it_away() {
    let context = TestContext::start().await;
    Connector::new(&context, "cards", &["payment.create"]).await;
    assert_eq!(read(&context, "cards").await["cardElement"], Value::Null);
    let set = put(&context, "cards", form()).await.assert_status(200).json();
    assert_eq!(set, json!({ "cardElement": form() }));
    assert_eq!(read(&context, "cards").await["cardElement"], form());
    for (member, value) in [
        ("scriptUrl", json!("http://js.psp.example/")),
        ("scriptUrl", json!("javascript:alert(1)")),
        ("publicKey", json!("sk_live_1")),
        ("origins", json!(["*"])),
        ("origins", json!(["https://a.example; script-src *"])),
    ] {
        let mut wrong = form();
        wrong[member] = value;
        let refused = put(&context, "cards", wrong).await.assert_status(422).json();
        let named = format!("cardElement.{member}");
        assert!(refused["error"].as_str().unwrap().contains(&named), "{refused}");
    }
    let path = "/admin/v1/connectors/cards/card-element";
    context.admin(Method::PUT, path, json!({})).await.assert_status(422);
    assert_eq!(read(&context, "cards").await["cardElement"], form(), "nothing has changed");
    put(&context, "nobody", form()).await.assert_status(404);
    put(&context, "cards", Value::Null).await.assert_status(200);
    assert_eq!(read(&context, "cards").await["cardElement"], Value::Null);
}

#[tokio::test]
async fn the_page_lets_in_the_allowed_script_and_nothing_else() {
    let context = TestContext::start().await;
    let (acme, _, order) = at_the_form(&context).await;
    assert_eq!(queue(&context).await, [Value::Null; 0], "it can be paid");
    let page = async |path: &str| acme.anonymous(Method::GET, path).send().await;
    let shown = page(&order.pay_path).await;
    for part in [
        r#"data-client-token="pi_1_secret_2""#,
        r#"data-public-key="pk_live_1""#,
        r#"<script src="https://js.psp.example/v3/">"#,
        "Pay 250.00 EUR",
        "data-until=",
        "data-copy=",
        "enhance(document);",
        "Stripe(texts.publicKey)",
    ] {
        assert!(shown.text().contains(part), "{part} in {}", shown.text());
    }
    let policy = shown.header("content-security-policy").unwrap().to_owned();
    for part in [
        " https://js.psp.example;",
        "connect-src https://js.psp.example https://api.psp.example;",
        "frame-src https://js.psp.example https://api.psp.example;",
        "default-src 'none'",
    ] {
        assert!(policy.contains(part), "{part} in {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    // Without the operator's word a connector's token shows nothing.
    put(&context, CONNECTOR, Value::Null).await.assert_status(200);
    let plain = page(&order.pay_path).await;
    assert!(!plain.text().contains("pi_1_secret_2") && !plain.text().contains("<script src"));
    // Nobody tells the page when a bank has the money: without a script it looks now and then.
    assert!(plain.text().contains("http-equiv=\"refresh\" content=\"30\""), "{}", plain.text());
    assert!(!plain.header("content-security-policy").unwrap().contains("psp.example"));
}

#[tokio::test]
async fn a_token_without_a_form_waits_for_support() {
    let context = TestContext::start().await;
    let (acme, connector) = live(&context).await;
    let order = order(&acme, 100).await;
    let create = connector.lease(1).await.remove(0);
    let made = json!({"clientToken": "pi_1_secret_2", "providerReference": "pi_1"});
    connector.report(&create, "done", made).await.assert_status(200);
    assert_eq!(queue(&context).await, [json!([order.id.to_string(), ["unpayable"]])]);
    order.event(&context, "cancel").await.assert_status(200);
    assert_eq!(queue(&context).await, [Value::Null; 0], "its order is over");
}

#[tokio::test]
async fn after_the_card_the_page_waits_for_the_provider_and_leads_back() {
    let context = TestContext::start().await;
    let (acme, connector, order) = at_the_form(&context).await;
    let made = format!("{}?payment=made", order.pay_path);
    let page = async |path: &str| acme.anonymous(Method::GET, path).send().await;
    let waits = page(&made).await;
    assert!(waits.text().contains("being confirmed") && !waits.text().contains("<script src"));
    assert!(waits.text().contains("<noscript><meta http-equiv=\"refresh\" content=\"2\">"));
    let event = json!({"id": "e", "kind": "payment.received", "partner": "acme",
        "occurredAt": "2026-03-01T12:00:00Z", "orderId": order.id, "providerReference": "pi_1",
        "amount": 250, "currency": "EUR"});
    connector.event(event).await.assert_status(200);
    let back = page(&made).await;
    assert_eq!((back.status(), back.header("location")), (303, Some("https://shop.example/back")));
    let shown = page(&order.pay_path).await;
    assert!(shown.text().contains("the payment has arrived"), "{}", shown.text());
}

#[tokio::test]
async fn a_card_that_was_charged_as_the_time_ended_is_being_confirmed() {
    let context = TestContext::start().await;
    let (acme, _, order) = at_the_form(&context).await;
    let page = async |path: &str| acme.anonymous(Method::GET, path).send().await;
    context.clock().advance(TimeDelta::days(1));
    let opened = page(&order.pay_path).await;
    assert!(opened.text().contains("can no longer be paid"), "{}", opened.text());
    let charged = page(&format!("{}?payment=made", order.pay_path)).await;
    assert!(charged.text().contains("being confirmed"), "{}", charged.text());
}
