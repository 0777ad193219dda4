//! The token of a quote: sealed for one client and one day, opened while it may live.
//!
//! Each client has a key of its own for each day, so another client's quote does not even decrypt,
//! and no key gets near the 2^32 random nonces that AES-GCM allows it (NIST SP 800-38D, 8.3).

use std::borrow::Cow;

use chrono::{DateTime, TimeDelta, Utc};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::envelope::{self, Sealed};
use super::{QUOTE_LIFETIME_SECONDS_MAX, Quote, Side};
use crate::Core;
use crate::caller::Client;
use crate::clock::Clock;
use crate::error::{Code, Error, Result};
use crate::secrets::{MasterKey, Purpose};
use crate::types::{
    Chain, ClientId, Country, DestinationTag, FeeBreakdown, PairCode, QuoteId, TagKind, UserId,
    WalletAddress,
};

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

crate::openapi::inline_schema!(Token, {"type": "string"});

impl From<Token> for String {
    fn from(token: Token) -> Self {
        token.0
    }
}

impl Serialize for Token {
    /// As it is: base64url and points need no escapes, and to look for some takes a tenth of the
    /// time of a quote.
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let text = RawValue::from_string(format!("\"{}\"", self.0));
        text.map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// The quote as a token.
///
/// # Errors
/// When it cannot be written, which is our fault.
pub fn seal(core: &Core, quote: &Quote) -> Result<Token> {
    seal_with(&core.clock, &core.keys, quote).map(Token)
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
    Code::ER007.into()
}

fn seal_with(clock: &Clock, keys: &MasterKey, quote: &Quote) -> Result<String> {
    let day = day_of(quote.issued_at);
    let key = keys.derive(Purpose::Quotes { day, client: quote.client.uuid() })?;
    let unwritten = |error| Error::internal("write a quote", error);
    let claims = Claims::of(quote).map_err(unwritten)?;
    let claims = serde_json::to_vec(&claims).map_err(unwritten)?;
    envelope::seal(clock, &day.to_string(), &key, &claims)
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
        return Err(Code::ER006.into());
    }
    admitted(quote, now, client, user, side)
}

/// The quote that a token of this client holds, whatever it says.
fn read(keys: &MasterKey, now: DateTime<Utc>, client: ClientId, token: &str) -> Result<Quote> {
    let days = day_of(now) - DAYS_KEPT..=day_of(now + skew());
    let (day, sealed) = days
        .rev()
        .find_map(|day| Some((day, Sealed::read(token, &day.to_string())?)))
        .ok_or_else(|| refused("not a token of a day that is open"))?;
    let key = keys.derive(Purpose::Quotes { day, client: client.uuid() })?;
    let plain = sealed.open(&key).ok_or_else(|| refused("altered, or of another client"))?;
    serde_json::from_slice::<Claims>(&plain)
        .ok()
        .and_then(Claims::quote)
        .ok_or_else(|| refused("unreadable claims"))
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

/// The quote as it stands in the token: registered names (RFC 7519, section 4.1) where there is
/// one, times in milliseconds. What is not there is left out, to keep tokens short.
#[derive(Serialize, Deserialize)]
struct Claims<'a> {
    jti: QuoteId,
    aud: ClientId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sub: Option<UserId>,
    #[serde(with = "chrono::serde::ts_milliseconds")]
    iat: DateTime<Utc>,
    #[serde(with = "chrono::serde::ts_milliseconds")]
    exp: DateTime<Utc>,
    side: Side,
    pair: PairCode,
    method: Cow<'a, str>,
    fiat: Decimal,
    crypto: Decimal,
    price: Decimal,
    fees: FeeBreakdown,
    partner: Decimal,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requested: Option<Decimal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wallet: Option<(Chain, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tag: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    country: Option<Country>,
    estimated: bool,
    policies: Cow<'a, serde_json::Value>,
}

impl<'a> Claims<'a> {
    fn of(quote: &'a Quote) -> serde_json::Result<Self> {
        let wallet = quote.wallet_address.as_ref();
        Ok(Self {
            jti: quote.id,
            aud: quote.client,
            sub: quote.user,
            iat: quote.issued_at,
            exp: quote.expires_at,
            side: quote.side,
            pair: quote.pair,
            method: Cow::Borrowed(&quote.payment_method),
            fiat: quote.fiat,
            crypto: quote.crypto,
            price: quote.price,
            fees: quote.fees,
            partner: quote.partner_fee_percentage,
            requested: quote.requested_fee_percentage,
            wallet: wallet.map(|address| (address.chain(), address.as_str().to_owned())),
            tag: quote.destination_tag.as_ref().map(serde_json::to_value).transpose()?,
            country: quote.country,
            estimated: quote.is_estimated,
            policies: Cow::Borrowed(&quote.policy_decisions),
        })
    }

    fn quote(self) -> Option<Quote> {
        let wallet_address = match self.wallet {
            Some((chain, text)) => Some(WalletAddress::parse(chain, &text).ok()?),
            None => None,
        };
        let destination_tag = match self.tag {
            Some(value) => {
                let kind = if value.is_number() { TagKind::Number } else { TagKind::Memo };
                DestinationTag::read(kind, &value).ok()?
            }
            None => None,
        };
        Some(Quote {
            id: self.jti,
            client: self.aud,
            user: self.sub,
            side: self.side,
            pair: self.pair,
            payment_method: self.method.into_owned(),
            fiat: self.fiat,
            crypto: self.crypto,
            price: self.price,
            fees: self.fees,
            partner_fee_percentage: self.partner,
            requested_fee_percentage: self.requested,
            wallet_address,
            destination_tag,
            country: self.country,
            is_estimated: self.estimated,
            policy_decisions: self.policies.into_owned(),
            issued_at: self.iat,
            expires_at: self.exp,
        })
    }
}

#[cfg(test)]
mod tests;
