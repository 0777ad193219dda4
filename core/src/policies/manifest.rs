//! Manifests, signed by operators: the component and configuration of one version of one partner's
//! policy. A stolen admin token alone then changes no policy.
//!
//! The signature is Ed25519 (RFC 8032) over [`DOMAIN`] and the text of the manifest, byte for byte.
//! A manifest has the number of its version, so that it cannot be replayed.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lifecycle::error::LifecycleError;
use super::lifecycle::target::Target;
use super::operator_keys;
pub use super::runtime::fingerprint;
use super::statement::sign_text;
use crate::Core;
use crate::platform::crypto::sha256;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use rampart_types::ClientId;

/// Domain separation: prefix of the signed text, so that no other signature of the key is valid.
pub const DOMAIN: &str = "rampart policy manifest 1\n";
/// Largest manifest, in bytes; most of it is configuration.
const MANIFEST_BYTES_MAX: usize = 64 << 10;

/// A manifest with a verified signature.
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
    /// False if it is signed for a version that its upload does not activate.
    may_activate: bool,
}

impl Manifest {
    /// Checks that the call that uploads the version may activate it, if that is asked for.
    ///
    /// # Errors
    /// [`LifecycleError::Invalid`] where the manifest says otherwise.
    pub(super) fn check_activation(&self, is_asked: bool) -> Result<(), LifecycleError> {
        if is_asked && !self.may_activate {
            return Err(LifecycleError::Invalid(
                "manifest: it is signed for a version that its upload does not activate".to_owned(),
            ));
        }
        Ok(())
    }
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
    /// Earlier manifests say nothing, and leave it to the call.
    activate: Option<bool>,
}

/// A manifest as received, not verified yet.
#[derive(Debug)]
pub struct SignedManifest {
    /// The JSON text that was signed.
    pub manifest: String,
    /// Name of the operator's key.
    pub key: String,
    /// 64 bytes.
    pub signature: Vec<u8>,
}

impl SignedManifest {
    /// Verifies the signature, and that the manifest is about `target`.
    ///
    /// # Errors
    /// [`LifecycleError::Invalid`] with the problem.
    pub(super) async fn verify(
        self,
        core: &Core,
        target: Target<'_>,
    ) -> Result<Manifest, LifecycleError> {
        let invalid = |reason: String| LifecycleError::Invalid(format!("manifest: {reason}"));
        if self.manifest.len() > MANIFEST_BYTES_MAX {
            return Err(invalid(format!("it has at most {MANIFEST_BYTES_MAX} bytes")));
        }
        let mut conn = core.db.acquire().await?;
        let key = operator_keys::find(core, &mut conn, &self.key)
            .await?
            .ok_or_else(|| invalid("its key is not registered".to_owned()))?;
        let message = [DOMAIN, &self.manifest].concat();
        if key.public.verifies(message.as_bytes(), &self.signature) != Some(true) {
            return Err(invalid("its signature is not good".to_owned()));
        }
        let document = crate::http::fields::parse(self.manifest.as_bytes())
            .map_err(|_| invalid("it is not JSON".to_owned()))?;
        let members: Members =
            serde_json::from_value(document).map_err(|error| invalid(error.to_string()))?;
        if (&*members.partner, &*members.kind) != (target.slug, target.kind.as_str()) {
            return Err(invalid("it is about another policy".to_owned()));
        }
        Ok(Manifest {
            text: self.manifest,
            signer: self.key,
            fingerprint: key.fingerprint,
            version: members.version,
            digest: members.digest,
            config: members.config,
            fail_closed: members.fail_closed,
            may_activate: members.activate.unwrap_or(true),
        })
    }
}

/// The content of a manifest to [`sign`].
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestContent<'a> {
    /// The partner's slug.
    pub partner: &'a str,
    /// signature, fee or method-order.
    pub kind: &'a str,
    /// The number that the version will have.
    pub version: i64,
    /// SHA-256 of the component, in lower-case hex.
    pub digest: &'a str,
    /// Its configuration.
    pub config: Map<String, Value>,
    /// True to refuse the request when the policy fails.
    pub fail_closed: bool,
    /// False to forbid the upload to activate the version; the call decides if it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activate: Option<bool>,
}

/// The text of a manifest and its signature, made with an Ed25519 key in PKCS #8 PEM.
///
/// # Errors
/// When the text is no such key.
pub fn sign(pem: &str, content: &ManifestContent<'_>) -> Result<(String, Vec<u8>), &'static str> {
    let manifest = serde_json::to_string(content).map_err(|_| "the manifest cannot be written")?;
    let signature = sign_text(pem, DOMAIN, &manifest)?;
    Ok((manifest, signature))
}

/// SHA-256 in lower-case hex.
pub fn digest_hex(bytes: &[u8]) -> String {
    hex::encode(sha256(bytes))
}

/// Checks that neither the platform nor the partner requires a manifest.
///
/// # Errors
/// [`LifecycleError::Invalid`] where one is required.
pub(super) async fn check_unsigned_allowed(
    core: &Core,
    target: Target<'_>,
) -> Result<(), LifecycleError> {
    let mut conn = core.db.acquire().await?;
    check_unsigned_allowed_in(core, &mut conn, target).await
}

/// The same in a transaction that holds the row lock of the client.
///
/// # Errors
/// As [`check_unsigned_allowed`].
pub(super) async fn check_unsigned_allowed_in(
    core: &Core,
    conn: &mut Connection,
    target: Target<'_>,
) -> Result<(), LifecycleError> {
    match is_required(core, conn, target.client).await? {
        true => Err(LifecycleError::Invalid(
            "a signed manifest is required here: sign it with a registered key".into(),
        )),
        false => Ok(()),
    }
}

/// Checks that a registered key has signed a stored version, where a signature is required.
///
/// # Errors
/// [`LifecycleError::Conflict`] where one is required.
pub(super) async fn check_stored_signature(
    core: &Core,
    conn: &mut Connection,
    target: Target<'_>,
    signed_with: Option<&str>,
) -> Result<(), LifecycleError> {
    if !is_required(core, conn, target.client).await? {
        return Ok(());
    }
    let signed = match signed_with {
        Some(fingerprint) => operator_keys::is_registered(core, conn, fingerprint).await?,
        None => false,
    };
    match signed {
        true => Ok(()),
        false => Err(LifecycleError::Conflict("no registered key has signed the version")),
    }
}

/// True if this client's policies must be signed.
pub(super) async fn is_required(
    core: &Core,
    conn: &mut Connection,
    client: ClientId,
) -> Result<bool> {
    if core.settings.policy.require_signature {
        return Ok(true);
    }
    let required = sqlx::query_scalar!(
        "select policy_signature_required from client where client_id = $1",
        client.uuid(),
    )
    .fetch_one(conn)
    .await?;
    Ok(required)
}
