//! Quotes: a price, its fees and its terms, sealed into a token that the partner carries. A quote
//! writes to no table; what a confirm needs to know is in the token.

mod claims;
pub mod create;
mod fees;
mod limits;
mod request;
pub mod token;

use std::fmt;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::platform::error::{Code, Result};
use crate::platform::settings::QUOTE_SECONDS_MAX;
use crate::trading::catalogue::{self, Pair};
use rampart_types::{
    ClientId, Country, CurrencyCode, DestinationTag, FeeBreakdown, PairCode, QuoteId, UserId,
    WalletAddress,
};

/// Longest life of a quote, in seconds, whatever the settings say: keys of quotes turn by the day,
/// and a key that has turned is kept for one more.
pub const QUOTE_LIFETIME_SECONDS_MAX: u32 = QUOTE_SECONDS_MAX;

/// Which way a trade goes, seen from the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The user pays fiat and gets crypto.
    Buy,
    /// The user pays crypto and gets fiat.
    Sell,
}

impl Side {
    /// A pair's terms for this side.
    pub(crate) fn of(self, pair: &Pair) -> &catalogue::Side {
        match self {
            Self::Buy => &pair.buy,
            Self::Sell => &pair.sell,
        }
    }

    /// What a quote of the other side is refused with.
    const fn expected(self) -> Code {
        match self {
            Self::Buy => Code::NotBuyQuote,
            Self::Sell => Code::NotSellQuote,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Buy => "buy",
            Self::Sell => "sell",
        })
    }
}

/// What was promised, to whom, and until when.
///
/// Its amounts obey the fee identity (contract, section 1, Money).
#[derive(Clone, Debug, PartialEq)]
pub struct Quote {
    /// The `jti` of the token: one order may come of it.
    pub id: QuoteId,
    /// The client it was made for.
    pub client: ClientId,
    /// The user it was made for, if the request named one.
    pub user: Option<UserId>,
    /// Buying or selling.
    pub side: Side,
    /// What is traded for what.
    pub pair: PairCode,
    /// Code of the payment method, or of the payout method when selling.
    pub payment_method: String,
    /// What the user pays, or gets when selling, in the pair's fiat currency.
    pub fiat: Decimal,
    /// What the user gets, or pays when selling, in the pair's crypto currency.
    pub crypto: Decimal,
    /// The mid price: fiat for one unit of crypto.
    pub price: Decimal,
    /// Where the difference goes.
    pub fees: FeeBreakdown,
    /// The partner's fee in percent of `fiat`, as it was charged.
    pub partner_fee_percentage: Decimal,
    /// The partner's fee in percent that the request asked for; `None` is the client's default.
    /// An offer that fixes its fee compares this: a policy or a cap may have charged another.
    pub requested_fee_percentage: Option<Decimal>,
    /// The only wallet it may be confirmed for, if the request named one.
    pub wallet_address: Option<WalletAddress>,
    /// The only tag it may be confirmed with, if the request named one.
    pub destination_tag: Option<DestinationTag>,
    /// Where the user is, if the request said so.
    pub country: Option<Country>,
    /// Whether the rate is fixed when the payment arrives.
    pub is_estimated: bool,
    /// An entry for every policy that had a say, and for the built-in one where it was clamped:
    /// policy, version, digest, rule, fuel, clamped. For the order's audit row.
    pub policy_decisions: serde_json::Value,
    /// When it was made, to the millisecond.
    pub issued_at: DateTime<Utc>,
    /// From when it is refused (ER006), to the millisecond.
    pub expires_at: DateTime<Utc>,
}

impl Quote {
    /// The pair's fiat currency.
    pub const fn fiat_currency(&self) -> CurrencyCode {
        self.pair.quote()
    }

    /// The pair's crypto currency.
    pub const fn crypto_currency(&self) -> CurrencyCode {
        self.pair.base()
    }

    /// Whether it may be confirmed for this wallet. What the quote does not name is free: one that
    /// is bound to an address alone may be confirmed with any tag.
    ///
    /// # Errors
    /// ER007 when the address or the tag is not the one that the quote is bound to.
    pub fn check_wallet(
        &self,
        address: &WalletAddress,
        tag: Option<&DestinationTag>,
    ) -> Result<()> {
        let other_address = self.wallet_address.as_ref().is_some_and(|bound| bound != address);
        let other_tag = self.destination_tag.as_ref().is_some_and(|bound| Some(bound) != tag);
        if other_address || other_tag {
            return Err(token::refused("bound to another wallet"));
        }
        Ok(())
    }
}
