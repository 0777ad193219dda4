//! What a trade costs: from one amount, a price and the rules of the fees to all amounts. Pure
//! arithmetic, exact or refused.
//!
//! Both sides are one sum over a *basis*, the fiat that passes: what the user pays when buying, what
//! the coins are worth when selling.
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
//! Where the other amount is given, the least basis is searched whose rest covers it. What rounding
//! leaves over goes to `spreadFee`, which so never is below the spread. The fee identity, exact to
//! the smallest unit of the currency:
//!
//! ```text
//! buying:  fiat = round(crypto × price) + all fees
//! selling: fiat = round(crypto × price) − all fees
//! ```

mod rules;
mod search;

use rust_decimal::Decimal;

pub use self::rules::{
    Bounds, PAYMENT_METHOD_PERCENT_MAX, Rules, SPREAD_PERCENT_MAX, SPREAD_PERCENT_MIN,
};
use crate::trading::quotes::Side;
use rampart_types::decimal::{divide_down, divide_up, multiply_up, percent_of, sum};
use rampart_types::money::{FeeBreakdown, fiat_value, round_fiat};

/// Largest amount that is priced, in whole units of its currency. A bound of the arithmetic: what
/// may be traded is up to the limits of pairs, methods and users.
pub const AMOUNT_MAX: i64 = 1_000_000_000_000_000;

/// Decimals of a percentage that is reckoned back from an amount.
const EFFECTIVE_PERCENT_DECIMALS: u32 = 4;

/// Most bases that are tried for a sale with a given payout. Four fees can round up at once, so few
/// are ever needed.
const COIN_STEPS_MAX: u32 = 16;

/// The amount that a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// Fiat, in whole smallest units of the currency.
    Fiat(Decimal),
    /// Crypto, at most as fine as the currency's scale.
    Crypto(Decimal),
}

/// All that a price depends on, but the amount.
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
    /// What those may come to.
    pub bounds: Bounds,
}

/// All amounts of a trade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priced {
    /// What the user pays, or gets when selling.
    pub fiat: Decimal,
    /// What the user gets, or pays when selling.
    pub crypto: Decimal,
    /// Where the difference goes.
    pub fees: FeeBreakdown,
    /// The partner's fee in percent of the basis: the rate where it is a plain one, otherwise what
    /// the fee comes to, to four decimals.
    pub partner_fee_percentage: Decimal,
    /// What the bounds changed: `partner`, `payment-method`, `spread`.
    pub clamped: Vec<&'static str>,
}

/// Why an amount has no price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unpriceable {
    /// Nothing is left of it after the fees.
    TooSmall,
    /// It, or the other amount, is beyond [`AMOUNT_MAX`], or a sum does not fit.
    TooLarge,
}

/// A basis divided: what goes to whom, and what is left.
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
    pub fn price_of(&self, given: Given) -> Result<Priced, Unpriceable> {
        let (Given::Fiat(amount) | Given::Crypto(amount)) = given;
        let most = Decimal::from(AMOUNT_MAX);
        if amount > most {
            return Err(Unpriceable::TooLarge);
        }
        let (fiat, crypto, split) = self.amounts_of(given).ok_or(Unpriceable::TooLarge)?;
        if fiat > most || crypto > most {
            return Err(Unpriceable::TooLarge);
        }
        if fiat <= Decimal::ZERO || crypto <= Decimal::ZERO {
            return Err(Unpriceable::TooSmall);
        }
        self.finish(fiat, crypto, split).ok_or(Unpriceable::TooLarge)
    }

    /// Fiat, crypto and the basis divided; `None` when a number does not fit.
    fn amounts_of(&self, given: Given) -> Option<(Decimal, Decimal, Split)> {
        match (self.side, given) {
            (Side::Buy, Given::Fiat(fiat)) => {
                let split = self.split(fiat)?;
                Some((fiat, divide_down(split.rest, self.price, self.crypto_scale)?, split))
            }
            (Side::Buy, Given::Crypto(crypto)) => {
                // Rounded up: quoted the other way round, this fiat must not buy less.
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

    /// The coins to sell for this payout, and what they are worth, divided. A whole number of coin
    /// units is worth a little more than the least basis, where another fee may round up: then the
    /// next basis is tried.
    fn coins_for(&self, fiat: Decimal) -> Option<(Decimal, Split)> {
        let mut least = self.least_basis(fiat)?;
        for _ in 0..COIN_STEPS_MAX {
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
    fn finish(&self, fiat: Decimal, crypto: Decimal, split: Split) -> Option<Priced> {
        let Split { basis, mut fees, partner_clamped, payment_method_clamped, .. } = split;
        let kept = match self.side {
            Side::Buy => sum([basis, -self.worth(crypto)?])?,
            Side::Sell => sum([basis, -fiat])?,
        };
        fees.spread = sum([kept, -fees.total()?, fees.spread])?;
        let bounded = [
            (partner_clamped, "partner"),
            (payment_method_clamped, "payment-method"),
            (self.rules.is_spread_clamped(), "spread"),
        ];
        Some(Priced {
            fiat,
            crypto,
            fees,
            partner_fee_percentage: self.partner_percentage(basis, fees.partner)?,
            clamped: bounded.into_iter().filter_map(|(is, name)| is.then_some(name)).collect(),
        })
    }

    /// Divides a basis.
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

    /// What the coins are worth at the mid price, rounded half up.
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
mod tests;
