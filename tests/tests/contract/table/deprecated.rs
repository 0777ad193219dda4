//! Calls of version 1 that version 2 replaces say so in every answer.

use rampart_api::ENDPOINTS;
use rampart_tests::document::{PARTNERS, operation};
use rampart_tests::test_context::TestContext;

use super::some_path;

const REPLACED: [(&str, &str); 3] = [
    ("/api/v1/prices", "/api/v2/prices"),
    ("/api/v1/buy/confirm", "/api/v2/buy/confirm"),
    (
        "/api/v1/user/buy/orders/00000000-0000-7000-8000-000000000000",
        "/api/v2/buy/orders/00000000-0000-7000-8000-000000000000",
    ),
];

#[tokio::test]
async fn a_replaced_call_names_its_end_and_its_successor() {
    let context = TestContext::start().await;
    let acme = context.partner("acme").await;
    let mut found = 0;
    for route in ENDPOINTS {
        let path = some_path(route);
        let successor = REPLACED.iter().find(|(replaced, _)| *replaced == path);
        let link = successor.map(|(_, by)| format!("<{by}>; rel=\"successor-version\""));
        found += usize::from(link.is_some());
        let known = acme.request(route.method.clone(), &path).body("{}").send().await;
        let unknown = acme.anonymous(route.method.clone(), &path).body("{}").send().await;
        for answer in [known, unknown] {
            let dates = [answer.header("deprecation"), answer.header("sunset")];
            let expected = link.as_ref().map(|_| "@1793491200");
            let sunset = link.as_ref().map(|_| "Mon, 01 Nov 2027 00:00:00 GMT");
            assert_eq!(dates, [expected, sunset], "{route:?}: {}", answer.text());
            assert_eq!(answer.header("link"), link.as_deref(), "{route:?}");
        }
        let pointer = operation(route.path, &route.method);
        let documented = PARTNERS.value().pointer(&pointer).unwrap();
        assert_eq!(documented["deprecated"] == true, link.is_some(), "{route:?}");
    }
    assert_eq!(found, REPLACED.len());
    let answer = acme.get("/api/v1/prices").await;
    let tag = answer.assert_status(200).header("etag").unwrap().to_owned();
    let again = acme.request(http::Method::GET, "/api/v1/prices").header("if-none-match", &tag);
    let again = again.send().await;
    assert!(again.assert_status(304).header("sunset").is_some());
    let odd = acme.get("/api/v1/user/buy/orders/a%3E%22b").await;
    let link = "</api/v2/buy/orders/a%3E%22b>; rel=\"successor-version\"";
    assert_eq!(odd.header("link"), Some(link));
}
