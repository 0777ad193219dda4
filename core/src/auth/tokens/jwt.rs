//! The format of access tokens. The library signs and verifies signatures; times and claims are
//! validated here, because it reads the system's clock and accepts more than is issued.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Validation};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Holder, hmac_sha256};
use crate::Core;
use crate::platform::crypto::{KEY_BYTES, MasterKey, Purpose};
use crate::platform::error::{Code, Error, Result};
use rampart_types::{ClientId, UserKey};

const ISSUER: &str = "rampart";
const AUDIENCE: &str = "rampart-api";
const SECONDS_PER_DAY: i64 = 86_400;
/// Most seconds that the issuing edge's clock may be ahead.
const CLOCK_SKEW_SECONDS: i64 = 5;
/// Days for which an old token is reported as expired rather than invalid. The keys of these days
/// authenticate nobody: a token is of the day of its key.
const EXPIRED_DAYS: i64 = 366;

/// Validates only the signature; with `arbitrary_precision` the library cannot read `exp`.
static SIGNATURE: LazyLock<Validation> = LazyLock::new(|| {
    let mut validation = Validation::new(Algorithm::HS256);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    validation
});

/// Keys, time and lifetime for issuing and verifying.
pub(super) struct Authority<'a> {
    pub(super) keys: &'a MasterKey,
    pub(super) now: DateTime<Utc>,
    /// Lifetime of a token in seconds.
    pub(super) lifetime: i64,
}

impl<'a> Authority<'a> {
    pub(super) fn new(core: &'a Core) -> Self {
        let lifetime = core.settings.lifetimes.access_token_seconds.into();
        Self { keys: &core.keys, now: core.clock.now(), lifetime }
    }
}

/// The kind of credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Client,
    User,
}

impl Kind {
    pub(super) const fn from_holder(holder: Holder) -> Self {
        match holder {
            Holder::Client(_) => Self::Client,
            Holder::User(..) => Self::User,
        }
    }

    const fn typ(self) -> &'static str {
        match self {
            Self::Client => "client+jwt",
            Self::User => "user+jwt",
        }
    }

    pub(super) fn invalid(self) -> Error {
        match self {
            Self::Client => Code::ClientTokenInvalid.into(),
            Self::User => Code::UserTokenInvalid.into(),
        }
    }

    pub(super) fn expired(self) -> Error {
        match self {
            Self::Client => Code::ClientTokenExpired.into(),
            Self::User => Code::UserTokenExpired.into(),
        }
    }
}

/// The claims of a token with a valid signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VerifiedToken {
    pub(super) holder: Holder,
    pub(super) issued_at: DateTime<Utc>,
    /// Last second of its lifetime, since 1970.
    last_second: i64,
}

impl VerifiedToken {
    /// True if it has expired. Its times are whole seconds, so it is valid to the end of its last
    /// one, within the 5 s of leeway that the contract allows.
    pub(super) fn is_expired(&self, now: DateTime<Utc>) -> bool {
        now.timestamp() > self.last_second
    }
}

/// The exact header: any other member (`crit`, `jku`, `jwk`, `x5u`, `zip` ...), or a duplicate, is an
/// error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header<'a> {
    alg: &'a str,
    typ: &'a str,
    kid: &'a str,
}

#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    sub: Uuid,
    /// In a user's token, the client through which the user logged in (RFC 8693, section 4.3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_id: Option<Uuid>,
    /// A UUID version 7, whose milliseconds are the time of issue. `iat` is rounded down to seconds,
    /// which would exempt tokens issued in the same second from a logout.
    jti: Uuid,
    iat: i64,
    exp: i64,
}

/// Issues a token for `holder` at the time in `id`.
pub(super) fn issue(authority: &Authority<'_>, id: Uuid, holder: Holder) -> Result<String> {
    let issued_at = uuid_time(id)
        .ok_or_else(|| Error::invariant("issue a token: its id has no time"))?
        .timestamp();
    let (sub, client_id) = match holder {
        Holder::Client(client) => (client.uuid(), None),
        Holder::User(key) => (key.user.uuid(), Some(key.client.uuid())),
    };
    let claims = Claims {
        iss: ISSUER.to_owned(),
        aud: AUDIENCE.to_owned(),
        sub,
        client_id,
        jti: id,
        iat: issued_at,
        exp: issued_at.saturating_add(authority.lifetime),
    };
    let day = issued_at.div_euclid(SECONDS_PER_DAY);
    let mut header = jsonwebtoken::Header::new(Algorithm::HS256);
    header.typ = Some(Kind::from_holder(holder).typ().to_owned());
    header.kid = Some(day.to_string());
    hmac_sha256::install();
    let key = EncodingKey::from_secret(&authority.keys.derive(Purpose::Tokens { day })?);
    jsonwebtoken::encode(&header, &claims, &key).map_err(|e| Error::internal("sign a token", e))
}

/// Verifies a token at `authority.now`.
///
/// # Errors
/// The kind's code for an expired token if it is otherwise valid, else the one for an invalid one.
pub(super) fn verify(authority: &Authority<'_>, kind: Kind, token: &str) -> Result<VerifiedToken> {
    let now = authority.now.timestamp();
    let newest = (now + CLOCK_SKEW_SECONDS).div_euclid(SECONDS_PER_DAY);
    let day = read_day(kind, token)
        .filter(|day| (newest - EXPIRED_DAYS..=newest).contains(day))
        .ok_or_else(|| kind.invalid())?;
    hmac_sha256::install();
    let decode = |key: [u8; KEY_BYTES]| {
        let key = DecodingKey::from_secret(&key);
        Some(jsonwebtoken::decode::<Claims>(token, &key, &SIGNATURE).ok()?.claims)
    };
    let mut keys = authority.keys.derive_each(Purpose::Tokens { day });
    let claims = keys.find_map(decode).ok_or_else(|| kind.invalid())?;
    let verified = claims.validate(kind, day, authority.lifetime).ok_or_else(|| kind.invalid())?;
    if verified.issued_at.timestamp() > now + CLOCK_SKEW_SECONDS {
        return Err(kind.invalid());
    }
    if verified.is_expired(authority.now) {
        return Err(kind.expired());
    }
    Ok(verified)
}

/// The day of the signing key, if the header is exactly one that is issued for this kind.
fn read_day(kind: Kind, token: &str) -> Option<i64> {
    let (encoded, _) = token.split_once('.')?;
    let json = URL_SAFE_NO_PAD.decode(encoded).ok()?;
    let header: Header<'_> = serde_json::from_slice(&json).ok()?;
    let day: i64 = header.kid.parse().ok()?;
    let exact = header.alg == "HS256" && header.typ == kind.typ() && header.kid == day.to_string();
    exact.then_some(day)
}

impl Claims {
    /// Validates the claims of a token with a valid signature.
    fn validate(&self, kind: Kind, day: i64, lifetime: i64) -> Option<VerifiedToken> {
        let holder = match (kind, self.client_id) {
            (Kind::Client, None) => Holder::Client(ClientId::from(self.sub)),
            (Kind::User, Some(client)) => {
                Holder::User(UserKey { client: client.into(), user: self.sub.into() })
            }
            _ => return None,
        };
        let issued_at = uuid_time(self.jti)?;
        let valid = self.iss == ISSUER
            && self.aud == AUDIENCE
            && issued_at.timestamp() == self.iat
            && self.iat.div_euclid(SECONDS_PER_DAY) == day;
        // A shortened lifetime applies to tokens issued before, too.
        let last_second = self.exp.min(self.iat.saturating_add(lifetime));
        valid.then_some(VerifiedToken { holder, issued_at, last_second })
    }
}

/// The time inside a UUID version 7.
fn uuid_time(id: Uuid) -> Option<DateTime<Utc>> {
    let (seconds, nanoseconds) = id.get_timestamp()?.to_unix();
    DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanoseconds)
}
