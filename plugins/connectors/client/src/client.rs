//! The calls of the connectors' API.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::command::{Command, LeaseRequest, Outcome};
use crate::http::{self, AnswerError};
use crate::pace::Backoff;
use crate::secret::{Secret, SecretError, SecretSource};

/// Longest time of one call: a lease may wait for half of it.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Largest answer, in bytes: a hundred commands with bodies of 256 KiB.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The edge, as a connector's configuration has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeSettings {
    /// URL of the connectors' listener, such as `http://127.0.0.1:9465`.
    pub url: String,
    /// The connector's token.
    pub token: SecretSource,
    /// Certificates in PEM to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
}

/// A call that an edge refuses, or a client that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The token cannot be read.
    #[error("edge.token: {0}")]
    Token(#[from] SecretError),
    /// The certificates to trust cannot be used.
    #[error("edge.ca_file: {0}")]
    Authorities(String),
    /// The HTTP client cannot be made.
    #[error("cannot make an HTTP client: {0}")]
    Http(reqwest::Error),
    /// The edge refuses the call, and would again.
    #[error("the edge refuses {path} with {status}: {reason}")]
    Refused {
        /// The path.
        path: String,
        /// The status.
        status: u16,
        /// The edge's reason.
        reason: String,
    },
    /// The answer has another form than the API's.
    #[error("the edge's answer to {path} cannot be read: {source}")]
    Answer {
        /// The path.
        path: String,
        /// The reason.
        source: serde_json::Error,
    },
}

/// True as long as the command is this process's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Held {
    /// It is: what was said counts.
    Yes,
    /// The lease is lost: the command is somebody else's, or comes again. Drop it.
    No,
}

/// A client of the connectors' API. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    token: Secret,
}

impl Client {
    /// A client with the connector's token, which is read now.
    ///
    /// # Errors
    /// When the token or the certificates cannot be read.
    pub fn new(settings: &EdgeSettings) -> Result<Self, ClientError> {
        let mut http = http::client(CALL_TIMEOUT);
        if let Some(path) = &settings.ca_file {
            let wrong =
                |reason: String| ClientError::Authorities(format!("{}: {reason}", path.display()));
            let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
            let roots = reqwest::Certificate::from_pem_bundle(&pem)
                .map_err(|error| wrong(error.to_string()))?;
            http = http.tls_certs_only(roots);
        }
        let http = http.build().map_err(ClientError::Http)?;
        let url = format!("{}/connectors/v1/", settings.url.trim_end_matches('/'));
        Ok(Self { http, url, token: settings.token.read()? })
    }

    /// Leases commands, oldest first; none if there was none within the wait.
    ///
    /// # Errors
    /// When the edge refuses the call.
    pub async fn lease(&self, request: &LeaseRequest<'_>) -> Result<Vec<Command>, ClientError> {
        let path = "commands/lease";
        let leased = self.call(Method::POST, path, request, None).await?.accepted(path)?;
        Vec::deserialize(leased).map_err(|source| ClientError::Answer { path: path.into(), source })
    }

    /// Stores a checkpoint of at most 16 KiB, and has the lease last for so long from now on. Once it
    /// is [`Held::Yes`], whoever leases the command next is given it.
    ///
    /// # Errors
    /// When the edge refuses the call.
    pub async fn checkpoint(
        &self,
        command: &Command,
        checkpoint: &impl Serialize,
        lease_seconds: u16,
    ) -> Result<Held, ClientError> {
        let path = format!("commands/{}/checkpoint", command.id);
        let body = NewCheckpoint { lease_token: &command.lease_token, checkpoint, lease_seconds };
        self.call(Method::PUT, &path, &body, Some(command)).await?.held(&path)
    }

    /// Reports what came of an attempt.
    ///
    /// # Errors
    /// When the edge refuses the call.
    pub async fn report(&self, command: &Command, outcome: &Outcome) -> Result<Held, ClientError> {
        let path = format!("commands/{}/result", command.id);
        let body = NewResult { lease_token: &command.lease_token, outcome };
        self.call(Method::POST, &path, &body, Some(command)).await?.held(&path)
    }

    /// Tells a fact: a JSON object with `id`, `kind`, `occurredAt` and what else the kind has. `true`
    /// if the edge knew it already.
    ///
    /// # Errors
    /// When the edge refuses the call; with status 409 if another fact had this id.
    pub async fn event(&self, event: &impl Serialize) -> Result<bool, ClientError> {
        let answer = self.call(Method::POST, "events", event, None).await?.accepted("events")?;
        Ok(answer["duplicate"] == json!(true))
    }

    /// Checks once, without repetition, that the edge is there and takes the token.
    ///
    /// # Errors
    /// One sentence for a person.
    pub async fn check(&self) -> Result<(), String> {
        let request = self.http.get(format!("{}openapi.json", self.url));
        let answer = request.bearer_auth(self.token.expose()).send().await;
        let status = answer.map_err(|error| format!("the edge does not answer: {error}"))?.status();
        match status {
            StatusCode::OK => Ok(()),
            StatusCode::UNAUTHORIZED => Err("the edge refuses the token".to_owned()),
            other => Err(format!("the edge answers {other}")),
        }
    }

    /// The answer to a call, which is repeated until there is one. A call about a command goes on with
    /// its trace.
    async fn call(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
        about: Option<&Command>,
    ) -> Result<Answer, ClientError> {
        let body = serde_json::to_string(body)
            .map_err(|source| ClientError::Answer { path: path.to_owned(), source })?;
        let trace = about.map(Command::trace_headers).unwrap_or_default();
        let mut backoff = Backoff::default();
        loop {
            let request = self.http.request(method.clone(), format!("{}{path}", self.url));
            let request = request.bearer_auth(self.token.expose()).headers(trace.clone());
            let request = request.header("content-type", "application/json").body(body.clone());
            match Answer::of(request).await {
                Ok(answer) if !answer.is_passing() => return Ok(answer),
                Ok(answer) => tracing::warn!(path, status = %answer.status, "the edge is busy"),
                Err(error) => tracing::warn!(path, %error, "the edge does not answer"),
            }
            backoff.pause().await;
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewCheckpoint<'a, C> {
    lease_token: &'a str,
    checkpoint: &'a C,
    lease_seconds: u16,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewResult<'a> {
    lease_token: &'a str,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

struct Answer {
    status: StatusCode,
    body: Value,
}

impl Answer {
    async fn of(request: reqwest::RequestBuilder) -> Result<Self, AnswerError> {
        let answer = request.send().await?;
        let status = answer.status();
        let bytes = http::body(answer, ANSWER_BYTES_MAX).await?;
        Ok(Self { status, body: serde_json::from_slice(&bytes).unwrap_or_default() })
    }

    /// True for a refusal that says nothing about the call.
    fn is_passing(&self) -> bool {
        self.status.is_server_error()
            || matches!(self.status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
    }

    fn accepted(self, path: &str) -> Result<Value, ClientError> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        Err(ClientError::Refused {
            path: path.to_owned(),
            status: self.status.as_u16(),
            reason: self.body["error"].as_str().unwrap_or("no reason").to_owned(),
        })
    }

    fn held(self, path: &str) -> Result<Held, ClientError> {
        match self.status {
            StatusCode::CONFLICT => Ok(Held::No),
            _ => self.accepted(path).map(|_| Held::Yes),
        }
    }
}
