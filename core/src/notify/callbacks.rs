//! Deliveries to partners: HTTP requests signed by Standard Webhooks, sent at least once.
//!
//! A row of `delivery` is written with its event (`events.rs`) and processed by this module. Every
//! edge claims due deliveries ([`queue`]) under a lease, so that a dying edge loses nothing: its
//! lease expires and another edge sends again, with the same `webhook-id`. [`deliver`] is the worker,
//! [`lane`] limits each endpoint, [`schedule`] is the retry schedule, [`target`] checks
//! addresses, [`attempts`] reads what was attempted, [`unclaimed`] measures what nobody attempts.

pub mod attempts;
pub mod deliver;
mod lane;
mod outbound;
mod queue;
mod record;
pub mod resend;
mod retention;
mod schedule;
pub mod target;
pub(crate) mod unclaimed;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use ring::hmac;
use serde::Serialize;
use serde_json::Value;

pub use self::outbound::Outbound;
pub use self::retention::SweptDeliveries;
use crate::platform::crypto::Secret;
use crate::platform::error::{Error, Result};
use crate::tenancy::tenants::create::WEBHOOK_SECRET_PREFIX;
use rampart_types::EventId;

/// The worker in logs, metrics and `/readyz`: a run is a claim.
const WORKER: &str = "deliveries";

/// The body of a delivery.
#[derive(Debug, Serialize)]
struct Envelope<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    /// Time of the event, not of the request.
    timestamp: DateTime<Utc>,
    data: &'a Value,
}

/// The signed content of a request.
#[derive(Debug)]
struct Message {
    /// `webhook-id`: the same for every attempt, so that a receiver can recognise duplicates.
    id: EventId,
    /// `webhook-timestamp`: of this attempt, in seconds since 1970.
    sent_at: i64,
    body: String,
}

impl Message {
    fn new(
        id: EventId,
        kind: &str,
        happened_at: DateTime<Utc>,
        data: &Value,
        now: DateTime<Utc>,
    ) -> Result<Self> {
        Ok(Self { id, sent_at: now.timestamp(), body: body(kind, happened_at, data)? })
    }

    /// `webhook-signature`: one signature for each secret, so that a receiver may hold either
    /// during a rotation. `None` without a secret.
    ///
    /// # Errors
    /// When a stored secret is not `whsec_` and base64.
    fn signatures<'a>(
        &self,
        secrets: impl IntoIterator<Item = &'a Secret>,
    ) -> Result<Option<String>> {
        let signed = |secret| sign(secret, &self.id.to_string(), self.sent_at, &self.body);
        let signatures = secrets.into_iter().map(signed).collect::<Result<Vec<_>>>()?;
        Ok((!signatures.is_empty()).then(|| signatures.join(" ")))
    }
}

/// The body of a delivery, byte for byte.
///
/// # Errors
/// Never for what the database holds; the serializer's type says it could.
pub fn body(kind: &str, happened_at: DateTime<Utc>, data: &Value) -> Result<String> {
    serde_json::to_string(&Envelope { kind, timestamp: happened_at, data })
        .map_err(|error| Error::internal("write a callback", error))
}

/// Signs `id.timestamp.body` as `v1,` and base64 of HMAC-SHA256 (Standard Webhooks, "Symmetric").
fn sign(secret: &Secret, id: &str, sent_at: i64, body: &str) -> Result<String> {
    let key = secret.expose().strip_prefix(WEBHOOK_SECRET_PREFIX);
    let key = key.and_then(|key| STANDARD.decode(key).ok());
    let key = key.ok_or_else(|| Error::invariant("read a webhook secret"))?;
    let mut mac = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &key));
    mac.update(format!("{id}.{sent_at}.").as_bytes());
    mac.update(body.as_bytes());
    Ok(format!("v1,{}", STANDARD.encode(mac.sign())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn the_test_vector_of_the_specification_matches() {
        let secret = Secret::new(SECRET);
        let body = r#"{"test": 2432232314}"#;
        let signature = sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body).unwrap();
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn the_envelope_has_the_members_of_the_contract_in_order() {
        let at = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let message =
            Message::new(EventId::from(uuid::Uuid::nil()), "order.completed", at, &json!({}), at);
        let expected = r#"{"type":"order.completed","timestamp":"2023-11-14T22:13:20Z","data":{}}"#;
        assert_eq!(message.unwrap().body, expected);
    }

    #[test]
    fn every_live_secret_signs() {
        let message =
            Message { id: EventId::from(uuid::Uuid::nil()), sent_at: 1, body: String::new() };
        let (one, other) = (Secret::new(SECRET), Secret::new("whsec_AAAA"));
        let both = message.signatures([&one, &other]).unwrap().unwrap();
        let alone = [&one, &other].map(|secret| message.signatures([secret]).unwrap().unwrap());
        assert_eq!(both, alone.join(" "));
        assert!(message.signatures([]).unwrap().is_none());
    }

    #[test]
    fn a_secret_of_another_form_signs_nothing() {
        for text in ["", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_???"] {
            assert!(sign(&Secret::new(text), "id", 1, "").is_err(), "{text:?}");
        }
    }
}
