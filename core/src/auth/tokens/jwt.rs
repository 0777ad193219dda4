//! The form of an access token. The library signs and checks; time and claims are judged here,
//! because it reads the system's clock and accepts more than we issue.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Validation};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Holder, hmac_sha256};
use crate::Core;
use crate::platform::crypto::{MasterKey, Purpose};
use crate::platform::error::{Code, Error, Result};
use rampart_types::{ClientId, UserId};

const ISSUER: &str = "rampart";
const AUDIENCE: &str = "rampart-api";
const SECONDS_PER_DAY: i64 = 86_400;
/// How far the clock of the issuing edge may be ahead of ours, in seconds.
const CLOCK_SKEW_SECONDS: i64 = 5;
/// Days after its own on which a token is still told that it has expired, rather than that it is
/// invalid. None of these days' keys can prove anybody: a token is of the day of its key.
const EXPIRED_DAYS: i64 = 366;

/// The signature and nothing else; with `arbitrary_precision` the library cannot read `exp`.
static SIGNATURE: LazyLock<Validation> = LazyLock::new(|| {
    let mut validation = Validation::new(Algorithm::HS256);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    validation
});

/// What issuing and opening need.
pub(super) struct Authority<'a> {
    pub(super) keys: &'a MasterKey,
    pub(super) now: DateTime<Utc>,
    /// Lifetime of a token in seconds.
    pub(super) lifetime: i64,
}

impl<'a> Authority<'a> {
    pub(super) fn of(core: &'a Core) -> Self {
        let lifetime = core.settings.lifetimes.access_token_seconds.into();
        Self { keys: &core.keys, now: core.clock.now(), lifetime }
    }
}

/// Which credential a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Client,
    User,
}

impl Kind {
    pub(super) const fn of(holder: Holder) -> Self {
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

/// What a genuine token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proof {
    pub(super) holder: Holder,
    pub(super) issued_at: DateTime<Utc>,
    /// Its last second, since 1970.
    last_second: i64,
}

impl Proof {
    /// Whether it has expired. Its times are whole seconds, so that it may live to the end of its
    /// last one: within the 5 s of leeway that the contract allows.
    pub(super) fn has_ended(&self, now: DateTime<Utc>) -> bool {
        now.timestamp() > self.last_second
    }
}

/// The header, exactly: another member (`crit`, `jku`, `jwk`, `x5u`, `zip` ...), or one twice, is
/// an error.
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
    /// A UUID version 7: its milliseconds are the time of issue that `iat` rounds down, or a
    /// logout would spare what was issued in the same second.
    jti: Uuid,
    iat: i64,
    exp: i64,
}

/// A token for `holder`, issued at the time in `id`.
pub(super) fn issue(authority: &Authority<'_>, id: Uuid, holder: Holder) -> Result<String> {
    let issued_at =
        time_of(id).ok_or_else(|| Error::broken("issue a token: its id has no time"))?.timestamp();
    let (sub, client_id) = match holder {
        Holder::Client(client) => (client.uuid(), None),
        Holder::User(client, user) => (user.uuid(), Some(client.uuid())),
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
    header.typ = Some(Kind::of(holder).typ().to_owned());
    header.kid = Some(day.to_string());
    hmac_sha256::install();
    let key = EncodingKey::from_secret(&authority.keys.derive(Purpose::Tokens { day })?);
    jsonwebtoken::encode(&header, &claims, &key).map_err(|e| Error::internal("sign a token", e))
}

/// What a token proves at `authority.now`.
///
/// # Errors
/// The kind's code for an expired token if it is otherwise sound, else the one for an invalid one.
pub(super) fn open(authority: &Authority<'_>, kind: Kind, token: &str) -> Result<Proof> {
    let now = authority.now.timestamp();
    let newest = (now + CLOCK_SKEW_SECONDS).div_euclid(SECONDS_PER_DAY);
    let day = read_day(kind, token)
        .filter(|day| (newest - EXPIRED_DAYS..=newest).contains(day))
        .ok_or_else(|| kind.invalid())?;
    hmac_sha256::install();
    let key = DecodingKey::from_secret(&authority.keys.derive(Purpose::Tokens { day })?);
    let claims =
        jsonwebtoken::decode::<Claims>(token, &key, &SIGNATURE).map_err(|_| kind.invalid())?.claims;
    let proof = claims.prove(kind, day, authority.lifetime).ok_or_else(|| kind.invalid())?;
    if proof.issued_at.timestamp() > now + CLOCK_SKEW_SECONDS {
        return Err(kind.invalid());
    }
    if proof.has_ended(authority.now) {
        return Err(kind.expired());
    }
    Ok(proof)
}

/// The day whose key signed the token, if its header is one that we write for this kind.
fn read_day(kind: Kind, token: &str) -> Option<i64> {
    let (encoded, _) = token.split_once('.')?;
    let json = URL_SAFE_NO_PAD.decode(encoded).ok()?;
    let header: Header<'_> = serde_json::from_slice(&json).ok()?;
    let day: i64 = header.kid.parse().ok()?;
    let exact = header.alg == "HS256" && header.typ == kind.typ() && header.kid == day.to_string();
    exact.then_some(day)
}

impl Claims {
    /// What the claims of a genuine signature prove, if they fit each other.
    fn prove(&self, kind: Kind, day: i64, lifetime: i64) -> Option<Proof> {
        let holder = match (kind, self.client_id) {
            (Kind::Client, None) => Holder::Client(ClientId::from(self.sub)),
            (Kind::User, Some(client)) => {
                Holder::User(ClientId::from(client), UserId::from(self.sub))
            }
            _ => return None,
        };
        let issued_at = time_of(self.jti)?;
        let sound = self.iss == ISSUER
            && self.aud == AUDIENCE
            && issued_at.timestamp() == self.iat
            && self.iat.div_euclid(SECONDS_PER_DAY) == day;
        // A lifetime that was shortened since counts for what was issued before, too.
        let last_second = self.exp.min(self.iat.saturating_add(lifetime));
        sound.then_some(Proof { holder, issued_at, last_second })
    }
}

/// The time inside a UUID version 7.
fn time_of(id: Uuid) -> Option<DateTime<Utc>> {
    let (seconds, nanoseconds) = id.get_timestamp()?.to_unix();
    DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanoseconds)
}
