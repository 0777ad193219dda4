//! `rampart key issue|revoke`.

use clap::Subcommand;
use http::Method;
use serde_json::json;

use super::{Body, Call, StartupError, Target};

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
    },
    /// Revoke a key, on every edge within a second.
    Revoke {
        /// The partner's slug.
        slug: String,
        /// The key's id, as issued or as `partner show` lists it.
        id: String,
    },
}

impl Call for Key {
    fn call(self, target: &Target) -> Result<(), StartupError> {
        match self {
            Self::Issue { slug, name, expires_at, scopes, allowed_addresses } => {
                let body = json!({
                    "name": name,
                    "expiresAt": expires_at,
                    "scopes": scopes,
                    "allowedAddresses": allowed_addresses,
                });
                target.send(Method::POST, &["partners", &slug, "api-keys"], body)
            }
            Self::Revoke { slug, id } => {
                target.send(Method::DELETE, &["partners", &slug, "api-keys", &id], Body::None)
            }
        }
    }
}
