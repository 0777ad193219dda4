//! Refusals that a browser is shown: pages under the paths of pages, JSON under those of the API.

use http::{Method, StatusCode};
use rampart_core::platform::error::Code;
use rampart_tests::answer::Answer;
use rampart_tests::partner::Partner;
use rampart_tests::test_context::{TestContext, head};

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// Asks as a browser whose reader wants this language.
async fn asks(partner: &Partner, method: Method, path: &str, language: &str) -> Answer {
    let request = partner.anonymous(method, path).header("accept", BROWSER);
    request.header("accept-language", language).send().await
}

fn assert_page(answer: &Answer, status: u16, language: &str, code: &str) {
    let text = answer.assert_status(status).text();
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{text}");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("x-request-id"), Some("test-request"));
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    for part in [&*format!("<html lang=\"{language}\">"), code, "test-request", "<h1>"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn a_browser_is_shown_an_unknown_path_in_its_readers_language() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for (path, asked, language, words) in [
        ("/nowhere", "nl", "nl", "Deze pagina bestaat niet"),
        ("/de-de/nowhere", "nl", "de", "Diese Seite gibt es nicht"),
        ("/docs/nowhere", "fr", "fr", "Cette page n'existe pas"),
        ("/portal/nowhere", "sv", "en", "There is no such page"),
    ] {
        let page = asks(&acme, Method::GET, path, asked).await;
        assert_page(&page, 404, language, "998");
        assert!(page.text().contains(words), "{}", page.text());
    }
}

#[tokio::test]
async fn a_browser_is_shown_that_a_method_or_a_body_is_refused() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let refused = asks(&acme, Method::DELETE, "/nl-nl/faq", "en").await;
    assert_page(&refused, 405, "nl", "998");
    assert_eq!(refused.header("allow"), Some("GET, HEAD"));
    let upload = acme.anonymous(Method::POST, "/portal/keys").header("accept", BROWSER);
    let refused = upload.body(vec![b'a'; 300 * 1024]).send().await;
    assert_page(&refused, 413, "en", "048");
    assert!(refused.text().contains("choose a smaller file"), "{}", refused.text());
}

#[tokio::test]
async fn a_browser_is_told_when_to_try_again() {
    let context = TestContext::start().await;
    let core = context.core();
    let mut asked = head(Method::GET, "/pay/token");
    asked.headers.insert("accept", BROWSER.parse().unwrap());
    let status = StatusCode::SERVICE_UNAVAILABLE;
    let refusal = core.refuse("test-request", status, Code::GeneralError, "answer in time");
    let seconds = refusal.headers["retry-after"].clone();
    let codes = refusal.codes.clone();
    let reply = core.for_reader(&asked.path, &asked.headers, "test-request", refusal);
    assert_eq!(reply.codes, codes);
    assert_eq!(reply.headers["retry-after"], seconds);
    let page = Answer::new(reply.status, reply.headers, reply.body);
    assert_page(&page, 503, "en", "999");
    let wait = format!("try again in {} s", seconds.to_str().unwrap());
    assert!(page.text().contains(&wait), "{}", page.text());
}

#[tokio::test]
async fn the_api_answers_json_whatever_is_accepted() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for (method, path, status) in [
        (Method::GET, "/api/v2/nowhere", 404),
        (Method::DELETE, "/api/v2/prices", 405),
        (Method::GET, "/api/v2/prices", 400),
        (Method::DELETE, "/openapi.json", 405),
        (Method::GET, "/.well-known/nowhere", 404),
    ] {
        let answer = asks(&acme, method, path, "nl").await;
        assert!(!answer.assert_status(status).codes().is_empty(), "{path}");
        assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
    }
    for accept in ["*/*", "application/json", "text/html;q=0"] {
        let request = acme.anonymous(Method::GET, "/nowhere").header("accept", accept);
        request.send().await.assert_status(404).assert_codes(&["ER998"]);
    }
}
