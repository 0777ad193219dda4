//! The person behind a token's claims: for us, of now, with a name and roles.

use serde_json::{Map, Value};

use super::Provider;
use super::refusal::Refusal;
use crate::auth::roles::{Role, is_operator_name};

/// Time that the provider's clock may differ from the database's, in seconds.
const LEEWAY_SECONDS: i64 = 30;
/// Most values of the claim with the roles.
const VALUES_MAX: usize = 1_024;
/// Longest subject, in ASCII characters (OpenID Connect Core, 2).
const SUBJECT_CHARS_MAX: usize = 255;

/// A person whom the provider has proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// Issuer and subject, with a space between them: they tell one person from another, and stay
    /// as they are whatever the person is named.
    pub identity: String,
    /// Their name in the audit, which they may be able to change.
    pub name: String,
    /// Their roles, at least one.
    pub roles: Vec<Role>,
}

impl Provider {
    /// Checks issuer, audience, time and nonce of verified claims (OpenID Connect Core, 3.1.3.7).
    ///
    /// # Errors
    /// The reason they do not count.
    pub(super) fn check(
        &self,
        claims: &Map<String, Value>,
        now: i64,
        nonce: Option<&str>,
    ) -> Result<(), Refusal> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let time = |name: &str| claims.get(name).map(|value| seconds(value).ok_or(MALFORMED));
        if text("iss") != Some(self.issuer.as_str()) {
            return Err(Refusal::Invalid("the token is of another issuer"));
        }
        // The token of a login is for this client. An audience of its own is that of bearer tokens,
        // which clients of other names ask for.
        let audience: &str = if nonce.is_some() { &self.client_id } else { &self.audience };
        let is_for_us = match claims.get("aud") {
            Some(Value::String(one)) => one == audience,
            Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(audience)),
            _ => false,
        };
        let azp = claims.get("azp").filter(|_| audience == self.client_id);
        if !is_for_us || azp.is_some_and(|azp| azp.as_str() != Some(self.client_id.as_str())) {
            return Err(Refusal::Invalid("the token is for somebody else"));
        }
        let expires = time("exp").ok_or(Refusal::Invalid("the token does not expire"))??;
        if expires.saturating_add(LEEWAY_SECONDS) <= now {
            return Err(Refusal::Invalid("the token has expired"));
        }
        for begin in ["nbf", "iat"] {
            if let Some(begin) = time(begin).transpose()?
                && begin > now.saturating_add(LEEWAY_SECONDS)
            {
                return Err(Refusal::Invalid("the token is not valid yet"));
            }
        }
        if nonce.is_some() && text("nonce") != nonce {
            return Err(Refusal::Invalid("the token was asked for in another login"));
        }
        Ok(())
    }

    /// The person and their roles.
    ///
    /// # Errors
    /// A sentence for the person, who has no name or no role here; another refusal without a
    /// subject.
    pub(super) fn person_of(&self, claims: &Map<String, Value>) -> Result<Person, Refusal> {
        let identity = format!("{} {}", self.issuer, subject(claims)?);
        let not_permitted =
            |sentence: String| Err(Refusal::NotPermitted { identity: identity.clone(), sentence });
        let claim = &self.name_claim;
        let name = at(claims, claim).and_then(Value::as_str).map(str::to_ascii_lowercase);
        let Some(name) = name.filter(|name| is_operator_name(name)) else {
            return not_permitted(format!(
                "the claim '{claim}' of your account does not name an operator: 1 to 63 of a-z, \
                 0-9, -, _, . and @, and not admin, edge, page, sandbox or user"
            ));
        };
        let claim = &self.role_claim;
        let values: Vec<&str> = match at(claims, claim) {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(all)) => {
                all.iter().take(VALUES_MAX).filter_map(Value::as_str).collect()
            }
            _ => Vec::new(),
        };
        let mut roles: Vec<Role> = values.into_iter().flat_map(|one| self.roles_of(one)).collect();
        roles.sort_unstable();
        roles.dedup();
        if roles.is_empty() {
            return not_permitted(format!(
                "{name} has no role here: nothing in the claim '{claim}' is mapped to one"
            ));
        }
        Ok(Person { identity, name, roles })
    }

    fn roles_of(&self, value: &str) -> Vec<Role> {
        if self.roles.is_empty() {
            return Role::from_name(value).into_iter().collect();
        }
        self.roles.get(value).cloned().unwrap_or_default()
    }
}

/// The subject, which the provider gives to one person for good.
fn subject(claims: &Map<String, Value>) -> Result<&str, Refusal> {
    let subject = claims.get("sub").and_then(Value::as_str).filter(|subject| {
        let is_plain = subject.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        is_plain && (1..=SUBJECT_CHARS_MAX).contains(&subject.len())
    });
    subject.ok_or(Refusal::Invalid("the token names no subject"))
}

const MALFORMED: Refusal = Refusal::Invalid("a time of the token is no number");

/// A time in whole seconds since 1970, which JSON may write with a fraction.
fn seconds(value: &Value) -> Option<i64> {
    let Value::Number(number) = value else { return None };
    number.to_string().split('.').next()?.parse().ok()
}

/// The claim of this name, or the one that its dots lead to.
fn at<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(claim) = claims.get(path) {
        return Some(claim);
    }
    let mut names = path.split('.');
    let first = claims.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
}
