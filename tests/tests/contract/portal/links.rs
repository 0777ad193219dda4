//! Links to pages of the portal: on pages of other sites, and of members who are not signed in.

use http::Method;
use rampart_tests::staff::{PASSWORD, Staff};
use rampart_tests::test_context::TestContext;

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
