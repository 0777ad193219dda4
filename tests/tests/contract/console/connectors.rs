//! Connectors: added, and given other tokens and a form for cards, by two persons.

use super::*;

const LIST: &str = "/console/connectors";
const ADD: &str = "/console/connectors/~/add";
const CARDS: &str = "/console/connectors/cards";

/// The token of a connector that a page shows.
fn shown_token(page: &Shown) -> String {
    let (_, rest) = page.text.split_once("rcn_").unwrap_or_else(|| panic!("{}", page.text));
    rest.split(['<', '&']).next().unwrap().to_owned()
}

#[tokio::test]
async fn a_connector_is_added_and_its_token_is_replaced() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    let bob = Browser::of(&context, "bob", &["platform"]).await;
    let eve = Browser::of(&context, "eve", &["viewer"]).await;
    ada.get(LIST).await.assert(200, &format!("href=\"{ADD}\""));
    assert!(!eve.get(LIST).await.assert(200, "Connectors").text.contains(ADD));
    eve.get(ADD).await.assert(403, "not for your role");
    ada.get(ADD).await.assert(200, "<h1>Add a connector</h1>");
    let none = [("name", "cards"), ("capabilities", "")];
    ada.submit(ADD, &none).await.assert(422, "Capabilities is missing");
    let wrong = [("name", "Cards"), ("capabilities", "payment.create")];
    ada.submit(ADD, &wrong).await.assert(422, "href=\"#field-name\"");
    let new = [
        ("name", "cards"),
        ("capabilities", "payment.create, payment.refund"),
        ("methods", "creditCard"),
    ];
    let first = shown_token(&together(&ada, &bob, ADD, &new).await);
    ada.get(LIST).await.assert(200, &format!("href=\"{CARDS}\""));
    eve.get(CARDS).await.assert(200, "payment.create, payment.refund");
    let rotate = format!("{CARDS}/rotate");
    let rotated = together(&ada, &bob, &rotate, &[("overlapSeconds", "0")]).await;
    assert_ne!(shown_token(&rotated), first);
    for action in ["connector.create", "connector.rotate"] {
        let row = audited(&context, action).await;
        assert_eq!((&row["actor"], &row["target"]), (&json!("ada"), &json!("cards")), "{row}");
    }
}

#[tokio::test]
async fn a_card_form_is_set_and_taken_away() {
    const KEY: &str = "pk_live_51H8b";
    let context = TestContext::start().await;
    let cards = json!({"name": "cards", "capabilities": ["payment.create"]});
    context.admin(Method::POST, "/admin/v1/connectors", cards).await.assert_status(201);
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    let bob = Browser::of(&context, "bob", &["platform"]).await;
    let path = format!("{CARDS}/card-form");
    let set = async |text: &str| {
        let form = ada.get(&path).await;
        let (_, rest) = form.text.split_once("name=\"shown.cardElement\" value=\"").unwrap();
        let shown = rest.split('"').next().unwrap();
        let typed = [("shown.cardElement", shown), ("cardElement", text)];
        together(&ada, &bob, &path, &typed).await
    };
    let element = json!({"scriptUrl": "https://js.stripe.com/v3/", "publicKey": KEY});
    set(&element.to_string()).await;
    ada.get(CARDS).await.assert(200, KEY);
    set("").await;
    let page = ada.get(CARDS).await.assert(200, "payment.create");
    assert!(!page.text.contains(KEY), "{}", page.text);
}
