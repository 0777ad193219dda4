//! JSON-RPC over HTTP.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Longest time of one call.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// A call that a node did not carry out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RpcError {
    /// The node does not answer.
    #[error("{method}: {source}")]
    Transport {
        /// The method.
        method: &'static str,
        /// The reason. Without the URL, which may hold a key.
        source: reqwest::Error,
    },
    /// The node refuses.
    #[error("{method}: {message} ({code})")]
    Node {
        /// The method.
        method: &'static str,
        /// The node's code.
        code: i64,
        /// The node's reason.
        message: String,
    },
    /// The answer has another form than the method's.
    #[error("{method}: the answer cannot be read: {reason}")]
    Answer {
        /// The method.
        method: &'static str,
        /// The reason.
        reason: String,
    },
}

impl RpcError {
    /// True if a contract has refused the call.
    pub(crate) fn is_revert(&self) -> bool {
        matches!(self, Self::Node { code, message, .. }
            if *code == 3 || message.to_ascii_lowercase().contains("revert"))
    }
}

/// A node, or a signer that speaks as one.
#[derive(Clone, Debug)]
pub(crate) struct Rpc {
    http: reqwest::Client,
    url: String,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    result: Value,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    code: i64,
    message: String,
}

impl Rpc {
    /// # Errors
    /// When the HTTP client cannot be made.
    pub(crate) fn new(url: &str) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .timeout(CALL_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()?;
        Ok(Self { http, url: url.to_owned() })
    }

    /// The result of a call.
    ///
    /// # Errors
    /// When the node does not answer, or refuses.
    pub(crate) async fn call<R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: impl Serialize,
    ) -> Result<R, RpcError> {
        let transport =
            |source: reqwest::Error| RpcError::Transport { method, source: source.without_url() };
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params_of(params, method)?});
        let request = self.http.post(&self.url).json(&body);
        let answer = request.send().await.map_err(transport)?;
        let answer: Answer = answer.json().await.map_err(transport)?;
        if let Some(Refusal { code, message }) = answer.error {
            return Err(RpcError::Node { method, code, message });
        }
        R::deserialize(answer.result).map_err(|error| unreadable(method, &error))
    }
}

fn params_of(params: impl Serialize, method: &'static str) -> Result<Value, RpcError> {
    serde_json::to_value(params).map_err(|error| unreadable(method, &error))
}

fn unreadable(method: &'static str, error: &serde_json::Error) -> RpcError {
    RpcError::Answer { method, reason: error.to_string() }
}
