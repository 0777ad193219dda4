//! What an operator signs: which component is which version of whose policy, with which
//! configuration. A stolen admin token alone then changes no policy.
//!
//! The signature is Ed25519 (RFC 8032) over [`DOMAIN`] and the text of the manifest, byte for byte.
//! The manifest names the number that the version will have, so that it cannot be sent twice.

use ring::signature::Ed25519KeyPair;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sqlx::PgConnection;

use super::lifecycle::{NotDone, Target};
use super::operator_keys;
use crate::Core;
use crate::platform::crypto::digest_of;
use crate::platform::error::Result;

/// What stands before the manifest in what is signed, so that no other signature of the key counts.
const DOMAIN: &str = "rampart policy manifest 1\n";
/// Largest manifest, in bytes: a configuration is what it is made of.
const MANIFEST_BYTES_MAX: usize = 64 << 10;

/// A manifest whose signature was found good.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) text: String,
    /// Name of the operator's key, and of the key itself.
    pub(super) signer: String,
    pub(super) fingerprint: String,
    pub(super) version: i64,
    pub(super) digest: String,
    pub(super) config: Map<String, Value>,
    pub(super) fail_closed: bool,
}

/// The members of a manifest.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Members {
    partner: String,
    kind: String,
    version: i64,
    digest: String,
    #[serde(default)]
    config: Map<String, Value>,
    #[serde(default)]
    fail_closed: bool,
}

/// A manifest as it was sent, not proven yet.
#[derive(Debug)]
pub(crate) struct Signed {
    /// The JSON text that was signed.
    pub(crate) manifest: String,
    /// Name of the operator's key.
    pub(crate) key: String,
    /// 64 bytes.
    pub(crate) signature: Vec<u8>,
}

impl Signed {
    /// The manifest, if its signature is good and it is about `target`.
    ///
    /// # Errors
    /// [`NotDone::Unfit`] with what is wrong.
    pub(super) async fn proven(self, core: &Core, target: Target<'_>) -> Result<Manifest, NotDone> {
        let unfit = |reason: String| NotDone::Unfit(format!("manifest: {reason}"));
        if self.manifest.len() > MANIFEST_BYTES_MAX {
            return Err(unfit(format!("it has at most {MANIFEST_BYTES_MAX} bytes")));
        }
        let key = operator_keys::find(core, &self.key)
            .await?
            .ok_or_else(|| unfit("its key is not registered".to_owned()))?;
        let message = [DOMAIN, &self.manifest].concat();
        if key.public.verifies(message.as_bytes(), &self.signature) != Some(true) {
            return Err(unfit("its signature is not good".to_owned()));
        }
        let document = crate::http::fields::parse(self.manifest.as_bytes())
            .map_err(|_| unfit("it is not JSON".to_owned()))?;
        let members: Members =
            serde_json::from_value(document).map_err(|error| unfit(error.to_string()))?;
        if (&*members.partner, &*members.kind) != (target.slug, target.kind.as_str()) {
            return Err(unfit("it is about another policy".to_owned()));
        }
        Ok(Manifest {
            text: self.manifest,
            signer: self.key,
            fingerprint: key.fingerprint,
            version: members.version,
            digest: members.digest,
            config: members.config,
            fail_closed: members.fail_closed,
        })
    }
}

/// What [`sign`] makes a manifest of.
#[derive(Debug)]
pub struct Unsigned<'a> {
    /// The partner's short name.
    pub partner: &'a str,
    /// signature, fee or method-order.
    pub kind: &'a str,
    /// The number that the version will have.
    pub version: i64,
    /// SHA-256 of the component, in lower-case hex.
    pub digest: &'a str,
    /// What it is configured with.
    pub config: Map<String, Value>,
    /// Whether a malfunction refuses the request.
    pub fail_closed: bool,
}

/// The text of a manifest and its signature, made with an Ed25519 key in PKCS #8 PEM.
///
/// # Errors
/// When the text is no such key.
pub fn sign(pem: &str, unsigned: &Unsigned<'_>) -> Result<(String, Vec<u8>), &'static str> {
    let not_a_key = "the key is not an Ed25519 key in PKCS #8 PEM";
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| not_a_key)?;
    let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der())
        .map_err(|_| not_a_key)?;
    let manifest = json!({
        "partner": unsigned.partner,
        "kind": unsigned.kind,
        "version": unsigned.version,
        "digest": unsigned.digest,
        "config": unsigned.config,
        "failClosed": unsigned.fail_closed,
    })
    .to_string();
    let signature = pair.sign([DOMAIN, &manifest].concat().as_bytes());
    Ok((manifest, signature.as_ref().to_vec()))
}

/// SHA-256 in lower-case hex.
pub fn digest_hex(bytes: &[u8]) -> String {
    hex::encode(ring::digest::digest(&ring::digest::SHA256, bytes))
}

/// Name of a key that no other key can have.
pub(super) fn fingerprint(pem: &str) -> String {
    hex::encode(digest_of(pem.trim()))
}

/// Refuses a change without a manifest where the platform or the partner requires one.
///
/// # Errors
/// [`NotDone::Unfit`] where one is required.
pub(super) async fn check_unsigned(core: &Core, target: Target<'_>) -> Result<(), NotDone> {
    let mut conn = core.db.acquire().await?;
    match is_required(core, &mut conn, target).await? {
        true => Err(NotDone::Unfit("a signed manifest is required here: push a version".into())),
        false => Ok(()),
    }
}

/// Refuses a stored version that no registered key has signed, where a signature is required.
///
/// # Errors
/// [`NotDone::Conflict`] where one is required.
pub(super) async fn check_stored(
    core: &Core,
    conn: &mut PgConnection,
    target: Target<'_>,
    signed_with: Option<&str>,
) -> Result<(), NotDone> {
    if !is_required(core, conn, target).await? {
        return Ok(());
    }
    let signed = match signed_with {
        Some(fingerprint) => operator_keys::is_registered(conn, fingerprint).await?,
        None => false,
    };
    match signed {
        true => Ok(()),
        false => Err(NotDone::Conflict("no registered key has signed the version")),
    }
}

async fn is_required(core: &Core, conn: &mut PgConnection, target: Target<'_>) -> Result<bool> {
    if core.settings.policy.require_signature {
        return Ok(true);
    }
    let required = sqlx::query_scalar!(
        "select policy_signature_required from client where client_id = $1",
        target.client.uuid(),
    )
    .fetch_one(conn)
    .await?;
    Ok(required)
}
