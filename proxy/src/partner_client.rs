//! A client of the API for partners, as a partner that signs in with its password.

use http::StatusCode;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::startup_error::{Context as _, StartupError};

/// A partner with an access token.
pub(crate) struct PartnerClient {
    http: Client,
    base: String,
    token: String,
}

impl PartnerClient {
    /// Obtains a token of the edge at `base`.
    ///
    /// # Errors
    /// One sentence: the edge cannot be reached, or refuses the password.
    pub(crate) async fn authenticate(
        http: Client,
        base: String,
        username: &str,
        password: &str,
    ) -> Result<Self, StartupError> {
        let body = json!({"username": username, "password": password});
        let tokens = answer(http.post(format!("{base}/api/v1/authenticate")).json(&body)).await?;
        let token = tokens["token"].as_str().ok_or("the answer has no token")?.to_owned();
        Ok(Self { http, base, token })
    }

    /// The JSON of a success.
    ///
    /// # Errors
    /// One sentence: the edge cannot be reached, or refuses the call.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, StartupError> {
        let request = self.http.get(format!("{}{path}", self.base));
        answer(request.bearer_auth(&self.token)).await
    }

    /// The JSON of a success.
    ///
    /// # Errors
    /// As [`PartnerClient::get`].
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, StartupError> {
        let request = self.http.post(format!("{}{path}", self.base)).json(body);
        answer(request.bearer_auth(&self.token)).await
    }
}

async fn answer(request: RequestBuilder) -> Result<Value, StartupError> {
    let unreachable = "the edge cannot be reached";
    let answer = request.send().await.context(unreachable)?;
    let (status, body) = (answer.status(), answer.bytes().await.context(unreachable)?);
    if status == StatusCode::TOO_MANY_REQUESTS {
        return Err("the edge limits the rate (429): raise `rateLimits` of this partner, and \
                    `ratelimit.address` of the edge"
            .into());
    }
    if !status.is_success() {
        let body = String::from_utf8_lossy(&body);
        return Err(StartupError::from(format!("the edge answers {status}: {body}")));
    }
    serde_json::from_slice(&body).context("the answer is not JSON")
}
