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
use crate::commands::{
    AdminClient, Body, Call, Run, StartupError, Target, path, query, read_file, read_json,
    write_file,
};

/// One kind of policy of one partner.
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    /// The partner's slug.
    slug: String,
    /// signature, fee or method-order.
    kind: String,
    #[command(flatten)]
    target: Target,
}

impl PolicyArgs {
    /// The path of the policy, or of what is below it.
    fn path(&self, below: &[&str]) -> String {
        let policy = ["partners", self.slug.as_str(), "policies", self.kind.as_str()];
        path(&[&policy[..], below].concat())
    }

    /// Shows the policy, or what is below it.
    fn show(&self, below: &[&str]) -> Result<(), StartupError> {
        self.target.send(Method::GET, &self.path(below), Body::None)
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

/// The reason of a change.
#[derive(Debug, Args)]
pub(crate) struct ReasonArg {
    /// Reason of the change, kept in the history.
    #[arg(long)]
    reason: Option<String>,
}

impl ReasonArg {
    fn body(&self, mut members: Value) -> Body {
        if let Some(reason) = &self.reason {
            members["reason"] = reason.as_str().into();
        }
        Body::Json(members)
    }
}

/// A change of one policy, with its reason and its signature.
#[derive(Debug, Args)]
pub(crate) struct ChangeArgs {
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    reason: ReasonArg,
    #[command(flatten)]
    signing: Signing,
}

impl ChangeArgs {
    /// Makes the change by one call.
    fn send(
        &self,
        method: Method,
        below: &[&str],
        members: Value,
        change: ChangeStatement,
    ) -> Result<(), StartupError> {
        let body = self.signing.sign(members, change)?;
        self.policy.target.send(method, &self.policy.path(below), self.reason.body(body))
    }

    /// Makes a change that has no members of its own.
    fn act(&self, method: Method, below: &[&str], action: &str) -> Result<(), StartupError> {
        self.send(method, below, json!({}), self.policy.change(action))
    }
}

/// Options that accompany a component.
#[derive(Debug, Args)]
pub(crate) struct VersionOptions {
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
    reason: ReasonArg,
}

/// Commands that act on a running edge.
#[derive(Debug, Subcommand)]
pub(crate) enum Lifecycle {
    /// Upload a component as a new version, and activate it unless it is staged.
    Push {
        #[command(flatten)]
        policy: PolicyArgs,
        /// The component.
        file: PathBuf,
        #[command(flatten)]
        options: VersionOptions,
    },
    /// Give the active component other settings, as a new version.
    Configure {
        #[command(flatten)]
        policy: PolicyArgs,
        #[command(flatten)]
        options: VersionOptions,
    },
    /// List a policy's versions, its trial, and who changed what and why.
    Show(PolicyArgs),
    /// Dry-run a version on inputs; nothing is stored.
    DryRun {
        #[command(flatten)]
        policy: PolicyArgs,
        /// The input, as JSON in a file: an object, or an array of several.
        #[arg(required_unless_present = "recorded")]
        input: Option<PathBuf>,
        /// Use recorded inputs of live requests.
        #[arg(long, conflicts_with = "input")]
        recorded: bool,
        /// Another version than the active one.
        #[arg(long)]
        number: Option<i64>,
    },
    /// Start a shadow run: the version's outputs are compared, and not used.
    Shadow {
        #[command(flatten)]
        args: ChangeArgs,
        /// The version's number.
        number: i64,
    },
    /// Activate a version for all users, or as a canary for a percentage of them.
    Activate {
        #[command(flatten)]
        args: ChangeArgs,
        /// The version's number.
        number: i64,
        /// Percent of the users.
        #[arg(long, default_value_t = 100)]
        percentage: u8,
    },
    /// Show the trial: the canary's percentage, or how the shadow run compares.
    Trial(PolicyArgs),
    /// End a shadow run or a canary.
    EndTrial(ChangeArgs),
    /// End the canary, or activate the previous version.
    Rollback(ChangeArgs),
    /// Return to the built-in rule.
    Delete(ChangeArgs),
    Signer {
        #[command(flatten)]
        target: Target,
        #[command(subcommand)]
        signer: Signer,
    },
}

impl Run for Lifecycle {
    fn run(self) -> Result<(), StartupError> {
        match self {
            Self::Push { policy, file, options } => {
                push(&policy, &options, Some(read_file(&file)?))
            }
            Self::Configure { policy, options } => push(&policy, &options, None),
            Self::Show(policy) => policy.show(&[]),
            Self::DryRun { policy, input, recorded, number } => {
                let mut body = asked(input.as_deref(), recorded)?;
                body["version"] = number.into();
                policy.target.send(Method::POST, &policy.path(&["dry-run"]), body)
            }
            Self::Shadow { args, number } => {
                let change = ChangeStatement {
                    version: Some(number),
                    ..args.policy.change("policy.shadow")
                };
                let below: &[&str] = &["versions", &number.to_string(), "shadow"];
                args.send(Method::POST, below, json!({}), change)
            }
            Self::Activate { args, number, percentage } => {
                let change = ChangeStatement {
                    version: Some(number),
                    percentage: Some(percentage.into()),
                    ..args.policy.change("policy.activate")
                };
                let below: &[&str] = &["versions", &number.to_string(), "activate"];
                args.send(Method::POST, below, json!({ "percentage": percentage }), change)
            }
            Self::Trial(policy) => policy.show(&["trial"]),
            Self::EndTrial(args) => args.act(Method::DELETE, &["trial"], "policy.end-trial"),
            Self::Rollback(args) => args.act(Method::POST, &["rollback"], "policy.rollback"),
            Self::Delete(args) => args.act(Method::DELETE, &[], "policy.remove"),
            Self::Signer { target, signer } => signer.call(&target),
        }
    }
}

/// The body of a dry run.
fn asked(input: Option<&Path>, recorded: bool) -> Result<Value, StartupError> {
    let Some(file) = input.filter(|_| !recorded) else { return Ok(json!({ "recorded": true })) };
    Ok(match read_json(file)? {
        Value::Array(inputs) => json!({ "inputs": inputs }),
        input => json!({ "input": input }),
    })
}

/// Uploads a component, or the active one again, with what stands beside it.
fn push(
    policy: &PolicyArgs,
    options: &VersionOptions,
    component: Option<Vec<u8>>,
) -> Result<(), StartupError> {
    let config = match options.settings.as_deref().map(read_json).transpose()? {
        Some(Value::Object(members)) => Some(members),
        Some(_) => return Err(StartupError::from("the settings are not a JSON object")),
        None => None,
    };
    let key = options.signing.key()?;
    policy.target.run(async |admin| {
        if key.is_none() && !options.stage {
            return at_once(&admin, policy, options, config, component).await;
        }
        let mut body = json!({ "activate": !options.stage });
        if let Some(component) = &component {
            body["component"] = STANDARD.encode(component).into();
        }
        match key {
            Some((pem, name)) => {
                let history = admin.get(&policy.path(&[])).await?;
                let (manifest, signature) =
                    signed(policy, options, &pem, name, &history, config, component.as_deref())?;
                if let Some(file) = &options.manifest_out {
                    // Byte for byte as it was signed; the portal's form asks for the signature too.
                    write_file(file, manifest.as_bytes())?;
                    return Ok(signature);
                }
                body["manifest"] = manifest.into();
                body["signature"] = signature;
            }
            None => {
                body["config"] = config.into();
                body["failClosed"] = options.fail_closed.into();
            }
        }
        admin.call(Method::POST, &policy.path(&["versions"]), options.reason.body(body)).await
    })
}

/// The contract's own calls: what is pushed serves at once.
async fn at_once(
    admin: &AdminClient,
    policy: &PolicyArgs,
    options: &VersionOptions,
    config: Option<Map<String, Value>>,
    component: Option<Vec<u8>>,
) -> Result<Value, StartupError> {
    let Some(component) = component else {
        let body = json!({"config": config, "failClosed": options.fail_closed});
        let path = policy.path(&["config"]);
        return admin.call(Method::PUT, &path, options.reason.body(body)).await;
    };
    let parameters = query([
        ("config", config.map(|config| Value::Object(config).to_string())),
        ("failClosed", options.fail_closed.map(|flag| flag.to_string())),
        ("reason", options.reason.reason.clone()),
    ]);
    let path = policy.path(&[]) + &parameters;
    admin.call(Method::PUT, &path, Body::File("application/wasm", component)).await
}

/// The manifest of the next version, and its signature, as members of a body.
fn signed(
    policy: &PolicyArgs,
    options: &VersionOptions,
    pem: &str,
    name: &str,
    history: &Value,
    config: Option<Map<String, Value>>,
    component: Option<&[u8]>,
) -> Result<(String, Value), StartupError> {
    let versions = history["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let active = versions.iter().find(|version| version["active"] == true);
    let active = active.unwrap_or(&Value::Null);
    let newest = versions.first().and_then(|version| version["version"].as_i64()).unwrap_or(0);
    let digest = match component {
        Some(component) => manifest::digest_hex(component),
        None => {
            active["digest"].as_str().ok_or("there is no active version to configure")?.to_owned()
        }
    };
    let kept = || active["config"].as_object().cloned().unwrap_or_default();
    let unsigned = ManifestContent {
        partner: &policy.slug,
        kind: &policy.kind,
        version: newest + 1,
        digest: &digest,
        config: config.unwrap_or_else(kept),
        fail_closed: options.fail_closed.unwrap_or(active["failClosed"] == true),
        // Left out of one that serves at once, which edges of earlier versions take, too.
        activate: (options.stage || options.manifest_out.is_some()).then_some(false),
    };
    let (text, signature) = manifest::sign(pem, &unsigned)?;
    Ok((text, json!({"key": name, "value": STANDARD.encode(signature)})))
}
