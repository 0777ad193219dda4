//! A partner as a program far away: HTTPS, its credentials, and answers as bytes.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::certificate::CERTIFICATE;
use crate::partner::signature;

/// Timeout of an answer, for a machine that is busy with other tests: a gigabyte of uploads, or a
/// policy that is compiled at the lowest priority.
const PATIENCE: Duration = Duration::from_secs(120);

/// The protocol of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Protocol {
    /// A client that speaks nothing else and trusts the certificate of the harness. Its
    /// connections belong to the runtime of the test.
    pub fn client(self) -> reqwest::Client {
        self.client_from(None)
    }

    /// The same from this address of loopback.
    fn client_from(self, local: Option<IpAddr>) -> reqwest::Client {
        let builder = reqwest::Client::builder().no_proxy().timeout(PATIENCE).local_address(local);
        let builder = builder.redirect(reqwest::redirect::Policy::none());
        let builder = match self {
            Self::Http1 => builder.http1_only().tls_backend_preconfigured(tls("http/1.1")),
            Self::Http2 => builder.http2_prior_knowledge().tls_backend_preconfigured(tls("h2")),
        };
        builder.build().unwrap()
    }
}

fn tls(protocol: &str) -> rustls::ClientConfig {
    CERTIFICATE.client(&[protocol])
}

/// A partner and the edge it talks to. Its requests carry its API key, or its token once it has
/// authenticated, unless they say otherwise.
#[derive(Clone)]
pub struct Caller {
    http: reqwest::Client,
    edge: SocketAddr,
    local: Option<IpAddr>,
    made: Value,
    credential: (&'static str, String),
}

impl Caller {
    /// `made` is what the admin listener answered when the partner was made.
    pub fn new(edge: SocketAddr, protocol: Protocol, made: Value) -> Self {
        let credential = ("x-api-key", made["apiKey"].as_str().unwrap().to_owned());
        Self { http: protocol.client(), edge, local: None, made, credential }
    }

    /// The same partner with a client token, by `authenticate`. A token alone may confirm.
    pub async fn authenticated(&self) -> Self {
        let body =
            json!({"username": self.secret("username"), "password": self.secret("password")});
        let answer = self.anonymous(Method::POST, "/api/v1/authenticate").json(&body).send().await;
        let token = answer.assert_status(200).json()["token"].as_str().unwrap().to_owned();
        Self { credential: ("authorization", format!("Bearer {token}")), ..self.clone() }
    }

    /// Name and value of the header that its requests carry.
    pub fn credential(&self) -> (&'static str, &str) {
        (self.credential.0, &self.credential.1)
    }

    /// The same partner over this protocol, on connections of its own.
    pub fn over(&self, protocol: Protocol) -> Self {
        Self { http: protocol.client_from(self.local), ..self.clone() }
    }

    /// The same partner from this address of loopback, on connections that are opened from then on
    /// with [`Caller::over`] and [`Caller::at`].
    pub fn from(&self, local: IpAddr) -> Self {
        Self { local: Some(local), ..self.clone() }
    }

    /// The same partner at another edge, over HTTP/1.1.
    pub fn at(&self, edge: SocketAddr) -> Self {
        Self { edge, ..self.over(Protocol::Http1) }
    }

    /// A member of what the admin listener answered: `apiKey`, `username`, `webhookSecret` ...
    pub fn secret(&self, name: &str) -> &str {
        self.made[name].as_str().unwrap_or_else(|| panic!("no {name}"))
    }

    /// The admin listener's answer when the partner was made.
    pub(crate) fn made(&self) -> &Value {
        &self.made
    }

    /// Lower-case hex of HMAC-SHA256 with the signing secret, over a text that the test writes by
    /// hand.
    pub fn sign(&self, text: &str) -> String {
        signature(self.secret("signingSecret"), text)
    }

    /// GET with its credential.
    pub async fn get(&self, path: &str) -> Answer {
        self.request(Method::GET, path).send().await
    }

    /// POST of JSON with its credential.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.request(Method::POST, path).json(&body).send().await
    }

    /// A request with its credential.
    pub fn request(&self, method: Method, path: &str) -> Request {
        let (name, value) = self.credential();
        self.anonymous(method, path).header(name, value)
    }

    /// A request without a credential.
    pub fn anonymous(&self, method: Method, path: &str) -> Request {
        let http = self.http.request(method.clone(), format!("https://{}{path}", self.edge));
        Request { http, method, path: path.to_owned() }
    }
}

/// A request being put together.
pub struct Request {
    http: reqwest::RequestBuilder,
    method: Method,
    path: String,
}

impl Request {
    /// Adds a header.
    pub fn header(self, name: &str, value: &str) -> Self {
        Self { http: self.http.header(name, value), ..self }
    }

    /// Sends this JSON.
    pub fn json(self, body: &Value) -> Self {
        Self { http: self.http.json(body), ..self }
    }

    /// Sends these bytes.
    pub fn body(self, body: impl Into<Bytes>) -> Self {
        Self { http: self.http.body(body.into()), ..self }
    }

    /// Sends this form.
    pub fn form(self, body: &str) -> Self {
        let http = self.http.header("content-type", "application/x-www-form-urlencoded");
        Self { http: http.body(body.to_owned()), ..self }
    }

    /// The answer, checked for what every answer must be. Panics when there is none.
    pub async fn send(self) -> Answer {
        let what = format!("{} {}", self.method, self.path);
        self.try_send().await.unwrap_or_else(|error| panic!("{what}: {error:?}"))
    }

    /// The same when there may be none.
    ///
    /// # Errors
    /// The connection failed before the answer was complete.
    pub async fn try_send(self) -> reqwest::Result<Answer> {
        let answer = try_received(self.http.send().await?).await?;
        let path = self.path.split('?').next().unwrap_or_default();
        Ok(answer.checked(&self.method, path))
    }
}

/// A whole answer.
pub(crate) async fn received(response: reqwest::Response) -> Answer {
    try_received(response).await.unwrap()
}

async fn try_received(response: reqwest::Response) -> reqwest::Result<Answer> {
    let (status, headers) = (response.status(), response.headers().clone());
    Ok(Answer::new(status, headers, response.bytes().await?))
}
