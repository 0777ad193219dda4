//! The authorization-code flow with PKCE (RFC 7636): to the provider, and back with a code.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::CONTENT_TYPE;
use reqwest::RequestBuilder;
use serde::{Deserialize, Serialize};
use url::{Url, form_urlencoded};

use super::Provider;
use super::person::Person;
use super::refusal::Refusal;
use crate::platform::clock::{Clock, NoEntropy};
use crate::platform::crypto::{constant_time_eq, sha256};

/// Longest code that the provider may give, in bytes.
const CODE_BYTES_MAX: usize = 2_048;

/// A login that waits for its person to come back. It is kept by their browser, sealed.
#[derive(Debug, Deserialize, Serialize)]
pub struct LoginState {
    /// Comes back with the code: the code is for this browser.
    state: String,
    /// Comes back in the token: the token is for this login.
    nonce: String,
    /// Proves to the provider that who asks for the token is who began.
    verifier: String,
    /// End of its life in seconds since 1970.
    expires_at: i64,
}

/// A login that has begun.
#[derive(Debug)]
pub struct PendingLogin {
    /// The provider's page, for the browser.
    pub url: Url,
    /// To be kept until it comes back.
    pub state: LoginState,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
}

impl Provider {
    /// Begins a login that ends at `redirect_uri` within `seconds`.
    ///
    /// # Errors
    /// When the provider cannot be asked, or without entropy.
    pub async fn begin_login(
        &self,
        clock: &Clock,
        redirect_uri: &str,
        seconds: i64,
    ) -> Result<PendingLogin, Refusal> {
        let state = LoginState::new(clock, seconds)
            .map_err(|_| Refusal::Unavailable("there is no entropy"))?;
        let mut url = self.metadata(clock).await?.authorization_endpoint.clone();
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client_id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("scope", &self.scopes)
            .append_pair("state", &state.state)
            .append_pair("nonce", &state.nonce)
            .append_pair("code_challenge", &challenge(&state.verifier))
            .append_pair("code_challenge_method", "S256");
        Ok(PendingLogin { url, state })
    }

    /// Ends a login with the query that came back: the person whom the provider has proven.
    ///
    /// # Errors
    /// The reason nobody is logged in.
    pub async fn finish_login(
        &self,
        clock: &Clock,
        pending: &LoginState,
        query: &str,
        redirect_uri: &str,
    ) -> Result<Person, Refusal> {
        let mut code = None;
        let mut state = None;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "code" if value.len() <= CODE_BYTES_MAX => code = Some(value),
                "state" => state = Some(value),
                "error" => return Err(Refusal::Invalid("the provider refused the login")),
                _ => {}
            }
        }
        let is_own =
            state.is_some_and(|state| constant_time_eq(state.as_bytes(), pending.state.as_bytes()));
        if !is_own || pending.expires_at <= clock.unix_seconds() {
            return Err(Refusal::Invalid("the login was not begun in this browser, or long ago"));
        }
        let code = code.ok_or(Refusal::Invalid("the provider gave no code"))?;
        let endpoint = self.metadata(clock).await?.token_endpoint.clone();
        let request = self.token_request(endpoint, &code, &pending.verifier, redirect_uri);
        let tokens: Tokens = self.connection.redeem(request).await?;
        self.person(clock, &tokens.id_token, Some(&pending.nonce)).await
    }

    fn token_request(
        &self,
        endpoint: Url,
        code: &str,
        verifier: &str,
        redirect_uri: &str,
    ) -> RequestBuilder {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("code_verifier", verifier);
        let mut request = self.connection.post(endpoint);
        match &self.client_secret {
            Some(secret) => {
                // Both are encoded as in a form first (RFC 6749, section 2.3.1).
                let encoded = |text: &str| -> String {
                    form_urlencoded::byte_serialize(text.as_bytes()).collect()
                };
                let (id, secret) = (encoded(&self.client_id), encoded(secret.expose()));
                request = request.basic_auth(id, Some(secret));
            }
            None => {
                form.append_pair("client_id", &self.client_id);
            }
        }
        request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form.finish())
    }
}

impl LoginState {
    fn new(clock: &Clock, seconds: i64) -> Result<Self, NoEntropy> {
        let random = || clock.random_bytes::<32>().map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
        let expires_at = clock.unix_seconds().saturating_add(seconds);
        let [state, nonce, verifier] = [random()?, random()?, random()?];
        Ok(Self { state, nonce, verifier, expires_at })
    }
}

/// `code_challenge` of a verifier, by S256.
pub(super) fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(sha256(verifier))
}
