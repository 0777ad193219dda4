//! Loops over the table of pages, for whoever has no session and no link: what a stranger can send.

use bytes::Bytes;
use http::Method;
use rampart_api::PAGES;
use rampart_tests::test_context::TestContext;

use super::some_path;

const FORM: &str = "application/x-www-form-urlencoded";
const FILES: &str = "multipart/form-data; boundary=b1";

/// Headers by which a page instructs browsers.
const TOLD: [&str; 3] = ["content-security-policy", "referrer-policy", "x-content-type-options"];

/// Bodies with their media types: empty, broken, forged, and of another kind.
const BODIES: [(&str, &str); 6] = [
    (FORM, ""),
    (FORM, "%&%zz=%00&=&a=1&a=2"),
    (FORM, "action=confirm&formToken=AAAA&csrfToken=AAAA&step=1"),
    (FILES, "--b1\r\nContent-Disposition: form-data"),
    ("application/json", r#"{"action":"confirm"}"#),
    ("text/plain;charset=nonsense", "nonsense"),
];

#[tokio::test]
async fn no_page_breaks_and_each_tells_browsers_what_they_may_do() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for route in PAGES {
        let bodies = if route.method == Method::GET { &BODIES[..1] } else { &BODIES };
        for (media_type, body) in bodies {
            let request = acme.anonymous(route.method.clone(), &some_path(route));
            let answer = request.header("content-type", media_type).body(*body).send().await;
            let said = format!("{route:?} {media_type} {body}: {}", answer.status());
            assert!(answer.status() < 500, "{said}");
            let is_page = answer.header("content-type").is_some_and(|it| it.contains("text/html"));
            for name in TOLD {
                assert!(!is_page || answer.header(name).is_some(), "{name}: {said}");
            }
            let is_kept_from_others =
                |cookie: &str| cookie.contains("; HttpOnly") && cookie.contains("; SameSite=");
            assert!(answer.header("set-cookie").is_none_or(is_kept_from_others), "{said}");
        }
    }
}

#[tokio::test]
async fn an_oversized_form_is_413_on_every_page() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for route in PAGES.iter().filter(|route| route.method == Method::POST) {
        let body = Bytes::from(vec![b'a'; route.body.bound().0 + 1]);
        let request = acme.anonymous(Method::POST, &some_path(route));
        let answer = request.header("content-type", FORM).body(body).send().await;
        assert_eq!(answer.status(), 413, "{route:?}");
    }
}

#[tokio::test]
async fn another_method_is_told_which_ones_a_page_has() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    for route in PAGES {
        let answer = acme.anonymous(Method::DELETE, &some_path(route)).send().await;
        assert_eq!(answer.status(), 405, "{route:?}");
        assert!(answer.header("allow").unwrap().contains(route.method.as_str()), "{route:?}");
    }
}
