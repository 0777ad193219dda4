//! Signatures of operators: `--key FILE --signer NAME`, and `rampart policy signer
//! add|list|remove|require|waive`.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, Subcommand};
use http::Method;
use rampart_core::platform::clock::Clock;
use rampart_core::policies::manifest;
use rampart_core::policies::statement::ChangeStatement;
use serde_json::{Value, json};

use crate::commands::{Call, Page, StartupError, Target, path, read_text};

/// The key that signs a change.
#[derive(Debug, Args)]
pub(crate) struct Signing {
    /// Sign the change with this Ed25519 key (PKCS #8 in PEM).
    #[arg(long, value_name = "FILE", requires = "signer")]
    key: Option<PathBuf>,
    /// The name that the key is registered by.
    #[arg(long, value_name = "NAME", requires = "key")]
    signer: Option<String>,
}

impl Signing {
    /// The private key's PEM and the name of the key, if there is one.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn key(&self) -> Result<Option<(String, &str)>, StartupError> {
        match (&self.key, &self.signer) {
            (Some(file), Some(name)) => Ok(Some((read_text(file)?, name))),
            _ => Ok(None),
        }
    }

    /// Adds the signed statement to the members of a body, if there is a key.
    ///
    /// # Errors
    /// When the key cannot be read, or is none.
    pub(super) fn sign(
        &self,
        mut members: Value,
        change: ChangeStatement,
    ) -> Result<Value, StartupError> {
        if let Some((pem, name)) = self.key()? {
            let change = ChangeStatement { at: Clock::system().unix_seconds(), ..change };
            let (statement, signature) = change.sign(&pem)?;
            let value = STANDARD.encode(signature);
            members["signed"] = json!({"statement": statement, "key": name, "value": value});
        }
        Ok(members)
    }
}

pub(in crate::commands) const COLUMNS: &str =
    "NAME name, FINGERPRINT fingerprint, CREATED BY createdBy, CREATED createdAt";

/// Keys of operators that sign manifests.
#[derive(Debug, Subcommand)]
pub(crate) enum Signer {
    /// Register a public key.
    Add {
        /// Its name.
        name: String,
        /// The key: an Ed25519 `PUBLIC KEY` in PEM.
        file: PathBuf,
        #[command(flatten)]
        signing: Signing,
    },
    /// List the keys.
    List(Page),
    /// Remove a key.
    Remove {
        /// Its name.
        name: String,
        #[command(flatten)]
        signing: Signing,
    },
    /// Require signatures for changes of a partner's policies.
    Require {
        /// The partner's slug.
        slug: String,
    },
    /// Require no signatures for changes of a partner's policies any more.
    Waive {
        /// The partner's slug.
        slug: String,
        #[command(flatten)]
        signing: Signing,
    },
}

impl Call for Signer {
    fn call(&self, target: &Target) -> Result<(), StartupError> {
        let of_key = |action: &str, name: &str| ChangeStatement {
            action: action.to_owned(),
            key: Some(name.to_owned()),
            ..ChangeStatement::default()
        };
        let require =
            |slug: &str, body: Value| target.send(Method::PATCH, &path(&["partners", slug]), body);
        match self {
            Self::Add { name, file, signing } => {
                let pem = read_text(file)?;
                let fingerprint = Some(manifest::fingerprint(&pem));
                let change =
                    ChangeStatement { fingerprint, ..of_key("operator-key.register", name) };
                let body = signing.sign(json!({ "publicKey": pem }), change)?;
                target.send(Method::PUT, &path(&["operator-keys", name]), body)
            }
            Self::List(page) => target.list("operator-keys", page, COLUMNS),
            Self::Remove { name, signing } => {
                let body = signing.sign(json!({}), of_key("operator-key.remove", name))?;
                target.send(Method::DELETE, &path(&["operator-keys", name]), body)
            }
            Self::Require { slug } => require(slug, json!({ "policySignatureRequired": true })),
            Self::Waive { slug, signing } => {
                let change = ChangeStatement {
                    action: "policy.waive-signature".to_owned(),
                    partner: Some(slug.clone()),
                    ..ChangeStatement::default()
                };
                require(slug, signing.sign(json!({ "policySignatureRequired": false }), change)?)
            }
        }
    }
}
