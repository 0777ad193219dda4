//! The calls of Stripe's API.

mod objects;

use std::fmt::Display;
use std::time::Duration;

use rampart_connector::Secret;
use rampart_connector::http::{self, Pages};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::form_urlencoded;

pub(crate) use self::objects::{Dispute, Event, Intent, Metadata, Refund};
use crate::settings::StripeSettings;

/// Largest answer in bytes.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Longest reason, in characters.
const REASON_CHARS_MAX: usize = 500;
/// Objects of one page of a list.
const PAGE_OBJECTS: u32 = 100;
/// Most pages of one payment's refunds.
const REFUND_PAGES_MAX: usize = 100;
/// Most pages of one look at the account's events.
const EVENT_PAGES_MAX: usize = 5_000;

/// A call that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApiError {
    /// It had no effect, and may succeed later.
    #[error("{0}")]
    Passing(String),
    /// Nobody knows if it had an effect.
    #[error("{0}")]
    Unknown(String),
    /// It had no effect, and never will have.
    #[error("{0}")]
    Refused(String),
    /// The key lacks the permission for it: it had no effect, and may succeed later.
    #[error("the provider's key lacks the permission for {0}")]
    Forbidden(String),
    /// It had its effect, if it has one; the answer lacks what is needed of it, and would again.
    #[error("the provider's {0} cannot be read")]
    Unreadable(String),
    /// There is no such object.
    #[error("the account has no {0}")]
    Missing(String),
}

/// An object of a list, whose id is the cursor of what stands behind it.
trait Object {
    fn id(&self) -> &str;
}

impl Object for Refund {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Object for Event {
    fn id(&self) -> &str {
        &self.id
    }
}

/// A page of a list.
#[derive(Debug, Deserialize)]
struct Page<T> {
    data: Vec<T>,
    #[serde(default)]
    has_more: bool,
}

/// A client of the API.
#[derive(Debug)]
pub(crate) struct Stripe {
    http: reqwest::Client,
    url: String,
    key: Secret,
}

impl Stripe {
    /// A client with the account's secret key, which is read now.
    ///
    /// # Errors
    /// One sentence when the key cannot be read.
    pub(crate) fn new(settings: &StripeSettings) -> Result<Self, String> {
        let key = settings.secret_key.read();
        let key = key.map_err(|error| format!("stripe.secret_key: {error}"))?;
        let http = http::client(Duration::from_secs(settings.timeout_seconds))
            .build()
            .map_err(|error| format!("cannot make an HTTP client: {error}"))?;
        let url = format!("{}/v1/", settings.url.trim_end_matches('/'));
        Ok(Self { http, url, key })
    }

    /// Checks that the account takes the key.
    ///
    /// # Errors
    /// One sentence for a person.
    pub(crate) async fn check(&self) -> Result<(), String> {
        let balance: Result<Value, _> = self.call(Method::GET, "balance", &[], None).await;
        balance.map(|_| ()).map_err(|error| format!("stripe: {error}"))
    }

    /// Reads a payment with its charge.
    pub(crate) async fn intent(&self, id: &str) -> Result<Intent, ApiError> {
        let query = [("expand[]", "latest_charge".to_owned())];
        self.call(Method::GET, &path("payment_intents", id)?, &query, None).await
    }

    /// Makes a payment.
    pub(crate) async fn create_intent(
        &self,
        members: &[(&str, String)],
        key: &str,
    ) -> Result<Intent, ApiError> {
        self.call(Method::POST, "payment_intents", members, Some(key)).await
    }

    /// Has nobody pay any more. A second call has no effect, and under a key it would be answered as
    /// the first one for a day, whatever has become of the payment.
    pub(crate) async fn cancel_intent(&self, id: &str) -> Result<Intent, ApiError> {
        let path = format!("{}/cancel", path("payment_intents", id)?);
        self.call(Method::POST, &path, &[], None).await
    }

    /// Gives money back.
    pub(crate) async fn create_refund(
        &self,
        members: &[(&str, String)],
        key: &str,
    ) -> Result<Refund, ApiError> {
        self.call(Method::POST, "refunds", members, Some(key)).await
    }

    /// Reads a refund.
    pub(crate) async fn refund(&self, id: &str) -> Result<Refund, ApiError> {
        self.call(Method::GET, &path("refunds", id)?, &[], None).await
    }

    /// Every refund of a payment.
    pub(crate) async fn refunds(&self, intent: &str) -> Result<Vec<Refund>, ApiError> {
        let query = [("payment_intent", intent.to_owned())];
        self.list("refunds", &query, REFUND_PAGES_MAX).await
    }

    /// Reads a dispute.
    pub(crate) async fn dispute(&self, id: &str) -> Result<Dispute, ApiError> {
        self.call(Method::GET, &path("disputes", id)?, &[], None).await
    }

    /// The account's events since a time in seconds since 1970, the youngest first.
    pub(crate) async fn events(&self, since: i64) -> Result<Vec<Event>, ApiError> {
        self.list("events", &[("created[gte]", since.to_string())], EVENT_PAGES_MAX).await
    }

    /// Every object of a list.
    async fn list<T: DeserializeOwned + Object>(
        &self,
        path: &str,
        query: &[(&str, String)],
        pages_max: usize,
    ) -> Result<Vec<T>, ApiError> {
        let (mut objects, mut pages) = (Vec::<T>::new(), Pages::new(pages_max));
        loop {
            let mut query = query.to_vec();
            query.push(("limit", PAGE_OBJECTS.to_string()));
            if let Some(last) = objects.last() {
                let endless = |error| ApiError::Passing(format!("the provider's {path}: {error}"));
                pages.turn(last.id()).map_err(endless)?;
                query.push(("starting_after", last.id().to_owned()));
            }
            let page: Page<T> = self.call(Method::GET, path, &query, None).await?;
            let is_last = !page.has_more;
            if page.data.is_empty() && !is_last {
                let reason = format!("the provider's {path}: the list ends in the middle");
                return Err(ApiError::Passing(reason));
            }
            objects.extend(page.data);
            if is_last {
                return Ok(objects);
            }
        }
    }

    /// One call. Members of a POST are its form, of a GET its query.
    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        members: &[(&str, String)],
        idempotency_key: Option<&str>,
    ) -> Result<T, ApiError> {
        let encoded =
            form_urlencoded::Serializer::new(String::new()).extend_pairs(members).finish();
        let mut url = format!("{}{path}", self.url);
        let is_form = method == Method::POST;
        if !is_form && !encoded.is_empty() {
            url = format!("{url}?{encoded}");
        }
        let mut request = self.http.request(method, url).bearer_auth(self.key.expose());
        if is_form {
            let kind = "application/x-www-form-urlencoded";
            request = request.header("content-type", kind).body(encoded);
        }
        if let Some(key) = idempotency_key {
            request = request.header("idempotency-key", key);
        }
        let answer = request.send().await.map_err(|error| match error.is_connect() {
            true => ApiError::Passing(format!("the provider cannot be reached: {error}")),
            false => silent(error),
        })?;
        let status = answer.status();
        let body = http::body(answer, ANSWER_BYTES_MAX).await.map_err(silent)?;
        if !status.is_success() {
            return Err(refusal(status, path, &body));
        }
        serde_json::from_slice(&body).map_err(|error| unreadable(path, &error))
    }
}

/// The path of an object. Its id comes from outside and must not lead elsewhere.
fn path(collection: &str, id: &str) -> Result<String, ApiError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if id.is_empty() || !id.chars().all(plain) {
        return Err(ApiError::Missing(format!("object with such an id in {collection}")));
    }
    Ok(format!("{collection}/{id}"))
}

/// A call without an answer that can be read. The URL may hold an id, the key is never in it.
fn silent(error: impl Display) -> ApiError {
    ApiError::Unknown(format!("the provider does not answer: {error}"))
}

/// The meaning of an answer of another form. Without its values, which may be secret.
fn unreadable(path: &str, error: &serde_json::Error) -> ApiError {
    if !error.is_data() {
        return ApiError::Unknown("the provider's answer is cut off, or no JSON".to_owned());
    }
    tracing::warn!(path, column = error.column(), "an object of the provider cannot be read");
    ApiError::Unreadable(collection(path).to_owned())
}

/// The collection of the object at a path.
fn collection(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

/// The meaning of an answer that is no success.
fn refusal(status: StatusCode, path: &str, body: &[u8]) -> ApiError {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let message = document["error"]["message"].as_str().unwrap_or("it gives no reason");
    let message: String = message.chars().take(REASON_CHARS_MAX).collect();
    match status {
        // The account's own message repeats a part of the key.
        StatusCode::UNAUTHORIZED => {
            ApiError::Passing("the provider refuses the secret key".to_owned())
        }
        StatusCode::FORBIDDEN => ApiError::Forbidden(collection(path).to_owned()),
        StatusCode::NOT_FOUND => ApiError::Missing(path.to_owned()),
        StatusCode::TOO_MANY_REQUESTS => {
            ApiError::Passing(format!("the provider is busy: {message}"))
        }
        // 409: another call with the same idempotency key is still at work.
        StatusCode::CONFLICT | StatusCode::REQUEST_TIMEOUT => {
            ApiError::Unknown(format!("the provider is busy: {message}"))
        }
        status if status.is_client_error() => {
            ApiError::Refused(format!("the provider refuses: {message}"))
        }
        status => ApiError::Unknown(format!("the provider answers {status}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fake;

    #[test]
    fn only_a_refusal_for_good_ends_a_command() {
        let body = json!({"error": {"message": "Invalid key sk_live_abc"}}).to_string();
        let of = |status: u16| {
            refusal(StatusCode::from_u16(status).unwrap(), "refunds", body.as_bytes())
        };
        for status in [401, 429] {
            assert!(matches!(of(status), ApiError::Passing(_)), "{status}");
        }
        for status in [408, 409, 500, 502, 503] {
            assert!(matches!(of(status), ApiError::Unknown(_)), "{status}");
        }
        for status in [400, 402, 422] {
            assert!(matches!(of(status), ApiError::Refused(_)), "{status}");
        }
        assert_eq!(of(404), ApiError::Missing("refunds".to_owned()));
        let forbidden = refusal(StatusCode::FORBIDDEN, "disputes/dp_1", body.as_bytes());
        assert_eq!(forbidden, ApiError::Forbidden("disputes".to_owned()));
        for status in [401, 403] {
            assert!(!of(status).to_string().contains("sk_"), "a key is never repeated");
        }
        assert!(matches!(refusal(StatusCode::BAD_REQUEST, "x", b"<html>"), ApiError::Refused(_)));
    }

    #[tokio::test]
    async fn a_list_that_ends_in_the_middle_is_none() {
        for (has_more, count) in [(true, None), (false, Some(1))] {
            let connector = fake::connector(move |heard| {
                if heard.line.contains("starting_after=re_1") {
                    return (200, json!({"data": [], "has_more": has_more}));
                }
                let refund = json!({"id": "re_1", "amount": 1, "currency": "eur", "created": 1});
                (200, json!({"data": [refund], "has_more": true}))
            })
            .await;
            let refunds = connector.stripe.refunds("pi_1").await;
            assert_eq!(refunds.ok().map(|refunds| refunds.len()), count);
        }
    }

    #[test]
    fn an_id_leads_nowhere_else() {
        assert_eq!(path("refunds", "re_1").unwrap(), "refunds/re_1");
        for id in ["", "../balance", "re_1/x", "re_1?x=1", "re 1", "é"] {
            assert!(path("refunds", id).is_err(), "{id}");
        }
    }
}
