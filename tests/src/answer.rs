//! An answer as bytes, and the promises of every answer.

use std::fmt::Write as _;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use rampart_core::http::reply::Reply;
use serde_json::Value;

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    /// An answer of the edge. Panics when it breaks a promise that every answer keeps: a request
    /// id, a caching rule, an envelope on errors whose codes are logged, and no code that its route
    /// does not declare.
    pub fn of_edge(method: &Method, path: &str, reply: Reply) -> Self {
        let mut logged: Vec<_> = reply.codes.iter().map(|code| code.as_str().to_owned()).collect();
        let answer = Self::new(reply.status, reply.headers, reply.body).checked(method, path);
        let codes = answer.codes();
        if !codes.is_empty() {
            logged.sort();
            assert_eq!(logged, codes, "{method} {path}: codes for the log and of the envelope");
        }
        answer
    }

    /// An answer of the operators' API. Panics when it breaks a promise that every answer keeps: a
    /// request id, no caching, a reason on errors, and no status that its route does not declare.
    pub fn of_operators(method: &Method, path: &str, reply: Reply) -> Self {
        let answer = Self::new(reply.status, reply.headers, reply.body);
        assert!(answer.header("x-request-id").is_some(), "{method} {path}: no request id");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{method} {path}");
        if answer.status.is_client_error() || answer.status.is_server_error() {
            let json = answer.json();
            // Going live says besides what is missing.
            let missing = usize::from(json["missing"].is_array());
            let members = json.as_object().map(|json| json.len() - missing);
            assert_eq!((members, json["error"].is_string()), (Some(1), true), "{method} {path}");
        }
        if let Some(route) = rampart_api::OPERATORS_API.find(method, path).endpoint() {
            let declared = route.declares_status(answer.status);
            assert!(declared, "{route:?} answered undeclared {}", answer.dump());
        }
        answer
    }

    /// An answer as it came over the network, of any listener.
    pub fn new(status: StatusCode, headers: HeaderMap, body: Bytes) -> Self {
        Self { status, headers, body }
    }

    /// The same, once it was seen to keep what every answer of the edge promises.
    pub fn checked(self, method: &Method, path: &str) -> Self {
        assert!(self.header("x-request-id").is_some(), "{method} {path}: no request id");
        assert!(self.header("cache-control").is_some(), "{method} {path}: no Cache-Control");
        let failed = self.status.is_client_error() || self.status.is_server_error();
        // A page for people says in words what is wrong.
        let page = self.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
        if failed && !page {
            self.check_errors(method, path);
        }
        self
    }

    fn check_errors(&self, method: &Method, path: &str) {
        let Some(errors) = self.json()["errors"].as_object().cloned() else {
            // `user/exists` answers 404 with `{"exists":false}`, which is no error.
            assert!(self.json()["exists"].is_boolean(), "{method} {path}: {}", self.text());
            return;
        };
        assert!(!errors.is_empty(), "{method} {path}: an empty envelope");
        for (key, error) in &errors {
            assert_eq!(error["code"], **key, "{method} {path}");
            for member in ["message", "solution"] {
                assert!(error[member].as_str().is_some_and(|t| !t.is_empty()), "{key} {member}");
            }
            if let Some(route) = rampart_api::PARTNERS_API.find(method, path).endpoint() {
                assert!(route.declares_text(key), "{route:?} answered undeclared {key}");
            }
        }
    }

    /// The status.
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// A header's text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Every header whose value is text, in the order of the answer.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }

    /// The body.
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The body as JSON; `Null` when it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// `true` for an error of either API.
    pub fn is_refusal(&self) -> bool {
        !self.codes().is_empty() || self.json()["error"].is_string()
    }

    /// Codes of the error envelope, sorted.
    pub fn codes(&self) -> Vec<String> {
        let json = self.json();
        let mut codes: Vec<_> = json["errors"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(code, _)| code.clone())
            .collect();
        codes.sort();
        codes
    }

    /// Panics unless the status is this one.
    #[track_caller]
    pub fn assert_status(&self, status: u16) -> &Self {
        assert_eq!(self.status(), status, "{}", self.dump());
        self
    }

    /// Panics unless it is an error with exactly these codes, in any order.
    #[track_caller]
    pub fn assert_codes(&self, codes: &[&str]) -> &Self {
        let mut expected = codes.to_vec();
        expected.sort_unstable();
        assert_eq!(self.codes(), expected, "{}", self.dump());
        self
    }

    fn dump(&self) -> String {
        let mut dump = format!("{}\n", self.status);
        for (name, value) in &self.headers {
            let _ = writeln!(dump, "{name}: {value:?}");
        }
        dump + &String::from_utf8_lossy(&self.body)
    }
}
