//! JSON-RPC over HTTP.

use std::time::Duration;

use rampart_connector::http;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Longest time of one call.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// Largest answer, in bytes. A block of 10 MiB, the most of Ethereum, has twice as many in hex.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A call that a node did not carry out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RpcError {
    /// The node does not answer, or too much, or something else than JSON-RPC.
    #[error("{method}: {reason}")]
    Transport {
        /// The method.
        method: &'static str,
        /// The reason. Without the URL, which may hold a key.
        reason: String,
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
        Ok(Self { http: http::client(CALL_TIMEOUT).build()?, url: url.to_owned() })
    }

    /// The result of a call.
    ///
    /// # Errors
    /// When the node does not answer, answers more than 64 MiB, or refuses.
    pub(crate) async fn call<R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: impl Serialize,
    ) -> Result<R, RpcError> {
        let failed = |reason: String| RpcError::Transport { method, reason };
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params_of(params, method)?});
        let answer = self.http.post(&self.url).json(&body).send().await;
        let answer = answer.map_err(|error| failed(error.without_url().to_string()))?;
        let answer = http::body(answer, ANSWER_BYTES_MAX).await;
        let answer = answer.map_err(|error| failed(error.to_string()))?;
        let answer: Answer = serde_json::from_slice(&answer)
            .map_err(|error| failed(format!("the answer is not JSON-RPC: {error}")))?;
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

#[cfg(test)]
pub(crate) mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// A request's body, and the connection that its answer goes to.
    pub(crate) async fn request(listener: &TcpListener) -> (Vec<u8>, TcpStream) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut head, mut body) = (Vec::new(), Vec::new());
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        body.resize(length.unwrap().parse().unwrap(), 0);
        stream.read_exact(&mut body).await.unwrap();
        (body, stream)
    }

    async fn answer(mut stream: TcpStream, answer: &str) {
        let answer = format!("HTTP/1.1 200 X\r\nconnection: close\r\n{answer}");
        stream.write_all(answer.as_bytes()).await.unwrap();
    }

    /// URL of a node with these results, by method and parameters. One with the member `error` is a
    /// refusal.
    pub(crate) async fn node(results: impl Fn(&str, &Value) -> Value + Send + 'static) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            loop {
                let (body, stream) = request(&listener).await;
                let called: Value = serde_json::from_slice(&body).unwrap();
                let result = results(called["method"].as_str().unwrap(), &called["params"]);
                let refusal = result.get("error").cloned();
                let body = match refusal {
                    Some(error) => json!({"jsonrpc": "2.0", "id": 1, "error": error}),
                    None => json!({"jsonrpc": "2.0", "id": 1, "result": result}),
                };
                let body = body.to_string();
                answer(stream, &format!("content-length: {}\r\n\r\n{body}", body.len())).await;
            }
        });
        url
    }

    /// The reason for which an answer with these headers and this body is not taken.
    async fn refusal(headers_and_body: String) -> RpcError {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answered = tokio::spawn(async move {
            let (_, stream) = request(&listener).await;
            answer(stream, &headers_and_body).await;
        });
        let called = Rpc::new(&url).unwrap().call::<Value>("eth_chainId", json!([])).await;
        answered.await.unwrap();
        called.unwrap_err()
    }

    #[tokio::test]
    async fn an_answer_above_its_bound_is_not_read() {
        let declared = ANSWER_BYTES_MAX + 1;
        let refused = refusal(format!("content-length: {declared}\r\n\r\n")).await;
        let expected = "eth_chainId: the answer has more than 67108864 bytes";
        assert_eq!(refused.to_string(), expected);
        assert!(matches!(refused, RpcError::Transport { .. }), "it is asked again");
    }

    #[tokio::test]
    async fn an_answer_that_is_not_json_says_nothing_about_the_call() {
        let refused = refusal("content-length: 6\r\n\r\n<html>".to_owned()).await;
        assert!(matches!(refused, RpcError::Transport { .. }), "{refused}");
    }
}
