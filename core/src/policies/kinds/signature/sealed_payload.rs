//! Signed payloads stored for replay: whole, because a signature covers bytes, and sealed, because
//! they may hold personal data.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rampart_plugins::contract::{Field, Header, Purpose, SignedPayload};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Core;
use crate::auth::caller::Client;
use crate::platform::error::{Error, Result};
use rampart_types::ClientId;

/// Largest payload that is stored, in bytes of its JSON. Offers have a few hundred.
const STORED_BYTES_MAX: usize = 16 << 10;

#[derive(Serialize, Deserialize)]
struct StoredPayload {
    offer: bool,
    fields: Vec<(String, String)>,
    claimed: Option<String>,
    method: String,
    path: String,
    query: String,
    /// Values in base64: a header is bytes.
    headers: Vec<(String, String)>,
    body: String,
}

fn context(client: ClientId) -> String {
    format!("signed_payload/{client}")
}

/// The payload, sealed and in base64; null when it is too large to store.
pub(super) fn seal(core: &Core, client: &Client, payload: &SignedPayload) -> Value {
    let stored = StoredPayload {
        offer: payload.purpose == Purpose::Offer,
        fields: payload.fields.iter().map(|f| (f.name.clone(), f.value.clone())).collect(),
        claimed: payload.claimed.clone(),
        method: payload.method.clone(),
        path: payload.path.clone(),
        query: payload.query.clone(),
        headers: payload
            .headers
            .iter()
            .map(|h| (h.name.clone(), STANDARD.encode(&h.value)))
            .collect(),
        body: STANDARD.encode(&payload.body),
    };
    let Ok(plain) = serde_json::to_vec(&stored) else { return Value::Null };
    if plain.len() > STORED_BYTES_MAX {
        return Value::Null;
    }
    match core.cipher(client.id()).seal(&context(client.id()), &plain) {
        Ok(sealed) => STANDARD.encode(sealed).into(),
        Err(error) => {
            tracing::warn!(%error, "a signed payload is not kept for a replay");
            Value::Null
        }
    }
}

/// Opens a payload that [`seal`] sealed for this client.
///
/// # Errors
/// When it was sealed for another client or under another key, or was altered.
pub(super) fn open_payload(core: &Core, client: ClientId, sealed: &str) -> Result<SignedPayload> {
    let bytes = |text: &str| STANDARD.decode(text).map_err(|e| Error::internal("read base64", e));
    let plain = core.cipher(client).open(&context(client), &bytes(sealed)?)?;
    let stored: StoredPayload =
        serde_json::from_slice(&plain).map_err(|e| Error::internal("read a payload", e))?;
    let header = |(name, value): (String, String)| Ok(Header { name, value: bytes(&value)? });
    Ok(SignedPayload {
        purpose: if stored.offer { Purpose::Offer } else { Purpose::Onboarding },
        fields: stored.fields.into_iter().map(|(name, value)| Field { name, value }).collect(),
        claimed: stored.claimed,
        method: stored.method,
        path: stored.path,
        query: stored.query,
        headers: stored.headers.into_iter().map(header).collect::<Result<_>>()?,
        body: bytes(&stored.body)?,
    })
}
