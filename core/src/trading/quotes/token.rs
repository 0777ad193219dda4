//! The token of a quote: sealed for one client and one day, opened while it may live.
//!
//! Each client has a key of its own for each day, so another client's quote does not even decrypt,
//! and no key gets near the 2^32 random nonces that AES-GCM allows it (NIST SP 800-38D, 8.3).

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

const SECONDS_PER_DAY: i64 = 86_400;
/// How far the clock of another edge may be ahead of ours, in seconds.
const CLOCK_SKEW_SECONDS: i64 = 5;
/// Days for which a key that has turned is kept.
const DAYS_KEPT: i64 = 1;

// A quote of a day may live on into the days for which the day's key is kept, and no further.
const _: () = assert!((QUOTE_LIFETIME_SECONDS_MAX as i64) <= DAYS_KEPT * SECONDS_PER_DAY);

/// A sealed quote.
#[derive(Debug)]
pub struct Token(String);

rampart_types::inline_schema!(Token, {"type": "string"});

impl From<Token> for String {
    fn from(token: Token) -> Self {
        token.0
    }
}

impl Serialize for Token {
    /// As it is: base64url and points need no escapes, and to check that it is a text takes less
    /// time than to look for some.
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let text = RawValue::from_string(format!("\"{}\"", self.0));
        text.map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// A quote of this tenant's as a token.
///
/// # Errors
/// When it cannot be written, which is our fault.
pub fn seal(core: &Core, tenant: &Tenant, quote: &Quote) -> Result<Token> {
    debug_assert_eq!(tenant.id, quote.client, "nobody could open it");
    let day = day_of(quote.issued_at);
    let key = tenant.quote_key.get(&core.keys, day, tenant.id)?;
    key.seal(&core.clock, claims::write(quote)?).map(Token)
}

/// The quote that a token holds, if `client` may confirm it now.
///
/// A quote that was made for a user is of that user alone: another `user` is refused. `None` is no
/// other user: section 6.3 of the contract lets a client confirm with its token alone, and the
/// order then belongs to the user of the quote. A quote made for nobody serves any user.
///
/// # Errors
/// ER006 when it has expired, ER009 or ER017 when it is of the other side, and ER007 for all else,
/// with nothing that tells what.
pub fn open(
    core: &Core,
    client: &Client,
    user: Option<UserId>,
    side: Side,
    token: &str,
) -> Result<Quote> {
    open_with(&core.keys, core.clock.now(), client.id(), user, side, token)
}

/// The same, of a quote that [`open`] refused as expired. Nothing new may come of it, but what came
/// of it before can be found again.
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
    admitted(read(&core.keys, now, client.id(), token)?, now, client.id(), user, side)
}

/// ER007; the cause goes to the log alone.
pub(super) fn refused(cause: &'static str) -> Error {
    tracing::debug!(cause, "quote refused");
    Code::QuoteInvalid.into()
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
        return Err(Code::QuoteExpired.into());
    }
    admitted(quote, now, client, user, side)
}

/// The quote that a token of this client holds, whatever it says.
fn read(keys: &MasterKey, now: DateTime<Utc>, client: ClientId, token: &str) -> Result<Quote> {
    let days = day_of(now) - DAYS_KEPT..=day_of(now + skew());
    let (day, sealed) = days
        .rev()
        .find_map(|day| Some((day, Sealed::parse(token, &day.to_string())?)))
        .ok_or_else(|| refused("not a token of a day that is open"))?;
    let key = keys.derive(Purpose::Quotes { day, client: client.uuid() })?;
    let plain = sealed.open(&key).ok_or_else(|| refused("altered, or of another client"))?;
    claims::read(&plain).ok_or_else(|| refused("unreadable claims"))
}

/// The quote, if what it says fits who brings it.
fn admitted(
    quote: Quote,
    now: DateTime<Utc>,
    client: ClientId,
    user: Option<UserId>,
    side: Side,
) -> Result<Quote> {
    if quote.side != side {
        return Err(side.expected().into());
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
