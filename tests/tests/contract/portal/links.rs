//! Links to pages of the portal: on pages of other sites, of members who are not signed in, and from
//! one page of a list to the next.

use http::Method;
use rampart_tests::answer::Answer;
use rampart_tests::order_fixture::OrderFixture;
use rampart_tests::staff::{PASSWORD, Staff};
use rampart_tests::test_context::TestContext;
use serde_json::json;

use crate::sweeps::copy_order;

#[tokio::test]
async fn a_link_of_another_site_leads_on_from_a_page_of_our_own() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let opens = |path: &str, dest: &str| {
        let request = acme.anonymous(Method::GET, path).header("accept", "text/html,*/*;q=0.8");
        let request = request.header("sec-fetch-site", "cross-site");
        request.header("sec-fetch-mode", "navigate").header("sec-fetch-dest", dest).send()
    };
    // Without the cookie, which a browser does not send along.
    let path = "/portal/orders?status=pending";
    let page = opens(path, "document").await;
    assert_eq!(page.assert_status(200).header("refresh"), Some(&*format!("0; url={path}")));
    let form = opens("/portal/sign-in", "document").await;
    assert_eq!(form.assert_status(200).header("refresh"), Some("0; url=/portal/sign-in"));
    assert_eq!(form.header("set-cookie"), None, "it would spoil a form that is open");
    let framed = opens(path, "iframe").await;
    let form = "/portal/sign-in?page=%2Fportal%2Forders%3Fstatus%3Dpending";
    assert_eq!(framed.assert_status(303).header("location"), Some(form));
}

#[tokio::test]
async fn a_sign_in_leads_back_to_the_page_that_was_asked_for() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut ada = Staff::stranger(&acme, "ada@acme.example");
    ada.invited(&context, "owner").await;
    ada.joins(&context).await.assert_status(200);
    let path = "/portal/orders?status=pending&limit=5";
    let field = "name=\"page\" value=\"/portal/orders?status=pending&amp;limit=5\"";
    let led = ada.get(path).await;
    let form = led.assert_status(303).header("location").unwrap();
    assert_eq!(form, "/portal/sign-in?page=%2Fportal%2Forders%3Fstatus%3Dpending%26limit%3D5");
    let page = ada.get(form).await;
    assert!(page.assert_status(200).text().contains(field), "{}", page.text());
    let email = ada.email.clone();
    let fields = |page: &'static str, password: &'static str| {
        [("partner", "acme"), ("email", &*email), ("password", password), ("page", page)]
    };
    let wrong = ada.submit("/portal/sign-in", &fields(path, "a wrong password")).await;
    assert!(wrong.assert_status(401).text().contains(field), "{}", wrong.text());
    for (page, to) in [
        (path, path),
        ("", "/portal"),
        ("https://evil.example/portal/keys", "/portal"),
        ("/portal/../api/v2/prices", "/portal"),
    ] {
        let done = ada.submit("/portal/sign-in", &fields(page, PASSWORD)).await;
        assert_eq!(done.assert_status(303).header("location"), Some(to), "{page}");
    }
    ada.get(path).await.assert_status(200);
    let forged = ada.get("/portal/sign-in?page=https://evil.example/portal/").await;
    assert!(!forged.assert_status(200).text().contains("evil"), "{}", forged.text());
}

/// Adds so many events, each with a delivery to the only endpoint.
async fn deliver_events(context: &TestContext, count: i64) {
    sqlx::query(
        "with happened as ( \
             insert into event (client_id, event_id, type, payload, created_at) \
             select client_id, gen_random_uuid(), 'order.paid', '{}', now() \
             from client, generate_series(1, $1) n where slug = 'acme' \
             returning client_id, event_id \
         ) insert into delivery (client_id, delivery_id, event_id, endpoint_id, url, state, \
             next_attempt_at, created_at) \
         select h.client_id, gen_random_uuid(), h.event_id, w.endpoint_id, w.url, 'delivered', \
             now(), now() \
         from happened h join webhook_endpoint w on w.client_id = h.client_id",
    )
    .bind(count)
    .execute(context.db())
    .await
    .unwrap();
}

/// The path of the link to the next page; `None` without one.
fn next_page(page: &Answer) -> Option<String> {
    let (before, _) = page.assert_status(200).text().split_once("\">Earlier ")?;
    Some(before.rsplit('"').next().unwrap().replace("&amp;", "&"))
}

#[tokio::test]
async fn a_full_page_of_a_list_leads_to_another_one_if_there_are_more_rows() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let body = json!({"url": "https://shop.example/hook"});
    let endpoint = acme.post("/api/v2/webhooks", body).await.assert_status(200).json();
    let deliveries = format!("/portal/webhooks/{}", endpoint["id"].as_str().unwrap());
    let mut staff = Staff::signed_in(&context, &acme, "developer").await;
    OrderFixture::order(&context, &acme, None, None).await;
    copy_order(&context, "pending", 49).await;
    deliver_events(&context, 50).await;
    let lists = [
        ("/portal/orders", "href=\"/portal/orders/"),
        ("/portal/orders?status=pending", "href=\"/portal/orders/"),
        ("/portal/events", "href=\"/portal/events/"),
        ("/portal/events?type=order.paid", "href=\"/portal/events/"),
        (&*deliveries, "href=\"/portal/deliveries/"),
    ];
    for (path, row) in lists {
        let page = staff.get(path).await;
        assert_eq!(next_page(&page), None, "{path}: {}", page.text());
        assert_eq!(page.text().matches(row).count(), 50, "{path}: {}", page.text());
    }
    OrderFixture::order(&context, &acme, None, None).await;
    deliver_events(&context, 1).await;
    for (path, row) in lists {
        let page = staff.get(path).await;
        assert_eq!(page.text().matches(row).count(), 50, "{path}: {}", page.text());
        let last = staff.get(&next_page(&page).unwrap()).await;
        assert_eq!(next_page(&last), None, "{path}: {}", last.text());
        assert_eq!(last.text().matches(row).count(), 1, "{path}: {}", last.text());
    }
}
