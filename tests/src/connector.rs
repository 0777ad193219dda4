//! A connector: a program with a token, and the calls that it makes.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method};
use rampart_core::Core;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::document;
use crate::going_live;
use crate::test_context::{TestContext, head};

/// A connector of a context.
#[derive(Clone)]
pub struct Connector {
    core: Arc<Core>,
    /// Its token.
    pub token: String,
}

impl Connector {
    /// A new connector that takes commands of these kinds.
    pub async fn new(context: &TestContext, name: &str, capabilities: &[&str]) -> Self {
        let body = json!({ "name": name, "capabilities": capabilities });
        let made = context.admin(Method::POST, "/admin/v1/connectors", body).await;
        let made = made.assert_status(201).json();
        let token = made["token"].as_str().unwrap().to_owned();
        Self { core: Arc::clone(context.core()), token }
    }

    /// The connector that live partners of the context are routed to. Called before the first of them
    /// is made.
    pub async fn of_live(context: &TestContext) -> Self {
        let token = going_live::prepare(&mut async |method, path, body| {
            context.admin(method, &path, body).await
        })
        .await;
        Self { core: Arc::clone(context.core()), token: token.unwrap() }
    }

    /// Fills the pools of addresses for deposits, that of the asset with these.
    pub async fn fill_pool(&self, context: &TestContext, asset: &str, addresses: Value) {
        context.core().fill_deposit_pools().await.unwrap();
        for command in self.lease(100).await {
            if command["body"]["asset"] == asset {
                self.report(&command, "done", addresses.clone()).await.assert_status(200);
            }
        }
    }

    /// The same connector with another token.
    pub fn with_token(&self, token: impl Into<String>) -> Self {
        Self { token: token.into(), ..self.clone() }
    }

    /// A call with these bytes. The answer is held to the document.
    pub async fn call_bytes(&self, method: Method, path: &str, body: Bytes) -> Answer {
        let mut head = head(method.clone(), path);
        let token = HeaderValue::from_str(&format!("Bearer {}", self.token)).unwrap();
        head.headers.insert("authorization", token);
        // On the heap: unoptimised, a test's calls would not fit on its thread's stack.
        let reply = Box::pin(self.core.connectors(head, body.clone())).await;
        let answer = Answer::new(reply.status, reply.headers, reply.body);
        assert!(answer.header("x-request-id").is_some(), "{method} {path}: no request id");
        document::CONNECTORS.check(&method, path, None, &body, &answer);
        answer
    }

    /// A call with this JSON.
    pub async fn call(&self, method: Method, path: &str, body: Value) -> Answer {
        self.call_bytes(method, path, body.to_string().into()).await
    }

    /// Leases up to `max` commands without waiting.
    pub async fn lease(&self, max: u16) -> Vec<Value> {
        let body = json!({ "max": max, "waitSeconds": 0, "leaseSeconds": 60 });
        let leased = self.call(Method::POST, "/connectors/v1/commands/lease", body).await;
        leased.assert_status(200).json().as_array().unwrap().clone()
    }

    /// Reports a result of a leased command.
    pub async fn report(&self, command: &Value, outcome: &str, result: Value) -> Answer {
        let body =
            json!({"leaseToken": command["leaseToken"], "outcome": outcome, "result": result});
        let path = format!("/connectors/v1/commands/{}/result", command["id"].as_str().unwrap());
        self.call(Method::POST, &path, body).await
    }

    /// Leases the next command and reports this result of it; the command.
    pub async fn answer_next(&self, outcome: &str, result: Value) -> Value {
        let command = self.lease(1).await.remove(0);
        self.report(&command, outcome, result).await.assert_status(200);
        command
    }

    /// Stores a checkpoint of a leased command.
    pub async fn checkpoint(&self, command: &Value, checkpoint: Value) -> Answer {
        let body = json!({"leaseToken": command["leaseToken"], "checkpoint": checkpoint});
        let id = command["id"].as_str().unwrap();
        let path = format!("/connectors/v1/commands/{id}/checkpoint");
        self.call(Method::PUT, &path, body).await
    }

    /// Reports an event.
    pub async fn event(&self, event: Value) -> Answer {
        self.call(Method::POST, "/connectors/v1/events", event).await
    }
}
