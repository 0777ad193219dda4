//! A quote as the claims of its token. They are compact binary, a third as long as JSON: only this
//! service reads them, and every quote response and every confirm carries them.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Quote, Side};
use crate::platform::error::{Error, Result};
use crate::trading::packed::Packed;
use crate::trading::pricing::FeeRules;
use rampart_types::{
    Chain, ClientId, Country, DestinationTag, FeeBreakdown, PairCode, QuoteId, TagKind, UserId,
    WalletAddress,
};

/// The first byte, the version of the encoding. Any change to the fields below, their types or
/// their order needs another one.
const FORMAT: u8 = 2;
/// The version before: without the revision, which ended it.
const FORMAT_BEFORE: u8 = 1;
/// Name of the rules of the fees, in hexadecimal, behind the decisions.
const FEE_RULES: &str = "feeRules";

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
    /// As JSON, and behind them the rules of the fees: edges of the version before, which confirm
    /// these quotes too, take any element there.
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
            policy_decisions: decisions_and_rules(quote)?,
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
                let value: Value = serde_json::from_str(&text).ok()?;
                let kind = if value.is_number() { TagKind::Number } else { TagKind::Memo };
                DestinationTag::read(kind, &value).ok()?
            }
            None => None,
        };
        let mut policy_decisions = serde_json::from_str(&self.policy_decisions).ok()?;
        let fee_rules = take_rules(&mut policy_decisions);
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
            policy_decisions,
            catalogue_revision: self.revision,
            fee_rules,
            issued_at: self.issued_at,
            expires_at: self.expires_at,
        })
    }
}

/// The decisions of a quote as JSON, and behind them the rules of its fees, if it has any.
fn decisions_and_rules(quote: &Quote) -> serde_json::Result<String> {
    let mut decisions = quote.policy_decisions.clone();
    if let (Some(rules), Some(all)) = (&quote.fee_rules, decisions.as_array_mut()) {
        all.push(json!({ FEE_RULES: hex::encode(rules.as_bytes()) }));
    }
    serde_json::to_string(&decisions)
}

/// Takes the rules from behind the decisions; `None` if there are none.
fn take_rules(decisions: &mut Value) -> Option<FeeRules> {
    let rules = decisions.as_array_mut()?.pop_if(|last| last.get(FEE_RULES).is_some())?;
    hex::decode(rules[FEE_RULES].as_str()?).ok().map(FeeRules::from)
}
