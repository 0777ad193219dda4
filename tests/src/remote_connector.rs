//! A connector that the test plays, over the edge's own listener.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::caller::Protocol;
use crate::deadline::until;
use crate::edge::Edge;

/// Time within which a command that is waited for has come, on a busy machine.
const WITHIN: Duration = Duration::from_secs(60);

/// The connector.
#[derive(Clone)]
pub struct RemoteConnector {
    url: String,
    /// Its token.
    pub token: String,
}

impl RemoteConnector {
    /// A new one that takes commands of these kinds.
    pub async fn add(edge: &Edge, name: &str, kinds: &[&str]) -> Self {
        let body = json!({ "name": name, "capabilities": kinds });
        let made = edge.admin(Method::POST, "/admin/v1/connectors", body).await;
        let token = made.assert_status(201).json()["token"].as_str().unwrap().to_owned();
        Self { url: format!("http://{}/connectors/v1/", edge.connectors), token }
    }

    /// A call that the edge grants.
    pub async fn call(&self, path: &str, body: Value) -> Value {
        let request = Protocol::Http1.client().post(format!("{}{path}", self.url));
        let request = request.bearer_auth(&self.token).body(body.to_string());
        let answer = request.send().await.unwrap();
        let (status, answer) = (answer.status(), answer.json().await.unwrap());
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    /// The next command of one of these kinds, if there is one within a second.
    pub async fn lease(&self, kinds: &[&str]) -> Option<Value> {
        let lease = json!({"max": 1, "waitSeconds": 1, "leaseSeconds": 60, "kinds": kinds});
        self.call("commands/lease", lease).await.as_array().unwrap().first().cloned()
    }

    /// The next command of this kind.
    pub async fn next(&self, kind: &str) -> Value {
        until(&format!("{kind} is commanded"), WITHIN, async || self.lease(&[kind]).await).await
    }

    /// Reports that a command is done.
    pub async fn done(&self, command: &Value, result: Value) {
        let body =
            json!({"leaseToken": command["leaseToken"], "outcome": "done", "result": result});
        self.call(&format!("commands/{}/result", command["id"].as_str().unwrap()), body).await;
    }
}
