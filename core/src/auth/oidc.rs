//! Operators who log in at an OpenID Connect provider: who its tokens name, and with which roles.
//!
//! `provider` knows the provider's endpoints and keys, `token` verifies what it signed, `person`
//! reads who it is. Nothing is taken from a token before its signature is verified.

mod login;
mod person;
mod provider;
mod refusal;
mod token;

use std::collections::BTreeMap;

use url::Url;

pub use self::login::{LoginState, PendingLogin};
pub use self::person::Person;
use self::provider::{Connection, Metadata, is_safe};
pub use self::refusal::Refusal;
use crate::auth::roles::Role;
use crate::platform::clock::Clock;
use crate::platform::crypto::Secret;
use crate::platform::settings;

/// Longest token, in bytes.
const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// The configured provider.
#[derive(Debug)]
pub struct Provider {
    client_id: String,
    client_secret: Option<Secret>,
    issuer: String,
    audience: String,
    scopes: String,
    name_claim: String,
    role_claim: String,
    /// Roles by value of the claim; empty: values are names of roles.
    roles: BTreeMap<String, Vec<Role>>,
    session_seconds: u32,
    connection: Connection,
}

impl Provider {
    /// The provider of the settings, which is asked at the first login.
    ///
    /// # Errors
    /// One sentence that names the setting.
    pub(crate) fn new(settings: &settings::Oidc) -> Result<Self, String> {
        let issuer = settings.issuer.trim_end_matches('/');
        let url = Url::parse(issuer).ok().filter(is_safe);
        let url = url.ok_or("operators.oidc.issuer is not an https:// URL")?;
        if settings.client_id.is_empty() {
            return Err("operators.oidc.client_id is empty".to_owned());
        }
        let mut roles = BTreeMap::new();
        for (value, names) in &settings.roles {
            let known = names.0.iter().map(|name| {
                let unknown = || format!("operators.oidc.roles: there is no role '{name}'");
                Role::from_name(name).ok_or_else(unknown)
            });
            roles.insert(value.clone(), known.collect::<Result<Vec<_>, _>>()?);
        }
        let audience = settings.audience.as_ref().unwrap_or(&settings.client_id).clone();
        Ok(Self {
            client_id: settings.client_id.clone(),
            client_secret: settings.client_secret.clone(),
            issuer: settings.issuer.clone(),
            audience,
            scopes: settings.scopes.0.join(" "),
            name_claim: settings.name_claim.clone(),
            role_claim: settings.role_claim.clone(),
            roles,
            session_seconds: settings.session_seconds,
            connection: Connection::new(&url)?,
        })
    }

    /// Lifetime of a session, in seconds.
    pub fn session_seconds(&self) -> i32 {
        self.session_seconds.try_into().unwrap_or(i32::MAX)
    }

    /// True for a text that may be a token of the provider.
    pub fn is_token(text: &str) -> bool {
        text.starts_with("ey") && text.split('.').count() == 3
    }

    /// The person that a bearer token names.
    ///
    /// # Errors
    /// The reason nobody is logged in.
    pub async fn prove(&self, clock: &Clock, token: &str) -> Result<Person, Refusal> {
        self.person(clock, token, None).await
    }

    /// The person that a token names, with the nonce of the login it was asked for in.
    async fn person(
        &self,
        clock: &Clock,
        token: &str,
        nonce: Option<&str>,
    ) -> Result<Person, Refusal> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Refusal::Invalid("the token is too long"));
        }
        let header = token::header(token)?;
        let mut metadata = self.metadata(clock).await?;
        if !metadata.has_key(&header) {
            // A new key, or no key of the provider at all.
            metadata = self.connection.refresh(clock, &self.issuer).await?;
        }
        let claims = metadata.verify(token, &header)?;
        self.check(&claims, clock.unix_seconds(), nonce)?;
        self.person_of(&claims)
    }

    async fn metadata(&self, clock: &Clock) -> Result<std::sync::Arc<Metadata>, Refusal> {
        self.connection.metadata(clock, &self.issuer).await
    }
}

#[cfg(test)]
mod tests;
