//! The token of a quote, sealed under a key of one tenant and one day.
//!
//! Each tenant has its own key for each day, so another tenant's quote does not decrypt, and no key
//! gets near the limit of 2^32 random nonces of AES-GCM (NIST SP 800-38D, 8.3).

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{QUOTE_LIFETIME_SECONDS_MAX, Quote, Side, claims};
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::crypto::jwe::Sealed;
use crate::platform::crypto::{MasterKey, Purpose};
use crate::platform::error::{Code, Error, Result};
use crate::tenancy::tenants::Tenant;
use rampart_types::{ClientId, UserId};

/// The member of a request that a quote is sent in.
pub(crate) const MEMBER: &str = "quote";
const SECONDS_PER_DAY: i64 = 86_400;
/// Largest clock skew between edges, in seconds.
const CLOCK_SKEW_SECONDS: i64 = 5;
/// Days for which a rotated key stays valid.
const KEY_GRACE_DAYS: i64 = 1;

// A quote must not outlive the key that it is sealed under.
const _: () = assert!((QUOTE_LIFETIME_SECONDS_MAX as i64) <= KEY_GRACE_DAYS * SECONDS_PER_DAY);

/// A sealed quote.
#[derive(Debug)]
pub struct Token(String);

rampart_types::inline_schema!(Token, {"type": "string"});

impl Token {
    /// The text.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Token> for String {
    fn from(token: Token) -> Self {
        token.0
    }
}

impl Serialize for Token {
    /// Writes it without looking for escapes, which base64url and dots never need.
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let text = RawValue::from_string(format!("\"{}\"", self.0));
        text.map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// Seals a quote of this tenant.
///
/// # Errors
/// When it cannot be encoded, which is our fault.
pub fn seal(core: &Core, tenant: &Tenant, quote: &Quote) -> Result<Token> {
    debug_assert_eq!(tenant.id, quote.client, "nobody could open it");
    let day = day_of(quote.issued_at);
    let key = tenant.quote_key.get(&core.keys, day, tenant.id)?;
    key.seal(&core.clock, claims::write(quote)?).map(Token)
}

/// Opens the quote of a token, if `client` may confirm it now.
///
/// A quote that is bound to a user is refused for another `user`. `None` is accepted: section 6.3
/// of the contract lets a partner confirm with its token alone, and the order then belongs to the
/// quote's user. An unbound quote serves any user.
///
/// # Errors
/// ER006 when it has expired, ER009 or ER017 when it is of the other side, and ER007 for everything
/// else, without the cause.
pub fn open(
    core: &Core,
    client: &Client,
    user: Option<UserId>,
    side: Side,
    token: &str,
) -> Result<Quote> {
    open_with(&core.keys, core.clock.now(), client.id(), user, side, token)
}

/// Opens a quote that [`open`] refused as expired, to find an order that was made of it before.
///
/// # Errors
/// As [`open`], without ER006.
pub fn open_expired(
    core: &Core,
    client: &Client,
    user: Option<UserId>,
    side: Side,
    token: &str,
) -> Result<Quote> {
    let now = core.clock.now();
    check(read(&core.keys, now, client.id(), token)?, now, client.id(), user, side)
}

/// The error ER007; the cause is only logged.
pub(crate) fn refused(cause: &'static str) -> Error {
    tracing::debug!(cause, "quote refused");
    Error::of_member(Code::QuoteInvalid, MEMBER)
}

/// The error ER006.
pub(crate) fn expired() -> Error {
    Error::of_member(Code::QuoteExpired, MEMBER)
}

fn open_with(
    keys: &MasterKey,
    now: DateTime<Utc>,
    client: ClientId,
    user: Option<UserId>,
    side: Side,
    token: &str,
) -> Result<Quote> {
    let quote = read(keys, now, client, token)?;
    if now >= quote.expires_at {
        return Err(expired());
    }
    check(quote, now, client, user, side)
}

/// Decrypts a token of this tenant, without checks of the quote.
fn read(keys: &MasterKey, now: DateTime<Utc>, client: ClientId, token: &str) -> Result<Quote> {
    let days = day_of(now) - KEY_GRACE_DAYS..=day_of(now + skew());
    let (day, sealed) = days
        .rev()
        .find_map(|day| Some((day, Sealed::parse(token, &day.to_string())?)))
        .ok_or_else(|| refused("not a token of a day that is open"))?;
    let mut keys = keys.derive_each(Purpose::Quotes { day, client: client.uuid() });
    let plain = keys.find_map(|key| sealed.open(&key));
    let plain = plain.ok_or_else(|| refused("altered, or of another client"))?;
    claims::read(&plain).ok_or_else(|| refused("unreadable claims"))
}

/// Checks that the quote fits its caller.
fn check(
    quote: Quote,
    now: DateTime<Utc>,
    client: ClientId,
    user: Option<UserId>,
    side: Side,
) -> Result<Quote> {
    if quote.side != side {
        return Err(Error::of_member(side.wrong_side_code(), MEMBER));
    }
    if quote.client != client {
        return Err(refused("of another client"));
    }
    if quote.issued_at > now + skew() {
        return Err(refused("from the future"));
    }
    if let (Some(bound), Some(user)) = (quote.user, user)
        && bound != user
    {
        return Err(refused("of another user"));
    }
    Ok(quote)
}

/// Days since 1970.
fn day_of(at: DateTime<Utc>) -> i64 {
    at.timestamp().div_euclid(SECONDS_PER_DAY)
}

fn skew() -> TimeDelta {
    TimeDelta::seconds(CLOCK_SKEW_SECONDS)
}

#[cfg(test)]
mod tests;
