//! Orders and users for whoever helps shoppers, masked, and the sandbox of test clients.

use http::Method;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::staff::Staff;
use rampart_tests::test_context::TestContext;
use serde_json::{Value, json};

#[tokio::test]
async fn an_order_is_found_by_number_and_by_the_partners_identifier() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let mut staff = Staff::signed_in(&context, &acme, "support").await;
    let mut stranger = Staff::signed_in(&context, &rival, "support").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    order.event(&context, "payment-received").await.assert_status(200);
    let number = order.id.to_string();
    for (query, found) in [
        (String::new(), true),
        (format!("?name={number}"), true),
        ("?name=shop-7".to_owned(), true),
        ("?status=in+progress".to_owned(), true),
        ("?status=cancelled".to_owned(), false),
        ("?name=another".to_owned(), false),
        ("?name=shop-7&status=cancelled".to_owned(), false),
        (format!("?name=shop-7&before={number}"), false),
        (format!("?before={number}"), false),
    ] {
        let list = staff.get(&format!("/portal/orders{query}")).await;
        let link = format!("/portal/orders/{number}\"");
        assert_eq!(list.assert_status(200).text().contains(&link), found, "{query}");
    }
    let path = format!("/portal/orders/{number}");
    let page = staff.get(&path).await;
    let text = page.assert_status(200).text();
    assert!(!text.contains("bc1qar0srrr7") && text.contains("bc1q…5mdq"), "it is masked");
    for part in ["shop-7", "payment-received", "in progress"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    stranger.get(&path).await.assert_status(404);
    assert!(!stranger.get("/portal/orders").await.text().contains(&number));
    staff.get("/portal/orders/nonsense").await.assert_status(404);
}

#[tokio::test]
async fn a_list_without_orders_says_why_it_is_empty() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "support").await;
    let uuid = acme.user("ada").await.log_in().await["uuid"].as_str().unwrap().to_owned();
    for (path, words) in [
        ("/portal/orders", "as soon as there are any"),
        ("/portal/orders?name=&status=", "as soon as there are any"),
        ("/portal/orders?name=shop-7", "No order meets what you search for"),
        ("/portal/orders?status=blocked", "No order meets what you search for"),
        (&*format!("/portal/users/{uuid}"), "The user has made none"),
    ] {
        let page = staff.get(path).await;
        assert!(page.assert_status(200).text().contains(words), "{path}: {}", page.text());
    }
}

#[tokio::test]
async fn an_erased_user_has_no_blanks() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let uuid = acme.user("ada").await.log_in().await["uuid"].as_str().unwrap().to_owned();
    let path = format!("/admin/v1/users/{uuid}");
    context.admin(Method::PATCH, &path, json!({"deleted": true})).await.assert_status(200);
    let mut staff = Staff::signed_in(&context, &acme, "support").await;
    let page = staff.get(&format!("/portal/users/{uuid}")).await;
    let text = page.assert_status(200).text();
    assert!(text.contains("deleted") && text.contains("unknown"), "{text}");
    assert!(!text.contains("<dd></dd>"), "{text}");
    assert!(!text.contains("Simulated identity check"), "nobody is checked: {text}");
}

#[tokio::test]
async fn the_price_of_a_cheap_coin_has_the_digits_that_partners_see() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let order = OrderFixture::order(&context, &acme, None, None).await;
    let cheap = "update buy_order set crypto_amount = 1000, price = 0.0712345678, \
                     fiat_amount = 71.23";
    sqlx::query(cheap).execute(context.db()).await.unwrap();
    let mut staff = Staff::signed_in(&context, &acme, "support").await;
    let seen = staff.get(&format!("/portal/orders/{}", order.id)).await;
    let paid = acme.anonymous(Method::GET, &order.pay_path).send().await;
    for page in [seen, paid] {
        assert!(page.assert_status(200).text().contains("0.0712346 EUR"), "{}", page.text());
    }
}

#[tokio::test]
async fn an_order_leads_to_its_user_for_who_may_see_users() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let user = acme.user("ada").await.log_in().await["uuid"].as_str().unwrap().to_owned();
    let order = OrderFixture::order(&context, &acme, None, None).await;
    sqlx::query("update buy_order set user_id = $1::uuid")
        .bind(&user)
        .execute(context.db())
        .await
        .unwrap();
    for (role, may) in [("support", true), ("developer", false)] {
        let mut staff = Staff::signed_in(&context, &acme, role).await;
        let page = staff.get(&format!("/portal/orders/{}", order.id)).await;
        let text = page.assert_status(200).text();
        let link = format!("href=\"/portal/users/{user}\"");
        assert_eq!((text.contains(&user), text.contains(&link)), (true, may), "{role}: {text}");
    }
}

#[tokio::test]
async fn a_user_is_found_by_every_name_and_shown_masked() {
    let context = TestContext::start().await;
    let (acme, rival) = (context.partner("acme").await, context.partner("rival").await);
    let mut staff = Staff::signed_in(&context, &acme, "support").await;
    let mut stranger = Staff::signed_in(&context, &rival, "support").await;
    let ada = acme.user("ada").await;
    let uuid = ada.log_in().await["uuid"].as_str().unwrap().to_owned();
    let path = format!("/portal/users/{uuid}");
    for name in ["ada@mail.example.com", &uuid, &ada.identifier] {
        let found = staff.submit("/portal/users", &[("name", name)]).await;
        assert_eq!(found.header("location"), Some(&*path), "{name}");
        let missed = stranger.submit("/portal/users", &[("name", name)]).await;
        missed.assert_status(200);
    }
    let page = staff.get(&path).await;
    let text = page.assert_status(200).text();
    assert!(text.contains("a•••@•••.com"), "{text}");
    for hidden in ["ada@mail.example.com", "mail.example"] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
    let looked = super::audited(&context).await;
    assert_eq!(looked, [("user.read-masked".to_owned(), "acme".to_owned())]);
    stranger.get(&path).await.assert_status(404);
    let outcome = [("outcome", "verified")];
    stranger.submit(&format!("{path}/identity"), &outcome).await;
    let user = format!("/admin/v1/users/{uuid}");
    let status = async || {
        let user = context.admin(Method::GET, &user, Value::Null).await.json();
        user["profile"]["status"]["details"]["identityVerificationStatus"].clone()
    };
    assert_eq!(status().await, "pending", "it is another partner's");
    staff.submit(&format!("{path}/identity"), &outcome).await.assert_status(303);
    assert_eq!(status().await, "verified");
}

#[tokio::test]
async fn a_developer_ends_identity_checks_of_test_users() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "developer").await;
    let (ada, path) = (acme.user("ada").await, "/portal/sandbox/identity");
    let page = staff.get("/portal/sandbox").await;
    assert!(page.assert_status(200).text().contains(path), "{}", page.text());
    let missed = staff.submit(path, &[("user", "nobody"), ("outcome", "verified")]).await;
    let text = missed.assert_status(400).text();
    assert!(text.contains("href=\"#field-user\"") && text.contains("value=\"nobody\""), "{text}");
    for outcome in ["failed", "verified"] {
        let form = [("user", &*ada.identifier), ("outcome", outcome)];
        staff.submit(path, &form).await.assert_status(303);
        let user = ada.get("/api/v1/user/info").await.assert_status(200).json();
        assert_eq!(user["status"]["details"]["identityVerificationStatus"], outcome);
    }
    let live = context.partner_of(json!({"slug": "live", "name": "Live", "mode": "live"})).await;
    let lea = live.user("lea").await;
    let mut staff = Staff::signed_in(&context, &live, "developer").await;
    let form = [("user", &*lea.identifier), ("outcome", "verified")];
    staff.submit(path, &form).await.assert_status(404);
}

#[tokio::test]
async fn a_test_order_follows_its_scenario_and_takes_events() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut staff = Staff::signed_in(&context, &acme, "developer").await;
    let page = staff.get("/portal/sandbox").await;
    assert!(page.assert_status(200).text().contains("sandbox-completed"));
    let made = staff.submit("/portal/sandbox/orders", &[("scenario", "held")]).await;
    let order = made.assert_status(303).header("location").unwrap().to_owned();
    let page = staff.get(&order).await;
    assert!(page.assert_status(200).text().contains("sandbox-held-"), "{}", page.text());
    let number = order.rsplit('/').next().unwrap();
    let event = |name: &str| format!("/portal/sandbox/orders/{number}/{name}");
    // Those that it takes in its state.
    let offers = |name: &str| page.text().contains(&format!("action=\"{}\"", event(name)));
    assert_eq!(["cancel", "release"].map(offers), [true, false], "{}", page.text());
    staff.submit(&event("cancel"), &[]).await.assert_status(303);
    let page = staff.get(&order).await;
    assert!(page.text().contains("cancelled"), "{}", page.text());
    assert!(!page.text().contains("Simulate an event"), "{}", page.text());
    staff.submit(&event("release"), &[]).await.assert_status(409);
    staff.submit(&event("nonsense"), &[]).await.assert_status(404);
    staff.submit("/portal/sandbox/orders", &[("scenario", "none")]).await.assert_status(404);
}

#[tokio::test]
async fn live_partners_have_no_sandbox() {
    let context = TestContext::start().await;
    let live = context.partner_of(json!({"slug": "live", "name": "Live", "mode": "live"})).await;
    let mut staff = Staff::signed_in(&context, &live, "owner").await;
    staff.get("/portal/sandbox").await.assert_status(404);
    assert!(!staff.get("/portal").await.text().contains("href=\"/portal/sandbox\""));
    staff.submit("/portal/sandbox/orders", &[("scenario", "completed")]).await.assert_status(404);
    let order = OrderFixture::order(&context, &live, None, None).await;
    let event = format!("/portal/sandbox/orders/{}/cancel", order.id);
    staff.submit(&event, &[]).await.assert_status(404);
    let page = staff.get(&format!("/portal/orders/{}", order.id)).await;
    assert!(!page.assert_status(200).text().contains("Simulate an event"));
}
