//! Commands, and what comes of them.

use std::fmt;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// Most characters of a reason that an edge takes: with more it refuses the whole result.
const REASON_CHARS_MAX: usize = 1_000;

/// Commands that are wanted.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseRequest<'a> {
    /// Most commands, 1 to 100.
    pub max: u16,
    /// Longest wait for the first one, 0 to 30.
    pub wait_seconds: u16,
    /// Time for which nobody else gets them, 10 to 600.
    pub lease_seconds: u16,
    /// Their kinds.
    pub kinds: &'a [&'a str],
}

/// A leased command.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Command {
    /// Its id for good, a UUID: the idempotency key at a provider.
    pub id: String,
    /// Its kind, such as `payout.send`.
    pub kind: String,
    /// 1 at its first lease.
    pub attempt: u32,
    /// Proves the lease.
    pub(crate) lease_token: String,
    checkpoint: Value,
    body: Value,
    /// The trace that calls about it go on with (W3C Trace Context), as headers.
    traceparent: Option<String>,
    tracestate: Option<String>,
}

impl Command {
    /// Its body.
    ///
    /// # Errors
    /// When it does not have this form.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        T::deserialize(&self.body)
    }

    /// The headers by which a call goes on with its trace; none without one.
    pub(crate) fn trace_headers(&self) -> HeaderMap {
        let named = [("traceparent", &self.traceparent), ("tracestate", &self.tracestate)];
        let headers = named.into_iter().filter_map(|(name, value)| {
            let value = HeaderValue::from_str(value.as_deref()?).ok()?;
            Some((HeaderName::from_static(name), value))
        });
        headers.collect()
    }

    /// The last checkpoint of its earlier attempts; `None` without one.
    ///
    /// # Errors
    /// When it does not have this form.
    pub fn checkpoint<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        Option::deserialize(&self.checkpoint)
    }
}

/// Bodies and checkpoints name people and accounts: they are not printed.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, kind, attempt, .. } = self;
        write!(f, "{kind} {id}, attempt {attempt}")
    }
}

/// The outcome of an attempt at a command.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase", tag = "outcome")]
pub enum Outcome {
    /// The effect is there.
    Done {
        /// The members that the kind of command has.
        result: Value,
    },
    /// The effect is not there, and never will be.
    Rejected {
        /// The reason, of which an edge is told the first 1000 characters.
        #[serde(serialize_with = "beginning")]
        reason: String,
        /// Such as what a failed transaction has cost; null for nothing.
        #[serde(skip_serializing_if = "Value::is_null")]
        result: Value,
    },
    /// The effect is not there; another attempt may succeed. An edge rejects a command after its
    /// `connectors.attempts_max`, unless it sends money or coins and an attempt has told nothing.
    #[serde(rename_all = "camelCase")]
    Retry {
        /// The reason, of which an edge is told the first 1000 characters.
        #[serde(serialize_with = "beginning")]
        reason: String,
        /// Time before the next attempt, at most 86400; an edge's own growing one if left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        retry_after_seconds: Option<u32>,
    },
}

impl Outcome {
    /// That of a command that is refused before anything was done.
    pub const fn rejected(reason: String) -> Self {
        Self::Rejected { reason, result: Value::Null }
    }
}

/// Writes the beginning of a reason, which may have a provider's own words in it, however many.
fn beginning<S: Serializer>(reason: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let end = reason.char_indices().nth(REASON_CHARS_MAX).map_or(reason.len(), |(at, _)| at);
    serializer.serialize_str(&reason[..end])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_keep_their_digits_and_bodies_stay_unprinted() {
        let text = r#"{"id": "7", "kind": "payout.send", "attempt": 2, "leaseToken": "secret",
            "checkpoint": null, "createdAt": "2026-03-01T12:00:00Z",
            "body": {"amount": 0.123456789012345678, "iban": "NL00"}}"#;
        let command: Command = serde_json::from_str(text).unwrap();
        let body: Value = command.body().unwrap();
        assert_eq!(body["amount"].to_string(), "0.123456789012345678");
        assert_eq!(command.checkpoint::<Value>().unwrap(), None);
        assert_eq!(format!("{command:?}"), "payout.send 7, attempt 2");
    }

    #[test]
    fn outcomes_have_the_members_of_the_api() {
        let retry = Outcome::Retry { reason: "busy".to_owned(), retry_after_seconds: Some(5) };
        let expected = json!({"outcome": "retry", "reason": "busy", "retryAfterSeconds": 5});
        assert_eq!(serde_json::to_value(retry).unwrap(), expected);
        let done = Outcome::Done { result: json!({"transactionId": "0x1"}) };
        let expected = json!({"outcome": "done", "result": {"transactionId": "0x1"}});
        assert_eq!(serde_json::to_value(done).unwrap(), expected);
    }

    #[test]
    fn a_reason_is_no_longer_than_an_edge_takes() {
        let reason = "é".repeat(REASON_CHARS_MAX + 1);
        let retry = Outcome::Retry { reason: reason.clone(), retry_after_seconds: None };
        for outcome in [Outcome::rejected(reason), retry] {
            let told = serde_json::to_value(outcome).unwrap();
            assert_eq!(told["reason"], "é".repeat(REASON_CHARS_MAX));
        }
    }
}
