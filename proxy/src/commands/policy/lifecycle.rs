//! Life cycle of a partner's policy: `rampart policy push|configure|show|dry-run|shadow|activate|
//! trial|end-trial|rollback|delete|signer`.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, Subcommand};
use http::Method;
use rampart_core::policies::manifest::{self, ManifestContent};
use rampart_core::policies::statement::ChangeStatement;
use serde_json::{Map, Value, json};

use super::signing::{Signer, Signing};
use crate::commands::query::{path, query};
use crate::commands::{Target, read_file, write_file};
use crate::operator::{Body, Operator};
use crate::startup_error::StartupError;

/// One kind of policy of one partner.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The partner's short name.
    slug: String,
    /// signature, fee or method-order.
    kind: String,
    #[command(flatten)]
    target: Target,
}

impl Which {
    /// The path of the policy, or of what is below it.
    fn path(&self, below: &[&str]) -> String {
        let policy = ["partners", self.slug.as_str(), "policies", self.kind.as_str()];
        path(&[&policy[..], below].concat())
    }

    /// A statement about this policy.
    fn change(&self, action: &str) -> ChangeStatement {
        ChangeStatement {
            action: action.to_owned(),
            partner: Some(self.slug.clone()),
            kind: Some(self.kind.clone()),
            ..ChangeStatement::default()
        }
    }
}

/// Why, for the history.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Why: kept in the history.
    #[arg(long)]
    reason: Option<String>,
}

impl Why {
    fn body(&self, mut members: Value) -> Body {
        if let (Value::Object(members), Some(reason)) = (&mut members, &self.reason) {
            members.insert("reason".to_owned(), reason.as_str().into());
        }
        Body::Json(members)
    }
}

/// Options that accompany a component.
#[derive(Debug, Args)]
pub(crate) struct Beside {
    /// The configuration, a JSON object in a file; the active one's where it is left out.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// True if a failure of the policy refuses the request.
    #[arg(long, value_name = "true|false")]
    fail_closed: Option<bool>,
    /// Store it as a version that serves nobody yet.
    #[arg(long)]
    stage: bool,
    /// Only write the signed manifest to this file, for the partner's staff to upload in their portal.
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with = "stage")]
    manifest_out: Option<PathBuf>,
    #[command(flatten)]
    signing: Signing,
    #[command(flatten)]
    why: Why,
}

/// Commands that act on a running edge.
#[derive(Debug, Subcommand)]
pub(crate) enum Lifecycle {
    /// Admit a component and make it the partner's policy, at once unless it is staged.
    Push {
        #[command(flatten)]
        which: Which,
        /// The component.
        file: PathBuf,
        #[command(flatten)]
        beside: Beside,
    },
    /// Give the active component other settings, as a new version.
    Configure {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        beside: Beside,
    },
    /// List a policy's versions, what is on trial, and who changed what and why.
    Show {
        #[command(flatten)]
        which: Which,
    },
    /// Ask a version, storing nothing.
    DryRun {
        #[command(flatten)]
        which: Which,
        /// The input, as JSON in a file: an object, or an array of several.
        #[arg(required_unless_present = "recorded")]
        input: Option<PathBuf>,
        /// Ask what live requests have asked.
        #[arg(long, conflicts_with = "input")]
        recorded: bool,
        /// Another version than the active one.
        #[arg(long)]
        number: Option<i64>,
    },
    /// Run a version beside the active one, comparing and using none of its answers.
    Shadow {
        #[command(flatten)]
        which: Which,
        /// The version's number.
        number: i64,
        #[command(flatten)]
        why: Why,
        #[command(flatten)]
        signing: Signing,
    },
    /// Let a version serve everybody, or a share of the users.
    Activate {
        #[command(flatten)]
        which: Which,
        /// The version's number.
        number: i64,
        /// Percent of the users.
        #[arg(long, default_value_t = 100)]
        percentage: u8,
        #[command(flatten)]
        why: Why,
        #[command(flatten)]
        signing: Signing,
    },
    /// Show what is on trial: its share, or how its shadow runs compare.
    Trial {
        #[command(flatten)]
        which: Which,
    },
    /// End a shadow run or a share.
    EndTrial {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        why: Why,
        #[command(flatten)]
        signing: Signing,
    },
    /// Go one step back.
    Rollback {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        why: Why,
        #[command(flatten)]
        signing: Signing,
    },
    /// Go back to the built-in policy.
    Delete {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        why: Why,
        #[command(flatten)]
        signing: Signing,
    },
    /// Keys of operators that sign manifests.
    #[command(subcommand)]
    Signer(Signer),
}

impl Lifecycle {
    /// Runs the command and prints its result.
    ///
    /// # Errors
    /// One sentence for the operator.
    pub(crate) fn run(self) -> Result<(), StartupError> {
        match self {
            Self::Push { which, file, beside } => push(&which, &beside, Some(read_file(&file)?)),
            Self::Configure { which, beside } => push(&which, &beside, None),
            Self::Show { which } => which.target.get(&which.path(&[])),
            Self::DryRun { which, input, recorded, number } => {
                let mut body = asked(input.as_deref(), recorded)?;
                body["version"] = number.into();
                let path = which.path(&["dry-run"]);
                which.target.send(Method::POST, &path, Body::Json(body))
            }
            Self::Shadow { which, number, why, signing } => {
                let path = which.path(&["versions", &number.to_string(), "shadow"]);
                let change =
                    ChangeStatement { version: Some(number), ..which.change("policy.shadow") };
                which.target.send(Method::POST, &path, why.body(signing.sign(json!({}), change)?))
            }
            Self::Activate { which, number, percentage, why, signing } => {
                let path = which.path(&["versions", &number.to_string(), "activate"]);
                let change = ChangeStatement {
                    version: Some(number),
                    percentage: Some(percentage.into()),
                    ..which.change("policy.activate")
                };
                let body = signing.sign(json!({ "percentage": percentage }), change)?;
                which.target.send(Method::POST, &path, why.body(body))
            }
            Self::Trial { which } => which.target.get(&which.path(&["trial"])),
            Self::EndTrial { which, why, signing } => {
                let body = signing.sign(json!({}), which.change("policy.end-trial"))?;
                which.target.send(Method::DELETE, &which.path(&["trial"]), why.body(body))
            }
            Self::Rollback { which, why, signing } => {
                let path = which.path(&["rollback"]);
                let body = signing.sign(json!({}), which.change("policy.rollback"))?;
                which.target.send(Method::POST, &path, why.body(body))
            }
            Self::Delete { which, why, signing } => {
                let body = signing.sign(json!({}), which.change("policy.remove"))?;
                which.target.send(Method::DELETE, &which.path(&[]), why.body(body))
            }
            Self::Signer(signer) => signer.run(),
        }
    }
}

/// The body of a dry run.
fn asked(input: Option<&Path>, recorded: bool) -> Result<Value, StartupError> {
    let Some(file) = input.filter(|_| !recorded) else { return Ok(json!({ "recorded": true })) };
    Ok(match document(file)? {
        Value::Array(inputs) => json!({ "inputs": inputs }),
        input => json!({ "input": input }),
    })
}

/// Uploads a component, or the active one again, with what stands beside it.
fn push(which: &Which, beside: &Beside, component: Option<Vec<u8>>) -> Result<(), StartupError> {
    let config = match &beside.settings {
        Some(file) => Some(object(document(file)?)?),
        None => None,
    };
    let key = beside.signing.key()?;
    which.target.run(async |operator| {
        if key.is_none() && !beside.stage {
            return at_once(&operator, which, beside, config, component).await;
        }
        let mut body = json!({ "activate": !beside.stage });
        if let Some(component) = &component {
            body["component"] = STANDARD.encode(component).into();
        }
        match key {
            Some((pem, name)) => {
                let history = operator.get(&which.path(&[])).await?;
                let (manifest, signature) =
                    signed(which, beside, (&pem, name, &history), config, component.as_deref())?;
                if let Some(file) = &beside.manifest_out {
                    // Byte for byte as it was signed; the portal's form asks for the signature too.
                    write_file(file, manifest.as_bytes())?;
                    return Ok(signature);
                }
                body["manifest"] = manifest.into();
                body["signature"] = signature;
            }
            None => {
                body["config"] = config.into();
                body["failClosed"] = beside.fail_closed.into();
            }
        }
        operator.call(Method::POST, &which.path(&["versions"]), beside.why.body(body)).await
    })
}

/// The contract's own calls: what is pushed serves at once.
async fn at_once(
    operator: &Operator,
    which: &Which,
    beside: &Beside,
    config: Option<Map<String, Value>>,
    component: Option<Vec<u8>>,
) -> Result<Value, StartupError> {
    let Some(component) = component else {
        let body = json!({"config": config, "failClosed": beside.fail_closed});
        let path = which.path(&["config"]);
        return operator.call(Method::PUT, &path, beside.why.body(body)).await;
    };
    let parameters = query([
        ("config", config.map(|config| Value::Object(config).to_string())),
        ("failClosed", beside.fail_closed.map(|flag| flag.to_string())),
        ("reason", beside.why.reason.clone()),
    ]);
    let path = which.path(&[]) + &parameters;
    operator.call(Method::PUT, &path, Body::Component(component)).await
}

/// The manifest of the next version, and its signature, as members of a body.
fn signed(
    which: &Which,
    beside: &Beside,
    (pem, name, history): (&str, &str, &Value),
    config: Option<Map<String, Value>>,
    component: Option<&[u8]>,
) -> Result<(String, Value), StartupError> {
    let versions = history["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let active = versions.iter().find(|version| version["active"] == true);
    let active = active.unwrap_or(&Value::Null);
    let newest = versions.first().and_then(|version| version["version"].as_i64()).unwrap_or(0);
    let digest = match component {
        Some(component) => manifest::digest_hex(component),
        None => active["digest"]
            .as_str()
            .ok_or_else(|| {
                StartupError::from("there is no active version to configure".to_owned())
            })?
            .to_owned(),
    };
    let kept = || active["config"].as_object().cloned().unwrap_or_default();
    let unsigned = ManifestContent {
        partner: &which.slug,
        kind: &which.kind,
        version: newest + 1,
        digest: &digest,
        config: config.unwrap_or_else(kept),
        fail_closed: beside.fail_closed.unwrap_or(active["failClosed"] == true),
    };
    let (text, signature) =
        manifest::sign(pem, &unsigned).map_err(|reason| StartupError::from(reason.to_owned()))?;
    Ok((text, json!({"key": name, "value": STANDARD.encode(signature)})))
}

fn document(file: &Path) -> Result<Value, StartupError> {
    serde_json::from_slice(&read_file(file)?)
        .map_err(|e| StartupError::new(&format!("'{}' is not JSON", file.display()), &e))
}

fn object(value: Value) -> Result<Map<String, Value>, StartupError> {
    match value {
        Value::Object(members) => Ok(members),
        _ => Err(StartupError::from("the settings are not a JSON object".to_owned())),
    }
}
