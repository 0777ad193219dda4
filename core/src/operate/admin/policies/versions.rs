//! Versions: `/admin/v1/partners/{slug}/policies/{kind}/versions`.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Because, because, target};
use crate::Core;
use crate::operate::admin::{Answer, Input, Refused, created, ok};
use crate::policies::lifecycle::{self, StageRequest, VersionSettings};
use crate::policies::manifest::SignedManifest;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Stage {
    /// In base64.
    component: Option<String>,
    config: Option<Map<String, Value>>,
    fail_closed: Option<bool>,
    /// The JSON text that was signed, which then says configuration and `failClosed` itself.
    manifest: Option<String>,
    signature: Option<Signature>,
    #[serde(default)]
    activate: bool,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Signature {
    /// Name of the operator's key.
    key: String,
    /// In base64.
    value: String,
}

/// `POST …/versions`: a version that serves nobody yet, or with `activate` everybody.
pub(in crate::operate::admin) async fn stage(core: &Arc<Core>, input: Input) -> Answer {
    let stage: Stage = input.json()?;
    let bytes = |name: &str, text: String| {
        let decoded = STANDARD.decode(text);
        decoded.map_err(|_| Refused::unprocessable(format!("{name}: not base64")))
    };
    let signed = match (stage.manifest, stage.signature) {
        (Some(manifest), Some(Signature { key, value })) => {
            let signature = bytes("signature", value)?;
            Some(SignedManifest { manifest, key, signature })
        }
        (None, None) => None,
        _ => return Err(Refused::unprocessable("manifest and signature: both or neither")),
    };
    if signed.is_some() && (stage.config.is_some() || stage.fail_closed.is_some()) {
        return Err(Refused::unprocessable("config and failClosed: the manifest says them"));
    }
    let staging = StageRequest {
        component: stage.component.map(|text| bytes("component", text)).transpose()?,
        settings: VersionSettings { config: stage.config, fail_closed: stage.fail_closed },
        signed,
        activate: stage.activate,
    };
    let target = because(target(core, &input).await?, stage.reason.as_deref())?;
    created(&lifecycle::stage(core, target, staging).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Activate {
    percentage: Option<i16>,
    reason: Option<String>,
}

/// `POST …/versions/{version}/activate`: for everybody, or for `percentage` of the users.
pub(in crate::operate::admin) async fn activate(core: &Arc<Core>, input: Input) -> Answer {
    let Activate { percentage, reason } = input.json()?;
    let version = number(&input)?;
    let target = because(target(core, &input).await?, reason.as_deref())?;
    ok(&match percentage {
        None | Some(100) => lifecycle::activate(core, target, version).await?,
        Some(share @ 1..100) => lifecycle::start_canary(core, target, version, share).await?,
        Some(_) => return Err(Refused::unprocessable("percentage: 1 to 100")),
    })
}

/// `POST …/versions/{version}/shadow`
pub(in crate::operate::admin) async fn shadow(core: &Arc<Core>, input: Input) -> Answer {
    let Because { reason } = input.json()?;
    let version = number(&input)?;
    let target = because(target(core, &input).await?, reason.as_deref())?;
    ok(&lifecycle::start_shadow(core, target, version).await?)
}

fn number(input: &Input) -> Result<i64, Refused> {
    input.param("version").parse().map_err(|_| Refused::not_found("version"))
}
