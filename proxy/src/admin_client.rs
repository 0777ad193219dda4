//! The client of the admin API that commands call a running edge by.

use std::path::Path;
use std::time::Duration;

use http::header::LINK;
use http::{HeaderMap, Method};
use reqwest::{Certificate, Client, ClientBuilder};
use serde_json::Value;
use url::{Url, form_urlencoded};

use crate::config::Config;
use crate::gateway::PRIVATE_ANSWER_MAX;
use crate::startup_error::{Context as _, StartupError};

/// Longest wait for an answer beyond the time that the edge takes for one.
const ANSWER_MARGIN: Duration = Duration::from_secs(5);

/// A client of the admin API, as one operator.
#[derive(Debug)]
pub(crate) struct AdminClient {
    http: Client,
    base: String,
    token: String,
}

/// The request body of a call.
pub(crate) enum Body {
    /// Nothing.
    None,
    /// JSON.
    Json(Value),
    /// JSON of a call that counts once under this `Idempotency-Key`.
    Once(Value, String),
    /// A file with its content type.
    File(&'static str, Vec<u8>),
}

impl From<Value> for Body {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

impl AdminClient {
    /// Calls the listener at `base` with the token of `config`, trusts its certificate besides the
    /// system's authorities, and waits as long as the listener may take.
    ///
    /// # Errors
    /// Without a token, when no HTTP client can be made, or the certificate cannot be used.
    pub(crate) fn new(base: String, config: &Config) -> Result<Self, StartupError> {
        let token = config.admin.token.as_ref();
        let token = token.ok_or(
            "'admin.token' is not set: in RAMPART__ADMIN__TOKEN, or in the file of --config",
        )?;
        let patient = Client::builder().timeout(PRIVATE_ANSWER_MAX + ANSWER_MARGIN);
        let http = http_client(patient, config.admin.tls.cert.as_deref())?;
        Ok(Self { http, base, token: token.expose().to_owned() })
    }

    /// One call.
    ///
    /// # Errors
    /// When the listener cannot be reached, or with the reason for which it refuses.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<Value, StartupError> {
        let (_, bytes) = self.answer(method, path, body).await?;
        Ok(serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    /// A page of a list, and the row that the next one begins behind, if there is one.
    pub(crate) async fn page(&self, path: &str) -> Result<(Value, Option<String>), StartupError> {
        let (headers, bytes) = self.answer(Method::GET, path, Body::None).await?;
        let next = headers.get(LINK).and_then(|link| link.to_str().ok()?.split(['<', '>']).nth(1));
        let query = next.and_then(|next| next.split_once('?')).map_or("", |(_, query)| query);
        let mut members = form_urlencoded::parse(query.as_bytes());
        let last = members.find(|(name, _)| name == "after").map(|(_, last)| last.into_owned());
        Ok((serde_json::from_slice(&bytes).unwrap_or(Value::Null), last))
    }

    /// Headers and bytes of the answer to one call: an image, an export.
    pub(crate) async fn answer(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<(HeaderMap, Vec<u8>), StartupError> {
        let url = format!("{}/admin/v1/{path}", self.base);
        let mut request = self.http.request(method, url).bearer_auth(&self.token);
        request = match body {
            Body::None => request,
            Body::Json(value) => request.json(&value),
            Body::Once(value, key) => request.header("idempotency-key", key).json(&value),
            Body::File(content_type, file) => {
                request.header("content-type", content_type).body(file)
            }
        };
        let silent = |error| {
            let at = self.authority();
            StartupError::unanswered(format_args!("the admin listener{at} does not answer"), error)
        };
        let answer = request.send().await.map_err(silent)?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let bytes = answer.bytes().await.map_err(silent)?;
        if status.is_success() {
            return Ok((headers, bytes.into()));
        }
        let value: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let reason = value["error"].as_str().unwrap_or("no reason was given");
        Err(StartupError::from(format!("{path}: {reason} ({})", status.as_u16())))
    }

    /// Where the listener is, for a sentence: its host and port alone, for its URL may hold a password.
    fn authority(&self) -> String {
        let url = Url::parse(&self.base).ok();
        let parts = url.as_ref().and_then(|url| url.host_str().zip(url.port_or_known_default()));
        parts.map_or_else(String::new, |(host, port)| format!(" at {host}:{port}"))
    }

    /// A call without a body.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, StartupError> {
        self.call(Method::GET, path, Body::None).await
    }
}

/// A client of an edge. `authority` is a PEM file with certificates that are trusted besides the
/// system's.
///
/// # Errors
/// When the file cannot be used.
pub(crate) fn http_client(
    builder: ClientBuilder,
    authority: Option<&Path>,
) -> Result<Client, StartupError> {
    let mut client = builder.no_proxy();
    if let Some(path) = authority {
        let unusable = format!("the certificate in '{}' cannot be used", path.display());
        let pem = std::fs::read(path).context(&unusable)?;
        for trusted in Certificate::from_pem_bundle(&pem).context(&unusable)? {
            client = client.add_root_certificate(trusted);
        }
    }
    client.build().context("no HTTP client can be made")
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_listener_that_does_not_answer_is_named_by_host_and_port() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let config = Config::over("[admin]\ntoken = 'ada'\n").unwrap();
        let url = format!("http://ada:hidden@{address}/behind");
        let client = AdminClient::new(url, &config).unwrap();
        let hang_up = async move { drop(listener.accept().await) };
        let (failed, ()) = tokio::join!(client.get("partners"), hang_up);
        let failed = failed.unwrap_err().to_string();
        let named = format!("the admin listener at {address} does not answer: ");
        assert!(failed.starts_with(&named) && !failed.contains("hidden"), "{failed}");
    }

    #[test]
    fn a_command_waits_for_as_long_as_the_listener_may_take() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = Config::over("[admin]\ntoken = 'ada'\n[edge]\nrequest_timeout_seconds = 1\n");
        let client = AdminClient::new("http://127.0.0.1:9".to_owned(), &config.unwrap()).unwrap();
        let (client, timeout) = (format!("{client:?}"), PRIVATE_ANSWER_MAX + ANSWER_MARGIN);
        assert!(client.contains(&format!("{timeout:?}")), "{client}");
    }
}
