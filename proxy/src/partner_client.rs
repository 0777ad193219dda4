//! A client of the API for partners, as a partner that signs in with its password.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
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

    /// The lifetime of the token; `None` if the token does not say it.
    pub(crate) fn token_lifetime(&self) -> Option<Duration> {
        lifetime(&self.token)
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
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, StartupError> {
        let request = self.http.post(format!("{}{path}", self.base)).json(body);
        answer(request.bearer_auth(&self.token)).await
    }
}

/// The time between the claims `iat` and `exp` of a token, which no clock of this machine changes.
fn lifetime(token: &str) -> Option<Duration> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    claims["exp"].as_u64()?.checked_sub(claims["iat"].as_u64()?).map(Duration::from_secs)
}

async fn answer(request: RequestBuilder) -> Result<Value, StartupError> {
    let silent = |error| StartupError::unanswered("the edge does not answer", error);
    let answer = request.send().await.map_err(silent)?;
    let (status, body) = (answer.status(), answer.bytes().await.map_err(silent)?);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_how_long_it_lives() {
        let token = |claims: &str| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims));
        let hour = token(r#"{"iat":1767225600,"exp":1767229200}"#);
        assert_eq!(lifetime(&hour), Some(Duration::from_secs(3_600)));
        for other in ["opaque".to_owned(), token("{}"), token(r#"{"iat":2,"exp":1}"#)] {
            assert_eq!(lifetime(&other), None, "{other}");
        }
    }
}
