//! The built-in signature (section 6.4 of the contract): HMAC-SHA256, keyed with the partner's
//! signing secret, over the covered fields that are set.
//!
//! The canonical text is `name=value&name=value` in alphabetical order of the names, with every
//! character of a value percent-encoded but RFC 3986's unreserved ones. Signatures are written in
//! lower-case hex; base64 is accepted too.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use chrono::{DateTime, Utc};
use ring::{digest, hmac};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::http::request::Input;
use crate::http::uri;
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::tenants::TimedSecret;

/// Fields that an offer's signature covers, in the order in which they are signed.
pub const COVERED: [&str; 5] =
    ["callbackUrl", "fee", "returnUrl", "walletAddress", "walletAddressTag"];

/// The member with the signature.
const MEMBER: &str = "signature";

/// The covered field that requires no signature by itself (section 13 of the contract).
const UNSIGNED_ALONE: &str = "walletAddressTag";

/// Standard base64, padded or not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The covered fields that are set, as they were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signable {
    fields: Vec<(&'static str, String)>,
}

impl Signable {
    /// Reads the covered fields of an offer's or a checkout's body. Null, blank values and values
    /// of another type are not set.
    pub fn read(input: &Input) -> Self {
        let fields = COVERED.into_iter().filter_map(|name| {
            let text = match input.document.get(name)? {
                Value::Number(_) if name == "fee" => fee_as_sent(&input.body)?,
                Value::String(text) if name != "fee" && !text.trim().is_empty() => text.clone(),
                _ => return None,
            };
            Some((name, text))
        });
        Self { fields: fields.collect() }
    }

    /// True if an offer that sets them must be signed.
    pub(crate) fn needs_signature(&self) -> bool {
        self.fields.iter().any(|(name, _)| *name != UNSIGNED_ALONE)
    }

    /// The canonical text.
    pub fn canonical(&self) -> String {
        canonical(self.fields.iter().map(|(name, value)| (*name, value.as_str())))
    }

    /// Names and values, in canonical order.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.fields.iter().map(|(name, value)| (*name, value.as_str()))
    }
}

/// The canonical text of these fields; their names must be plain and unique.
pub(crate) fn canonical<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut fields: Vec<_> = fields.into_iter().collect();
    fields.sort_unstable();
    let pair = |(name, value)| format!("{name}={}", encode(value));
    fields.into_iter().map(pair).collect::<Vec<_>>().join("&")
}

/// A value as it is encoded in the canonical text.
pub fn encode(value: &str) -> String {
    uri::escape(value)
}

/// True if the text has the form of a signature: lower-case hex or base64 of 32 bytes.
pub fn is_well_formed(signature: &str) -> bool {
    decode(signature).is_some()
}

/// Verifies a signature against every live secret of the tenant, in constant time.
///
/// # Errors
/// ER331 when no secret is live, ER336 when the signature is valid for none.
pub fn check(
    secrets: &[TimedSecret],
    now: DateTime<Utc>,
    text: &str,
    signature: &str,
) -> Result<()> {
    if !secrets.iter().any(|secret| secret.is_live(now)) {
        return Err(Code::SigningSecretMissing.into());
    }
    let tag = decode(signature).ok_or_else(|| {
        let detail = "it is neither lower-case hex nor base64 of 32 bytes";
        Error::of_member_with(Code::SignatureInvalid, MEMBER, detail)
    })?;
    match has_signed(secrets, now, text, &tag) {
        true => Ok(()),
        false => Err(Error::of_member(Code::SignatureInvalid, MEMBER)),
    }
}

/// True if a live secret of the tenant gives the text this tag, compared in constant time.
pub(crate) fn has_signed(
    secrets: &[TimedSecret],
    now: DateTime<Utc>,
    text: &str,
    tag: &[u8],
) -> bool {
    let mut live = secrets.iter().filter(|secret| secret.is_live(now));
    live.any(|secret| hmac::verify(&key(secret), text.as_bytes(), tag).is_ok())
}

/// Signs a text with the tenant's current secret; `None` when no secret is live.
pub(crate) fn sign(secrets: &[TimedSecret], now: DateTime<Utc>, text: &str) -> Option<String> {
    let secret = secrets.iter().find(|secret| secret.is_live(now))?;
    Some(hex::encode(hmac::sign(&key(secret), text.as_bytes())))
}

fn key(secret: &TimedSecret) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.secret.expose().as_bytes())
}

/// The 32 bytes of a signature in lower-case hex or base64.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let bytes = if text.len() == 2 * digest::SHA256_OUTPUT_LEN && text.bytes().all(lower) {
        hex::decode(text).ok()
    } else {
        BASE64.decode(text).ok()
    };
    bytes.filter(|bytes| bytes.len() == digest::SHA256_OUTPUT_LEN)
}

/// The digits of `fee` as sent: the parsed document would rewrite exponents.
fn fee_as_sent(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        fee: &'a RawValue,
    }
    let body: Body<'_> = serde_json::from_slice(body).ok()?;
    Some(body.fee.get().to_owned())
}

#[cfg(test)]
mod tests;
