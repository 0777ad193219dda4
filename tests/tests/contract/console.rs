//! The operators' console over their listener: sign-in, pages by role, forms, and what they leave.

mod choices;
mod connectors;
mod files;
mod forms;
mod market;
mod more;
mod offered;
mod operators;
mod pages;
mod partners;
mod policies;
mod refunds;
mod savings_plans;
mod second_clicks;
mod sign_in;

use std::cell::RefCell;

use bytes::Bytes;
use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderValue, Method};
use rampart_api::operate::listener;
use rampart_core::http::reply::Reply;
use rampart_core::http::request::Head;
use rampart_tests::test_context::{TestContext, head};
use serde_json::{Value, json};
use url::form_urlencoded;

/// A browser at the operators' listener: it keeps cookies and follows nothing.
struct Browser<'a> {
    context: &'a TestContext,
    cookies: RefCell<Vec<(String, String)>>,
}

/// A page that came.
struct Shown {
    status: u16,
    text: String,
    reply: Reply,
}

impl Shown {
    fn assert(self, status: u16, text: &str) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        assert!(self.text.contains(text), "no {text:?} in {}", self.text);
        self
    }

    fn header(&self, name: &str) -> &str {
        self.reply.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The token of the page's last form.
    fn csrf_token(&self) -> String {
        let start = "name=\"csrfToken\" value=\"";
        let (_, rest) = self.text.rsplit_once(start).unwrap_or_else(|| panic!("{}", self.text));
        rest.split('"').next().unwrap().to_owned()
    }
}

impl<'a> Browser<'a> {
    fn new(context: &'a TestContext) -> Self {
        Self { context, cookies: RefCell::default() }
    }

    /// One of an operator with these roles, signed in.
    async fn of(context: &'a TestContext, name: &str, roles: &[&str]) -> Self {
        let token = context.operator(name, roles).await;
        let browser = Self::new(context);
        browser.sign_in(&token).await.assert(303, "");
        browser
    }

    async fn sign_in(&self, token: &str) -> Shown {
        let csrf_token = self.get("/console").await.csrf_token();
        self.post("/console/sign-in", &[("token", token), ("csrfToken", &csrf_token)]).await
    }

    async fn get(&self, path: &str) -> Shown {
        self.send(Method::GET, path, &[], Bytes::new()).await
    }

    /// Posts these members.
    async fn post(&self, path: &str, members: &[(&str, &str)]) -> Shown {
        let mut form = form_urlencoded::Serializer::new(String::new());
        let form = form.extend_pairs(members).finish();
        let media_type = ("content-type", "application/x-www-form-urlencoded");
        self.send(Method::POST, path, &[media_type], form.into()).await
    }

    /// Opens a form and sends it with these members.
    async fn submit(&self, path: &str, members: &[(&str, &str)]) -> Shown {
        let csrf_token = self.get(path).await.assert(200, "<form").csrf_token();
        let members: Vec<_> =
            members.iter().copied().chain([("csrfToken", &*csrf_token)]).collect();
        self.post(path, &members).await
    }

    /// The head of a request with the cookies.
    fn head(&self, method: Method, path: &str) -> Head {
        let mut head = head(method, path);
        let pairs: Vec<_> = self.cookies.borrow().iter().map(|(n, v)| format!("{n}={v}")).collect();
        head.headers.insert(COOKIE, pairs.join("; ").parse().unwrap());
        head.headers.insert("host", HeaderValue::from_static("127.0.0.1:9443"));
        head
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Bytes,
    ) -> Shown {
        let mut head = self.head(method, path);
        for (name, value) in headers {
            head.headers.insert(*name, value.parse().unwrap());
        }
        // On the heap: unoptimised, a test's calls would not fit on its thread's stack.
        let reply = Box::pin(listener::answer(self.context.core(), head, body)).await;
        for set in reply.headers.get_all(SET_COOKIE) {
            let pair = set.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            let mut cookies = self.cookies.borrow_mut();
            cookies.retain(|(known, _)| known != name);
            if !value.is_empty() {
                cookies.push((name.to_owned(), value.to_owned()));
            }
        }
        let mut body = reply.body.to_vec();
        if let Some(mut file) = reply.file.clone() {
            while let Some(part) = file.next().await {
                body.extend_from_slice(&part.unwrap());
            }
        }
        let text = String::from_utf8(body).unwrap();
        Shown { status: reply.status.as_u16(), text, reply }
    }
}

/// Asks for an action, has another operator agree, and carries it out.
async fn together(
    ada: &Browser<'_>,
    bob: &Browser<'_>,
    action: &str,
    typed: &[(&str, &str)],
) -> Shown {
    let waits = ada.submit(action, typed).await.assert(303, "");
    let approval = waits.header("location").split("waits=").nth(1).unwrap().to_owned();
    let approval = format!("/console/approvals/{approval}");
    bob.submit(&format!("{approval}/grant"), &[]).await.assert(303, "");
    let carried_out = ada.submit(&format!("{approval}/carry-out"), &[]).await;
    carried_out.assert(200, "The call is carried out.")
}

/// The newest row of the audit with this action.
async fn audited(context: &TestContext, action: &str) -> Value {
    let list = context.admin(Method::GET, "/admin/v1/audit", Value::Null).await.json();
    let rows = list.as_array().unwrap();
    rows.iter().find(|row| row["action"] == action).cloned().unwrap_or_default()
}
