//! Signed payloads as JSON: the input of a dry run.

use std::collections::BTreeMap;

use rampart_plugins::contract::{Field, Header, Purpose, SignedPayload};
use serde::Deserialize;
use serde_json::Value;

use crate::http::fields::strict;
use crate::policies::kinds::json::Text;

/// Reads an operator's input; missing members have defaults.
///
/// # Errors
/// A sentence, after the path of the member that is invalid or unknown.
pub(super) fn read(path: &str, input: &Value) -> Result<SignedPayload, String> {
    strict::read_at::<Payload>(path, input).map(Into::into)
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum PurposeName {
    Offer,
    Onboarding,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Payload {
    purpose: PurposeName,
    fields: BTreeMap<String, Text>,
    #[serde(alias = "signature")]
    claimed: Option<String>,
    method: String,
    path: String,
    query: String,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Default for Payload {
    fn default() -> Self {
        Self {
            purpose: PurposeName::Offer,
            fields: BTreeMap::new(),
            claimed: None,
            method: "POST".to_owned(),
            path: "/api/v2/buy/offer".to_owned(),
            query: String::new(),
            headers: BTreeMap::new(),
            body: String::new(),
        }
    }
}

impl From<Payload> for SignedPayload {
    fn from(payload: Payload) -> Self {
        let field = |(name, value): (String, Text)| Field { name, value: value.into() };
        let header = |(name, value): (String, String)| Header {
            name: name.to_ascii_lowercase(),
            value: value.into_bytes(),
        };
        Self {
            purpose: match payload.purpose {
                PurposeName::Offer => Purpose::Offer,
                PurposeName::Onboarding => Purpose::Onboarding,
            },
            fields: payload.fields.into_iter().map(field).collect(),
            claimed: payload.claimed,
            method: payload.method,
            path: payload.path,
            query: payload.query,
            headers: payload.headers.into_iter().map(header).collect(),
            body: payload.body.into_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_members_of_a_payload_are_sorted() {
        let input =
            json!({"fields": {"returnUrl": "app:a", "fee": 1, "a": true}, "signature": "x"});
        let payload = read("input", &input).unwrap();
        let fields: Vec<_> = payload.fields.iter().map(|f| (&*f.name, &*f.value)).collect();
        assert_eq!(fields, [("a", "true"), ("fee", "1"), ("returnUrl", "app:a")]);
        assert_eq!(payload.claimed.as_deref(), Some("x"));
    }
}
