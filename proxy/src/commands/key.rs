//! `rampart key issue|revoke`.

use clap::Subcommand;
use http::Method;
use serde_json::json;

use super::{Body, Run, StartupError, Target, path};

/// API keys of a partner.
#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Issue a key and print it, once.
    Issue {
        /// The partner's slug.
        slug: String,
        /// A human-readable note of the key's purpose.
        #[arg(long, default_value = "")]
        name: String,
        /// From when it is refused, RFC 3339.
        #[arg(long)]
        expires_at: Option<String>,
        /// A scope, as orders:read; can be given several times. Everything without one.
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        /// A network it may come from (CIDR); can be given several times.
        #[arg(long = "allow", value_name = "CIDR")]
        allowed_addresses: Vec<String>,
        #[command(flatten)]
        target: Target,
    },
    /// Revoke a key, on every edge within a second.
    Revoke {
        /// The partner's slug.
        slug: String,
        /// The key's id, as issued or as `partner show` lists it.
        id: String,
        #[command(flatten)]
        target: Target,
    },
}

impl Run for Key {
    fn run(self) -> Result<(), StartupError> {
        match self {
            Self::Issue { slug, name, expires_at, scopes, allowed_addresses, target } => {
                let body = Body::Json(json!({
                    "name": name,
                    "expiresAt": expires_at,
                    "scopes": scopes,
                    "allowedAddresses": allowed_addresses,
                }));
                target.send(Method::POST, &path(&["partners", &slug, "api-keys"]), body)
            }
            Self::Revoke { slug, id, target } => {
                let path = path(&["partners", &slug, "api-keys", &id]);
                target.send(Method::DELETE, &path, Body::None)
            }
        }
    }
}
