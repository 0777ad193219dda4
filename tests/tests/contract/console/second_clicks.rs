//! Forms that are sent twice: each is carried out once, and both clicks show its answer.

use super::*;
use rampart_api::operate::listener;

impl Shown {
    /// A member of the answer that the page shows.
    fn member(&self, name: &str) -> &str {
        let start = format!("<dt>{name}</dt><dd><code>");
        let (_, rest) = self.text.split_once(&start).unwrap_or_else(|| panic!("{}", self.text));
        rest.split('<').next().unwrap()
    }
}

/// Ends the time of what is kept for a second click.
pub(super) async fn forget(context: &TestContext) {
    let end = "update idempotency_key set expires_at = now() where route = '/console'";
    sqlx::query(end).execute(context.db()).await.unwrap();
}

#[tokio::test]
async fn of_several_that_send_one_form_one_is_carried_out_and_all_see_the_key() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    let path = "/console/partners/acme/issue-key";
    let csrf_token = ada.get(path).await.csrf_token();
    let members = [("name", "office"), ("csrfToken", &*csrf_token)];
    let sent = futures::future::join_all((0..4).map(|_| ada.post(path, &members))).await;
    let keys: Vec<_> = sent.iter().map(|shown| (shown.status, shown.member("apiKey"))).collect();
    let key = keys[0].1;
    assert!(key.starts_with("rk_test_"), "{key}");
    assert!(keys.iter().all(|shown| *shown == (200, key)), "{keys:?}");
    let partner = context.admin(Method::GET, "/admin/v1/partners/acme", Value::Null).await.json();
    assert_eq!(partner["apiKeys"].as_array().unwrap().len(), 2);
    // What is kept for the second click is sealed.
    let kept = "select body from idempotency_key where route = '/console'";
    let kept: Vec<Vec<u8>> = sqlx::query_scalar(kept).fetch_all(context.db()).await.unwrap();
    assert_eq!(kept.len(), 1);
    assert!(!kept[0].windows(8).any(|bytes| bytes == b"rk_test_"));
}

#[tokio::test]
async fn a_second_click_on_rotate_shows_the_same_secret_for_ten_minutes() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    let path = "/console/partners/acme/rotate-secret";
    let csrf_token = ada.get(path).await.csrf_token();
    let send = async |browser: &Browser<'_>, overlap: &str| {
        let typed = [("kind", "webhook"), ("overlapSeconds", overlap), ("csrfToken", &*csrf_token)];
        browser.post(path, &typed).await
    };
    let first = send(&ada, "60").await.assert(200, "Done: Rotate a secret.");
    let second = send(&ada, "60").await.assert(200, "Done: Rotate a secret.");
    assert_eq!(second.member("secret"), first.member("secret"));
    // What was changed meanwhile is not what was done, and another session has not done it.
    send(&ada, "0").await.assert(409, "was sent before");
    let elsewhere = Browser::of(&context, "eve", &["platform"]).await;
    send(&elsewhere, "60").await.assert(403, "earlier sign-in");
    forget(&context).await;
    let late = send(&ada, "60").await.assert(409, "was sent before");
    assert!(!late.text.contains(first.member("secret")));
    let list = context.admin(Method::GET, "/admin/v1/audit", Value::Null).await.json();
    let rotations = list.as_array().unwrap().iter().filter(|row| row["action"] == "secret.rotate");
    assert_eq!(rotations.count(), 1);
}

#[tokio::test]
async fn a_second_click_on_carry_out_shows_the_same_token() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    let bob = Browser::of(&context, "bob", &["platform"]).await;
    let cards = json!({"name": "cards", "capabilities": ["payment.create"]});
    context.admin(Method::POST, "/admin/v1/connectors", cards).await.assert_status(201);
    let rotate = "/console/connectors/cards/rotate";
    let waits = ada.submit(rotate, &[("overlapSeconds", "0")]).await.assert(303, "");
    let approval = waits.header("location").split("waits=").nth(1).unwrap().to_owned();
    let approval = format!("/console/approvals/{approval}");
    bob.submit(&format!("{approval}/grant"), &[]).await.assert(303, "");
    let carry_out = format!("{approval}/carry-out");
    let csrf_token = ada.get(&carry_out).await.csrf_token();
    let send = async || {
        let sent = ada.post(&carry_out, &[("csrfToken", &csrf_token)]).await;
        sent.assert(200, "The call is carried out.")
    };
    let first = send().await;
    assert!(first.member("token").starts_with("rcn_"), "{}", first.text);
    assert_eq!(send().await.member("token"), first.member("token"));
    ada.get(&carry_out).await.assert(409, "carried out already");
}

#[tokio::test]
async fn a_second_click_sees_why_the_first_was_refused() {
    let context = TestContext::start().await;
    context.partner("acme").await;
    let ada = Browser::of(&context, "ada", &["platform"]).await;
    let path = "/console/partners/acme/issue-key";
    let csrf_token = ada.get(path).await.csrf_token();
    let name = "a".repeat(256);
    let members = [("name", &*name), ("csrfToken", &*csrf_token)];
    let first = ada.post(path, &members).await.assert(422, "at most 255 characters");
    let second = ada.post(path, &members).await.assert(422, "at most 255 characters");
    assert_ne!(first.csrf_token(), second.csrf_token(), "each page has a form of its own");
}

#[tokio::test]
async fn a_page_names_the_request_whose_call_failed() {
    let context = TestContext::start().await;
    let ada = Browser::of(&context, "ada", &["owner"]).await;
    let path = "/console/partners/~/create";
    let csrf_token = ada.get(path).await.csrf_token();
    let away = "alter table audit rename to away";
    sqlx::query(away).execute(context.db()).await.unwrap();
    ada.get("/console/audit")
        .await
        .assert(500, "This does not work at the moment")
        .assert(500, "something went wrong on our side. Request: test-request");
    // The second click is another request, and shows the one that did it.
    let form = form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("slug", "acme"), ("name", "Acme"), ("mode", "test")])
        .append_pair("csrfToken", &csrf_token)
        .finish();
    for request_id in ["first", "second"] {
        let mut head = ada.head(Method::POST, path);
        let media_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        head.headers.insert("content-type", media_type);
        head.request_id = request_id.to_owned();
        let reply =
            Box::pin(listener::answer(context.core(), head, Bytes::from(form.clone()))).await;
        let text = std::str::from_utf8(&reply.body).unwrap();
        assert_eq!(reply.status.as_u16(), 500, "{text}");
        assert!(text.contains("our side. Request: first"), "{text}");
    }
}
