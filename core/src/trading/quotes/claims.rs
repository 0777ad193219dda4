//! A quote as the claims of its token. They are compact binary, a third as long as JSON: only this
//! service reads them, and every quote response and every confirm carries them.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Quote, Side};
use crate::platform::error::{Error, Result};
use rampart_types::{
    Chain, ClientId, Country, DestinationTag, FeeBreakdown, PairCode, QuoteId, TagKind, UserId,
    WalletAddress,
};

/// The first byte, the version of the encoding. Any change to the fields below, their types or
/// their order needs another one.
const FORMAT: u8 = 2;
/// The version before: without the revision, which ended it.
const FORMAT_BEFORE: u8 = 1;

/// Encodes a quote.
///
/// # Errors
/// When it cannot be encoded, which is our fault.
pub(super) fn write(quote: &Quote) -> Result<Vec<u8>> {
    let failed = |error| Error::internal("write a quote", error);
    let claims = Claims::new(quote).map_err(failed)?;
    postcard::to_extend(&claims, vec![FORMAT])
        .map_err(|error| Error::internal("write a quote", error))
}

/// Decodes the output of [`write`]; `None` for anything else.
pub(super) fn read(bytes: &[u8]) -> Option<Quote> {
    let (&format, claims) = bytes.split_first()?;
    let claims = match format {
        FORMAT => Cow::Borrowed(claims),
        // A zero: it was sealed before every revision.
        FORMAT_BEFORE => Cow::Owned([claims, &[0]].concat()),
        _ => return None,
    };
    match postcard::take_from_bytes::<Claims<'_>>(&claims).ok()? {
        (claims, []) => claims.into_quote(),
        _ => None,
    }
}

#[derive(Serialize, Deserialize)]
struct Claims<'a> {
    id: QuoteId,
    client: ClientId,
    user: Option<UserId>,
    #[serde(with = "chrono::serde::ts_milliseconds")]
    issued_at: DateTime<Utc>,
    #[serde(with = "chrono::serde::ts_milliseconds")]
    expires_at: DateTime<Utc>,
    side: Side,
    pair: PairCode,
    method: Cow<'a, str>,
    fiat: Packed,
    crypto: Packed,
    price: Packed,
    /// Partner, provider, payment method, network, spread, affiliate.
    fees: [Packed; 6],
    partner_fee_percentage: Packed,
    requested_fee_percentage: Option<Packed>,
    wallet: Option<(Chain, Cow<'a, str>)>,
    /// As JSON, in which a number is one kind of tag and a text the other.
    tag: Option<String>,
    country: Option<Country>,
    is_estimated: bool,
    /// As JSON.
    policy_decisions: String,
    revision: i64,
}

impl<'a> Claims<'a> {
    fn new(quote: &'a Quote) -> serde_json::Result<Self> {
        let FeeBreakdown { partner, provider, payment_method, network, spread, affiliate } =
            quote.fees;
        let wallet = quote.wallet_address.as_ref();
        Ok(Self {
            id: quote.id,
            client: quote.client,
            user: quote.user,
            issued_at: quote.issued_at,
            expires_at: quote.expires_at,
            side: quote.side,
            pair: quote.pair,
            method: Cow::Borrowed(&quote.payment_method),
            fiat: Packed(quote.fiat),
            crypto: Packed(quote.crypto),
            price: Packed(quote.price),
            fees: [partner, provider, payment_method, network, spread, affiliate].map(Packed),
            partner_fee_percentage: Packed(quote.partner_fee_percentage),
            requested_fee_percentage: quote.requested_fee_percentage.map(Packed),
            wallet: wallet.map(|address| (address.chain(), Cow::Borrowed(address.as_str()))),
            tag: quote.destination_tag.as_ref().map(serde_json::to_string).transpose()?,
            country: quote.country,
            is_estimated: quote.is_estimated,
            policy_decisions: serde_json::to_string(&quote.policy_decisions)?,
            revision: quote.catalogue_revision,
        })
    }

    fn into_quote(self) -> Option<Quote> {
        let [partner, provider, payment_method, network, spread, affiliate] =
            self.fees.map(|Packed(fee)| fee);
        let wallet_address = match self.wallet {
            Some((chain, text)) => Some(WalletAddress::parse(chain, &text).ok()?),
            None => None,
        };
        let destination_tag = match self.tag {
            Some(text) => {
                let value: serde_json::Value = serde_json::from_str(&text).ok()?;
                let kind = if value.is_number() { TagKind::Number } else { TagKind::Memo };
                DestinationTag::read(kind, &value).ok()?
            }
            None => None,
        };
        Some(Quote {
            id: self.id,
            client: self.client,
            user: self.user,
            side: self.side,
            pair: self.pair,
            payment_method: self.method.into_owned(),
            fiat: self.fiat.0,
            crypto: self.crypto.0,
            price: self.price.0,
            fees: FeeBreakdown { partner, provider, payment_method, network, spread, affiliate },
            partner_fee_percentage: self.partner_fee_percentage.0,
            requested_fee_percentage: self.requested_fee_percentage.map(|Packed(fee)| fee),
            wallet_address,
            destination_tag,
            country: self.country,
            is_estimated: self.is_estimated,
            policy_decisions: serde_json::from_str(&self.policy_decisions).ok()?,
            catalogue_revision: self.revision,
            issued_at: self.issued_at,
            expires_at: self.expires_at,
        })
    }
}

/// A decimal as its digits and its scale, exactly.
#[derive(Clone, Copy)]
struct Packed(Decimal);

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        (self.0.mantissa(), self.0.scale()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(source: D) -> std::result::Result<Self, D::Error> {
        let (mantissa, scale) = <(i128, u32)>::deserialize(source)?;
        Decimal::try_from_i128_with_scale(mantissa, scale)
            .map(Self)
            .map_err(serde::de::Error::custom)
    }
}
