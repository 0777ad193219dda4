//! Pricing of a trade: computes all amounts from one amount, a price and fee rules. Pure
//! arithmetic, exact or refused.
//!
//! Both sides are computed on a *basis* in fiat: the amount that the user pays when buying, the
//! value of the coins when selling.
//!
//! ```text
//! fees   = partner + provider + payment method + network     each in percent of the basis and/or
//!                                                            fixed, each rounded once, half up
//! spread = spread rate × (basis − fees)                      rounded half up
//! rest   = basis − fees − spread
//! buying:  fiat = basis                     crypto = rest / price, rounded down
//! selling: fiat = rest                      round(crypto × price) = basis
//! ```
//!
//! If the other amount is given, the least basis is searched whose rest covers it. Rounding residue
//! goes to `spreadFee`, which is therefore never below the spread. The fee identity, exact to the
//! smallest unit of the currency:
//!
//! ```text
//! buying:  fiat = round(crypto × price) + all fees
//! selling: fiat = round(crypto × price) − all fees
//! ```

mod fee_rules;
mod rules;
mod search;

use rust_decimal::Decimal;

pub use self::fee_rules::FeeRules;
pub use self::rules::{
    Bounds, PAYMENT_METHOD_PERCENT_MAX, Rules, SPREAD_PERCENT_MAX, SPREAD_PERCENT_MIN,
};
use crate::trading::quotes::Side;
use rampart_types::decimal::{divide_down, divide_up, multiply_up, percent_of, sum};
use rampart_types::money::{AMOUNT_MAX, FeeBreakdown, fiat_value, round_fiat};

/// Decimals of a percentage that is computed back from an amount.
const EFFECTIVE_PERCENT_DECIMALS: u32 = 4;

/// Most bases that are tried for a sale with a given payout. At most four fees round up at once, so
/// few are ever needed.
const BASIS_ATTEMPTS_MAX: u32 = 16;

/// The amount that a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// Fiat, in whole smallest units of the currency.
    Fiat(Decimal),
    /// Crypto, at most as fine as the currency's scale.
    Crypto(Decimal),
}

/// Parameters of a trade's price, except the amount.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Buying or selling.
    pub side: Side,
    /// The mid price: fiat for one unit of crypto.
    pub price: Decimal,
    /// Decimals of the fiat currency.
    pub fiat_exponent: u32,
    /// Decimals of crypto amounts.
    pub crypto_scale: u32,
    /// The operator's fee in percent of the basis.
    pub provider_percentage: Decimal,
    /// The network's fee in fiat.
    pub network_fee: Decimal,
    /// Partner fee, payment method fee and spread.
    pub rules: Rules,
    /// Bounds of those fees.
    pub bounds: Bounds,
}

/// The amounts of a trade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priced {
    /// Amount that the user pays, or gets when selling.
    pub fiat: Decimal,
    /// Amount that the user gets, or pays when selling.
    pub crypto: Decimal,
    /// The fees.
    pub fees: FeeBreakdown,
    /// The partner's fee in percent of the basis: the rate if it is a plain one, otherwise the
    /// effective rate, to four decimals.
    pub partner_fee_percentage: Decimal,
    /// Fees that their bounds changed.
    pub clamped: Vec<BoundedFee>,
}

/// A fee with bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundedFee {
    /// The partner's fee.
    Partner,
    /// The payment method's fee.
    PaymentMethod,
    /// The spread.
    Spread,
}

impl BoundedFee {
    /// Name in the order's audit row.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Partner => "partner",
            Self::PaymentMethod => "payment-method",
            Self::Spread => "spread",
        }
    }
}

/// Reason that an amount has no price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unpriceable {
    /// Nothing is left of it after the fees.
    TooSmall,
    /// It, or the other amount, is beyond [`AMOUNT_MAX`], or a sum does not fit.
    TooLarge,
}

/// A basis split into fees and rest.
struct Split {
    basis: Decimal,
    fees: FeeBreakdown,
    rest: Decimal,
    partner_clamped: bool,
    payment_method_clamped: bool,
}

impl Terms {
    /// Prices an amount.
    ///
    /// # Errors
    /// When nothing is left after the fees, or a sum does not fit.
    pub fn price(&self, given: Given) -> Result<Priced, Unpriceable> {
        let (Given::Fiat(amount) | Given::Crypto(amount)) = given;
        let most = Decimal::from(AMOUNT_MAX);
        if amount > most {
            return Err(Unpriceable::TooLarge);
        }
        let (fiat, crypto, split) = self.amounts(given).ok_or(Unpriceable::TooLarge)?;
        if fiat > most || crypto > most {
            return Err(Unpriceable::TooLarge);
        }
        if fiat <= Decimal::ZERO || crypto <= Decimal::ZERO {
            return Err(Unpriceable::TooSmall);
        }
        self.build(fiat, crypto, split).ok_or(Unpriceable::TooLarge)
    }

    /// Fiat, crypto and the split basis; `None` when a number does not fit.
    fn amounts(&self, given: Given) -> Option<(Decimal, Decimal, Split)> {
        match (self.side, given) {
            (Side::Buy, Given::Fiat(fiat)) => {
                let split = self.split(fiat)?;
                Some((fiat, divide_down(split.rest, self.price, self.crypto_scale)?, split))
            }
            (Side::Buy, Given::Crypto(crypto)) => {
                // Rounded up: a quote for this fiat amount must not buy less.
                let worth = multiply_up(crypto, self.price, self.fiat_exponent)?;
                let basis = self.least_basis(worth)?;
                Some((basis, crypto, self.split(basis)?))
            }
            (Side::Sell, Given::Crypto(crypto)) => {
                let split = self.split(self.worth(crypto)?)?;
                Some((split.rest, crypto, split))
            }
            (Side::Sell, Given::Fiat(fiat)) => {
                let (crypto, split) = self.coins_for(fiat)?;
                Some((fiat, crypto, split))
            }
        }
    }

    /// The coins to sell for this payout, and their value as a split basis. A whole number of coin
    /// units is worth slightly more than the least basis, at which another fee may round up: then
    /// the next basis is tried.
    fn coins_for(&self, fiat: Decimal) -> Option<(Decimal, Split)> {
        let mut least = self.least_basis(fiat)?;
        for _ in 0..BASIS_ATTEMPTS_MAX {
            let crypto = divide_up(least, self.price, self.crypto_scale)?;
            let split = self.split(self.worth(crypto)?)?;
            if split.rest >= fiat {
                return Some((crypto, split));
            }
            least = sum([split.basis, self.unit()])?;
        }
        None
    }

    /// The fees of the final amounts, with the residue in the spread.
    fn build(&self, fiat: Decimal, crypto: Decimal, split: Split) -> Option<Priced> {
        let Split { basis, mut fees, partner_clamped, payment_method_clamped, .. } = split;
        let margin = match self.side {
            Side::Buy => sum([basis, -self.worth(crypto)?])?,
            Side::Sell => sum([basis, -fiat])?,
        };
        fees.spread = sum([margin, -fees.total()?, fees.spread])?;
        let bounded = [
            (partner_clamped, BoundedFee::Partner),
            (payment_method_clamped, BoundedFee::PaymentMethod),
            (self.rules.is_spread_clamped(), BoundedFee::Spread),
        ];
        Some(Priced {
            fiat,
            crypto,
            fees,
            partner_fee_percentage: self.partner_percentage(basis, fees.partner)?,
            clamped: bounded.into_iter().filter_map(|(is, fee)| is.then_some(fee)).collect(),
        })
    }

    fn split(&self, basis: Decimal) -> Option<Split> {
        let round = |value| round_fiat(value, self.fiat_exponent);
        let partner = self.rules.partner_fee(basis, &self.bounds)?;
        let payment_method = self.rules.payment_method_fee(basis, &self.bounds)?;
        let mut fees = FeeBreakdown {
            partner: round(partner.fee),
            provider: round(percent_of(basis, self.provider_percentage)?),
            payment_method: round(payment_method.fee),
            network: round(self.network_fee),
            ..FeeBreakdown::default()
        };
        let converted = sum([basis, -fees.total()?])?;
        fees.spread = round(percent_of(converted, self.rules.spread_percentage())?);
        Some(Split {
            basis,
            rest: sum([converted, -fees.spread])?,
            fees,
            partner_clamped: partner.clamped,
            payment_method_clamped: payment_method.clamped,
        })
    }

    /// Value of the coins at the mid price, rounded half up.
    fn worth(&self, crypto: Decimal) -> Option<Decimal> {
        fiat_value(crypto, self.price, self.fiat_exponent)
    }

    /// The least basis that leaves `target` after fees and spread.
    fn least_basis(&self, target: Decimal) -> Option<Decimal> {
        search::least(self.unit(), target, |basis| Some(self.split(basis)?.rest))
    }

    /// The smallest amount of the fiat currency.
    fn unit(&self) -> Decimal {
        Decimal::new(1, self.fiat_exponent)
    }

    fn partner_percentage(&self, basis: Decimal, fee: Decimal) -> Option<Decimal> {
        if let Some(rate) = self.rules.partner_rate(&self.bounds) {
            return Some(rate);
        }
        let share = fee.checked_div(basis)?.checked_mul(Decimal::ONE_HUNDRED)?;
        Some(round_fiat(share, EFFECTIVE_PERCENT_DECIMALS).normalize())
    }
}

#[cfg(test)]
pub(crate) mod tests;
