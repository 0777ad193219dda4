//! A partner: a client with its credentials, and the requests it sends.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use rampart_core::Core;
use rampart_core::http::event_stream::EventStream;
use rampart_core::http::request::Head;
use ring::hmac;
use serde_json::Value;

use crate::answer::Answer;
use crate::document;
use crate::test_context::{TestContext, head};

/// A client of a context. Its requests carry its API key unless they say otherwise.
#[derive(Clone)]
pub struct Partner {
    core: Arc<Core>,
    /// Its id, a UUID.
    pub id: String,
    /// Its slug.
    pub slug: String,
    /// User name for `authenticate`.
    pub username: String,
    /// Password for `authenticate`.
    pub password: String,
    /// Its API key.
    pub api_key: String,
    /// Secret that signs its offers.
    pub signing_secret: String,
    /// Secret that signs callbacks to it.
    pub webhook_secret: String,
}

impl Partner {
    pub(crate) fn new(core: Arc<Core>, made: &Value) -> Self {
        let text = |name: &str| made[name].as_str().unwrap_or_else(|| panic!("{name}")).to_owned();
        Self {
            core,
            id: text("id"),
            slug: text("slug"),
            username: text("username"),
            password: text("password"),
            api_key: text("apiKey"),
            signing_secret: text("signingSecret"),
            webhook_secret: text("webhookSecret"),
        }
    }

    /// The same partner, talking to another edge.
    pub fn at(&self, edge: &TestContext) -> Self {
        Self { core: Arc::clone(edge.core()), ..self.clone() }
    }

    /// The same partner with another API key.
    pub fn with_key(&self, api_key: impl Into<String>) -> Self {
        Self { api_key: api_key.into(), ..self.clone() }
    }

    /// GET with the API key.
    pub async fn get(&self, path: &str) -> Answer {
        self.request(Method::GET, path).send().await
    }

    /// POST of JSON with the API key.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.request(Method::POST, path).json(&body).send().await
    }

    /// PATCH of JSON with the API key.
    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.request(Method::PATCH, path).json(&body).send().await
    }

    /// A request with the API key.
    pub fn request(&self, method: Method, path: &str) -> Request {
        self.anonymous(method, path).header("x-api-key", &self.api_key)
    }

    /// A request without a credential.
    pub fn anonymous(&self, method: Method, path: &str) -> Request {
        let head = head(method, path);
        Request { core: Arc::clone(&self.core), head, body: Bytes::new(), documented: true }
    }

    /// Lower-case hex of HMAC-SHA256 with the signing secret, over a text that the test writes by
    /// hand.
    pub fn sign(&self, text: &str) -> String {
        signature(&self.signing_secret, text)
    }

    /// A client token, by `authenticate`.
    pub async fn token(&self) -> String {
        let body = serde_json::json!({"username": self.username, "password": self.password});
        let answer = self.anonymous(Method::POST, "/api/v1/authenticate").json(&body).send().await;
        answer.assert_status(200);
        answer.json()["token"].as_str().unwrap().to_owned()
    }
}

/// Lower-case hex of HMAC-SHA256.
pub(crate) fn signature(secret: &str, text: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, text.as_bytes());
    tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A request being put together.
pub struct Request {
    core: Arc<Core>,
    head: Head,
    body: Bytes,
    documented: bool,
}

impl Request {
    /// Adds a header; one of the same name stays beside it.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().unwrap();
        self.head.headers.append(name, HeaderValue::from_str(value).unwrap());
        self
    }

    /// Removes a header.
    pub fn without(mut self, name: &str) -> Self {
        self.head.headers.remove(name);
        self
    }

    /// Comes from this address.
    pub fn from(mut self, peer: IpAddr) -> Self {
        self.head.peer = peer;
        self
    }

    /// Sends this JSON.
    pub fn json(self, body: &Value) -> Self {
        self.body(body.to_string())
    }

    /// Sends these bytes.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends members that the document does not have.
    pub fn undocumented(mut self) -> Self {
        self.documented = false;
        self
    }

    /// The events of an answer that goes on. Panics when the answer is another one.
    pub async fn events(self) -> EventStream {
        let reply = self.core.handle(self.head, self.body).await;
        assert_eq!(reply.status, StatusCode::OK, "{:?}", reply.body);
        assert_eq!(reply.headers["content-type"], "text/event-stream");
        reply.events.unwrap()
    }

    /// The answer, checked for what every answer must be.
    pub async fn send(self) -> Answer {
        let Head { method, path, query, .. } = self.head.clone();
        let reply = self.core.handle(self.head, self.body.clone()).await;
        let answer = Answer::of_edge(&method, &path, reply);
        if self.documented {
            document::PARTNERS.check(&method, &path, query.as_deref(), &self.body, &answer);
        }
        answer
    }
}
