//! Client credentials: exactly one of `Authorization: Bearer` and `X-Api-Key` (section 2 of the
//! contract). They are verified against the snapshot, without Postgres.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::Core;
use crate::auth::caller::{Client, Credential};
use crate::http::request::Head;
use crate::platform::crypto::{constant_time_eq, sha256};
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::snapshot::Snapshot;
use crate::tenancy::tenants::{ApiKey, Sender, Tenant};

const API_KEY: &str = "x-api-key";

/// The client credential of a request.
#[derive(Debug, PartialEq, Eq)]
enum Claim<'a> {
    Token(&'a str),
    ApiKey(&'a str),
}

/// Authenticates the client of a request.
///
/// # Errors
/// ER800 to ER806 as documented; an unknown credential cannot be distinguished from a revoked one.
pub fn client(core: &Core, head: &Head) -> Result<Client> {
    let snapshot = core.snapshots.current();
    match claim(&head.headers)? {
        Claim::Token(token) => by_token(core, &snapshot, token, head),
        Claim::ApiKey(key) => by_api_key(core, &snapshot, key, head),
    }
}

/// The only credential among the headers.
fn claim(headers: &HeaderMap) -> Result<Claim<'_>> {
    let mut tokens = headers.get_all(AUTHORIZATION).iter();
    let mut keys = headers.get_all(API_KEY).iter();
    match (tokens.next(), keys.next()) {
        (None, None) => Err(Code::ClientCredentialMissing.into()),
        (Some(_), Some(_)) => Err(Code::ClientCredentialAmbiguous.into()),
        (Some(_), None) if tokens.next().is_some() => Err(Code::ClientCredentialAmbiguous.into()),
        (None, Some(_)) if keys.next().is_some() => Err(Code::ClientCredentialAmbiguous.into()),
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| Code::ClientTokenInvalid)?;
            required_bearer(text, Code::ClientTokenInvalid).map(Claim::Token)
        }
        (None, Some(value)) => match value.to_str().map_err(|_| Code::ApiKeyInvalid)?.trim() {
            "" => Err(Code::ApiKeyEmpty.into()),
            key => Ok(Claim::ApiKey(key)),
        },
    }
}

/// The token of a `Bearer` value; the scheme is case-insensitive (RFC 9110, section 11.1).
pub fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start())
}

/// The same, where nothing else is a credential.
///
/// # Errors
/// `code` for a value of another form.
pub(super) fn required_bearer(value: &str, code: Code) -> Result<&str> {
    bearer(value).ok_or_else(|| Error::with_detail(code, "not of the form Bearer and token"))
}

fn by_token(core: &Core, snapshot: &Snapshot, token: &str, head: &Head) -> Result<Client> {
    let claims = core.tokens.verify_client(core, token)?;
    let tenant = snapshot.tenants.get(&claims.client).ok_or(Code::ClientTokenInvalid)?;
    let live = claims.issued_at >= tenant.tokens_valid_from;
    if !live || tenant.suspended || !tenant.allowed_senders.include(&Sender::of(head)) {
        return Err(Code::ClientTokenInvalid.into());
    }
    Ok(authenticated(snapshot, tenant, Credential::Token, head))
}

fn by_api_key(core: &Core, snapshot: &Snapshot, text: &str, head: &Head) -> Result<Client> {
    let (mode, public_id, secret) = ApiKey::split(text).ok_or(Code::ApiKeyInvalid)?;
    let key = snapshot.api_keys.get(public_id).ok_or(Code::ApiKeyInvalid)?;
    let matches = constant_time_eq(&sha256(secret), &key.secret_digest);
    let live = key.expires_at.is_none_or(|end| core.clock.now() < end);
    let tenant = snapshot.tenants.get(&key.client).ok_or(Code::ApiKeyInvalid)?;
    let sender = Sender::of(head);
    let allowed = key.allowed_senders.include(&sender) && tenant.allowed_senders.include(&sender);
    if !(matches && live && allowed) || tenant.suspended || tenant.mode != mode {
        return Err(Code::ApiKeyInvalid.into());
    }
    core.api_key_uses.record(key);
    Ok(authenticated(snapshot, tenant, Credential::ApiKey(Arc::clone(key)), head))
}

fn authenticated(
    snapshot: &Snapshot,
    tenant: &Arc<Tenant>,
    credential: Credential,
    head: &Head,
) -> Client {
    Client {
        tenant: Arc::clone(tenant),
        catalogue: Arc::clone(&snapshot.catalogue),
        credential,
        request_id: head.request_id.as_str().into(),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn claim_of(pairs: &[(&'static str, &'static str)]) -> Result<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        claim(&headers).map(|claim| format!("{claim:?}"))
    }

    #[test]
    fn exactly_one_credential_is_accepted() {
        let refused =
            |pairs: &[_], code| assert!(claim_of(pairs).unwrap_err().is(code), "{pairs:?}");
        refused(&[], Code::ClientCredentialMissing);
        refused(&[("x-api-key", "")], Code::ApiKeyEmpty);
        refused(&[("x-api-key", "a"), ("x-api-key", "a")], Code::ClientCredentialAmbiguous);
        refused(
            &[("authorization", "Bearer a"), ("x-api-key", "a")],
            Code::ClientCredentialAmbiguous,
        );
        refused(
            &[("authorization", "Bearer a"), ("authorization", "Bearer a")],
            Code::ClientCredentialAmbiguous,
        );
        refused(&[("authorization", "Basic YTpi")], Code::ClientTokenInvalid);
        refused(&[("authorization", "Bearer")], Code::ClientTokenInvalid);
        assert!(claim_of(&[("authorization", "bearer a")]).unwrap().contains("Token"));
        assert!(claim_of(&[("x-api-key", "k")]).unwrap().contains("ApiKey"));
    }
}
