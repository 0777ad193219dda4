//! Pages that show the first rows of a list: links lead to the others.

use rampart_tests::order_fixture::OrderFixture;

use super::*;

/// The target of the link with this text.
fn link(shown: &Shown, text: &str) -> String {
    let end = format!("\">{text}</a>");
    let (before, _) = shown.text.split_once(&end).unwrap_or_else(|| panic!("{}", shown.text));
    before.rsplit_once("href=\"").unwrap().1.replace("&amp;", "&")
}

#[tokio::test]
async fn the_page_of_an_order_leads_to_what_it_does_not_show() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let hook = json!({"url": "https://shop.example.com/hook"});
    acme.post("/api/v2/webhooks", hook).await.assert_status(200);
    let order = OrderFixture::order(&context, &acme, None, None).await;
    order.event(&context, "payment-received").await.assert_status(200);
    let ada = Browser::of(&context, "ada", &["owner"]).await;
    let path = format!("/console/orders/{}", order.id);
    let page = ada.get(&path).await.assert(200, "Deliveries to the partner");
    assert!(!page.text.contains(">More "), "{}", page.text);

    for _ in 0..10 {
        order.event(&context, "hold").await.assert_status(200);
        order.event(&context, "release").await.assert_status(200);
    }
    let sent = "insert into delivery (client_id, delivery_id, event_id, order_id, url, state, \
            next_attempt_at, created_at, ready) \
        select client_id, lpad(to_hex(n), 32, '0')::uuid, event_id, order_id, url, 'delivered', \
            created_at, created_at, false \
        from (select * from delivery limit 1) one, generate_series(1, 200) n";
    sqlx::query(sent).execute(context.db()).await.unwrap();
    let page = ada.get(&path).await.assert(200, "Deliveries to the partner");
    let oldest = "/console/deliveries/00000000-0000-0000-0000-000000000001";
    assert!(!page.text.contains(oldest), "{}", page.text);
    ada.get(&link(&page, "More deliveries")).await.assert(200, oldest);
    let decided = ada.get(&link(&page, "More order.event")).await;
    decided.assert(200, "payment-received");
}
