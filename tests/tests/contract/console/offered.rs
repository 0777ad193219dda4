//! Actions that pages offer: those that the operator may do, and that can be done.

use rampart_tests::order_fixture::OrderFixture;

use super::*;

#[tokio::test]
async fn tokens_are_changed_by_their_operator_and_by_owners() {
    let context = TestContext::start().await;
    let eve = Browser::of(&context, "eve", &["support"]).await;
    let bob = Browser::of(&context, "bob", &["support"]).await;
    let ada = Browser::of(&context, "ada", &["owner"]).await;
    let path = "/console/operators/eve";
    for (browser, may) in [(&eve, true), (&bob, false), (&ada, true)] {
        let page = browser.get(path).await.assert(200, "Tokens");
        for link in [format!("href=\"{path}/token\""), format!("href=\"{path}/tokens/")] {
            assert_eq!(page.text.contains(&link), may, "{link}: {}", page.text);
        }
    }
}

#[tokio::test]
async fn a_call_is_agreed_to_by_who_has_a_role_of_it() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    let price = [("price", "41234.56")];
    ada.submit("/console/market/BTC-EUR/price", &price).await.assert(303, "");
    for (name, role, may) in [("bob", "treasury", true), ("eve", "support", false)] {
        let browser = Browser::of(&context, name, &[role]).await;
        let page = browser.get("/console/approvals").await;
        let page = page.assert(200, "/admin/v1/prices/BTC-EUR");
        for action in ["/grant\"", "/refuse\""] {
            assert_eq!(page.text.contains(action), may, "{name} {action}: {}", page.text);
        }
    }
    // Who has made the call may withdraw it.
    let page = ada.get("/console/approvals").await.assert(200, "Withdraw");
    assert!(!page.text.contains("/grant\""), "{}", page.text);
}

#[tokio::test]
async fn a_payment_that_is_matched_is_not_matched_again() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    order.event(&context, "payment-received").await.assert_status(200);
    let path = format!("/admin/v1/payments?order={}", order.id);
    let payments = context.admin(Method::GET, &path, Value::Null).await.json();
    let path = format!("/console/payments/{}", payments[0]["id"].as_str().unwrap());
    let ada = Browser::of(&context, "ada", &["treasury"]).await;
    let page = ada.get(&path).await.assert(200, &format!("href=\"{path}/refund\""));
    assert!(!page.text.contains("/match\""), "{}", page.text);
}

#[tokio::test]
async fn a_live_partner_does_not_go_live_again() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    let path = "/console/partners/acme";
    let link = format!("href=\"{path}/go-live\"");
    ada.get(path).await.assert(200, &link);
    let live = "update client set mode = 'live', compliance_gate = null where slug = 'acme'";
    sqlx::query(live).execute(context.db()).await.unwrap();
    let page = ada.get(path).await.assert(200, &format!("href=\"{path}/suspend\""));
    assert!(!page.text.contains(&link), "{}", page.text);
}
