//! Quotes: a price, its fees and its terms, sealed into a token that the partner sends back. A
//! quote is not stored; everything that a confirm needs is in the token.

mod claims;
pub mod counts;
pub mod create;
mod fees;
pub(crate) mod limits;
mod market;
pub mod matrix;
mod policy_user;
mod request;
pub mod token;

use std::fmt;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::platform::error::{Code, Result};
use crate::platform::settings::QUOTE_SECONDS_MAX;
use crate::trading::catalogue::{Pair, PairSide};
use crate::trading::pricing::FeeRules;
use rampart_types::{
    ClientId, Country, CurrencyCode, DestinationTag, FeeBreakdown, PairCode, QuoteId, UserId,
    WalletAddress,
};

/// Longest lifetime of a quote, in seconds, regardless of settings: keys of quotes rotate daily,
/// and the previous key stays valid for one more day.
pub const QUOTE_LIFETIME_SECONDS_MAX: u32 = QUOTE_SECONDS_MAX;

/// Direction of a trade, from the user's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The user pays fiat and gets crypto.
    Buy,
    /// The user pays crypto and gets fiat.
    Sell,
}

rampart_types::named_values! {
    pub(crate) Side {
        Buy = "buy",
        Sell = "sell",
    }
}

impl Side {
    /// A pair's terms for this side.
    pub fn terms(self, pair: &Pair) -> &PairSide {
        match self {
            Self::Buy => &pair.buy,
            Self::Sell => &pair.sell,
        }
    }

    /// Error code for a quote of the other side.
    const fn wrong_side_code(self) -> Code {
        match self {
            Self::Buy => Code::NotBuyQuote,
            Self::Sell => Code::NotSellQuote,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A quote: amounts, fees and terms, for one tenant and a limited time.
///
/// Its amounts obey the fee identity (contract, section 1, Money).
#[derive(Clone, Debug, PartialEq)]
pub struct Quote {
    /// The `jti` of the token; it becomes one order at most.
    pub id: QuoteId,
    /// The tenant that requested it.
    pub client: ClientId,
    /// The user that it is bound to, if the request named one.
    pub user: Option<UserId>,
    /// Buying or selling.
    pub side: Side,
    /// The traded pair.
    pub pair: PairCode,
    /// Code of the payment method, or of the payout method when selling.
    pub payment_method: String,
    /// Amount that the user pays, or gets when selling, in the pair's fiat currency.
    pub fiat: Decimal,
    /// Amount that the user gets, or pays when selling, in the pair's crypto currency.
    pub crypto: Decimal,
    /// The mid price: fiat for one unit of crypto.
    pub price: Decimal,
    /// The fees.
    pub fees: FeeBreakdown,
    /// The partner's fee in percent of `fiat`, as it was charged.
    pub partner_fee_percentage: Decimal,
    /// The partner's fee in percent as requested; `None` is the tenant's default. An offer with a
    /// fixed fee compares this: a policy or a cap may have charged another.
    pub requested_fee_percentage: Option<Decimal>,
    /// The wallet that it is bound to, if the request named one.
    pub wallet_address: Option<WalletAddress>,
    /// The tag that it is bound to, if the request named one.
    pub destination_tag: Option<DestinationTag>,
    /// The user's country, if the request named one.
    pub country: Option<Country>,
    /// True if the rate is fixed when the payment arrives.
    pub is_estimated: bool,
    /// An entry for every policy that was evaluated, and for the built-in rules if they were
    /// clamped: policy, version, digest, rule, fuel, clamped. For the order's audit row.
    pub policy_decisions: serde_json::Value,
    /// Revision of the catalogue whose price it has.
    pub catalogue_revision: i64,
    /// The rules by which it was priced. `None` if it was sealed by an edge of a version that kept
    /// none.
    pub fee_rules: Option<FeeRules>,
    /// Time of issue, to the millisecond.
    pub issued_at: DateTime<Utc>,
    /// Time from which it is refused (ER006), to the millisecond.
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

    /// Checks that it may be confirmed for this wallet. A quote that is bound to an address alone
    /// may be confirmed with any tag.
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
