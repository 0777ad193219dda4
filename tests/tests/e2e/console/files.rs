//! A list as a file over the network: of many pages, complete, on a connection that goes on.

use std::collections::BTreeMap;

use rampart_tests::caller::Protocol;
use reqwest::header::{CONTENT_TYPE, COOKIE, SET_COOKIE};
use reqwest::{Client, RequestBuilder, Response};
use url::form_urlencoded;

use super::*;

/// Partners of the list: more than a page has.
const PARTNERS: usize = 52;

/// A client that keeps cookies.
struct Visitor {
    client: Client,
    cookies: BTreeMap<String, String>,
}

impl Visitor {
    async fn send(&mut self, request: RequestBuilder) -> Response {
        let cookies = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        let cookies = cookies.collect::<Vec<_>>().join("; ");
        let answer = request.header(COOKIE, cookies).send().await.unwrap();
        for set in answer.headers().get_all(SET_COOKIE) {
            let pair = set.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        answer
    }
}

#[tokio::test]
async fn a_file_of_many_pages_arrives_whole() {
    let edge = Edge::start().await;
    for number in 0..PARTNERS {
        let slug = format!("p{number:02}");
        let new = json!({"slug": slug, "name": slug, "mode": "test"});
        edge.admin(Method::POST, "/admin/v1/partners", new).await.assert_status(201);
    }
    let token = owner(&edge, "ada").await;
    let own = format!("http://{}/console", edge.admin);
    let mut visitor = Visitor { client: Protocol::Http1.client(), cookies: BTreeMap::new() };
    let page = visitor.send(visitor.client.get(&own)).await.text().await.unwrap();
    let csrf_token = page.rsplit_once("name=\"csrfToken\" value=\"").unwrap().1;
    let csrf_token = csrf_token.split('"').next().unwrap().to_owned();
    let form = [("token", token), ("csrfToken", csrf_token)];
    let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let signed_in = visitor.client.post(format!("{own}/sign-in")).body(form);
    let signed_in = signed_in.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    visitor.send(signed_in).await;
    for _ in 0..2 {
        let url = format!("{own}/partners?format=csv&columns=Partner&columns=Mode");
        let file = visitor.send(visitor.client.get(url)).await;
        assert_eq!(file.status(), 200);
        assert_eq!(file.headers()["content-type"], "text/csv; charset=utf-8");
        assert_eq!(file.headers()["transfer-encoding"], "chunked");
        let text = file.text().await.unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (PARTNERS + 1, "Partner,Mode"));
        assert_eq!((lines[1], lines[PARTNERS]), ("p00,test", "p51,test"));
    }
}
