//! Statements of operators about any change of a policy but a new version, which a manifest is for.
//! With both, a stolen admin token alone changes no policy.
//!
//! The signature is Ed25519 (RFC 8032) over [`DOMAIN`] and the text of the statement, byte for byte.

use chrono::{DateTime, Utc};
use ring::signature::Ed25519KeyPair;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Domain separation: prefix of the signed text.
pub const DOMAIN: &str = "rampart policy change 1\n";

/// Content of a statement: an action and its object. Members that the action does not have are left
/// out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ChangeStatement {
    /// Such as `policy.activate`.
    pub action: String,
    /// The partner's slug.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partner: Option<String>,
    /// The kind of policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The version to serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// Percentage of the users, 1 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentage: Option<i16>,
    /// Name of the operator's key that is registered or removed, or of the verification key that is set
    /// or deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// SHA-256 of the text of the key that is registered or set, without outer white space, in
    /// lower-case hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Algorithm of the verification key that is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// Start of its validity, if bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<DateTime<Utc>>,
    /// End of its validity, if bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<DateTime<Utc>>,
    /// Time of the signature, in seconds since 1970.
    pub at: i64,
}

/// A statement as received, not verified yet.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "SignedStatement")]
#[serde(deny_unknown_fields)]
pub struct SignedChange {
    /// The JSON text that was signed.
    pub(super) statement: String,
    /// Name of the operator's key.
    pub(super) key: String,
    /// The signature, in base64.
    pub(super) value: String,
}

impl ChangeStatement {
    /// The text of the statement and its signature, made with an Ed25519 key in PKCS #8 PEM.
    ///
    /// # Errors
    /// When `pem` is no such key.
    pub fn sign(&self, pem: &str) -> Result<(String, Vec<u8>), &'static str> {
        let text = serde_json::to_string(self).map_err(|_| "the statement cannot be written")?;
        let signature = sign_text(pem, DOMAIN, &text)?;
        Ok((text, signature))
    }
}

/// The signature of a text of this domain, made with an Ed25519 key in PKCS #8 PEM.
///
/// # Errors
/// When `pem` is no such key.
pub(super) fn sign_text(pem: &str, domain: &str, text: &str) -> Result<Vec<u8>, &'static str> {
    let not_a_key = "the key is not an Ed25519 key in PKCS #8 PEM";
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| not_a_key)?;
    let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der())
        .map_err(|_| not_a_key)?;
    Ok(pair.sign([domain, text].concat().as_bytes()).as_ref().to_vec())
}
