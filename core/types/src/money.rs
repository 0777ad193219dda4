//! Amounts, their rounding, and the fee identity that every quote and order obeys.

use rust_decimal::{Decimal, RoundingStrategy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::decimal::{fits_decimals, multiply_rounded, sum};
use super::{CurrencyCode, JsonDecimal};

/// Largest amount that is taken, in whole units of its currency or asset. Sums of more of them than
/// books can have fit a [`Decimal`].
pub const AMOUNT_MAX: i64 = 1_000_000_000_000_000;

pub use super::decimal::percent_of;

/// An amount of one currency; on the wire `{"amount":12.5,"currencyCode":"EUR"}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize, Deserialize)]
pub struct Amount {
    /// The amount in whole units of the currency (euros, not cents).
    #[serde(with = "super::decimal")]
    #[schemars(with = "JsonDecimal")]
    pub amount: Decimal,
    /// Its currency.
    #[serde(rename = "currencyCode")]
    pub currency: CurrencyCode,
}

impl Amount {
    /// An amount in this currency.
    #[must_use]
    pub const fn new(amount: Decimal, currency: CurrencyCode) -> Self {
        Self { amount, currency }
    }
}

/// Rounds fiat half up to the currency's exponent (contract, section 1, Money). A negative amount,
/// which only a rounding residue can be, is rounded half away from zero.
#[must_use]
pub fn round_fiat(value: Decimal, exponent: u32) -> Decimal {
    value.round_dp_with_strategy(exponent, RoundingStrategy::MidpointAwayFromZero)
}

/// The fiat value of crypto at a price, rounded once, half up, to the fiat exponent; `None` when the
/// exact product has more than 38 digits or the result does not fit.
#[must_use]
pub fn fiat_value(crypto: Decimal, price: Decimal, exponent: u32) -> Option<Decimal> {
    multiply_rounded(crypto, price, exponent)
}

/// The fees of a quote or order, in its fiat currency.
///
/// The identity (contract, section 1, Money), exact to the smallest unit of the currency:
/// `fiatAmount = round(cryptoAmount × price) + partner + provider + payment_method + network +
/// spread + affiliate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeeBreakdown {
    /// The partner's profit.
    pub partner: Decimal,
    /// The operator's fee.
    pub provider: Decimal,
    /// The payment method's fee.
    pub payment_method: Decimal,
    /// The network fee of the chain.
    pub network: Decimal,
    /// The spread plus the rounding residue; negative when the residue exceeds the spread.
    pub spread: Decimal,
    /// The affiliate's share.
    pub affiliate: Decimal,
}

impl FeeBreakdown {
    /// All fees together; `None` when the sum does not fit.
    #[must_use]
    pub fn total(&self) -> Option<Decimal> {
        sum(self.parts())
    }

    /// True if the identity holds: every amount is in whole minor units of the currency, and the two
    /// sides are equal.
    #[must_use]
    pub fn holds(&self, fiat: Decimal, crypto: Decimal, price: Decimal, exponent: u32) -> bool {
        let whole = |value| fits_decimals(value, exponent);
        let right = || sum([fiat_value(crypto, price, exponent)?, self.total()?]);
        whole(fiat) && self.parts().into_iter().all(whole) && right() == Some(fiat)
    }

    /// The same fees with the spread adjusted so that the identity
    /// [`holds`](Self::holds), provided that `fiat` and all fees but the spread are rounded
    /// already. `None` when a number does not fit or an amount is not rounded.
    #[must_use]
    pub fn with_residue_in_spread(
        mut self,
        fiat: Decimal,
        crypto: Decimal,
        price: Decimal,
        exponent: u32,
    ) -> Option<Self> {
        let others = sum([self.total()?, -self.spread])?;
        self.spread = sum([fiat, -fiat_value(crypto, price, exponent)?, -others])?;
        self.holds(fiat, crypto, price, exponent).then_some(self)
    }

    fn parts(&self) -> [Decimal; 6] {
        // Destructured so that a new fee cannot be left out of the sum.
        let Self { partner, provider, payment_method, network, spread, affiliate } = *self;
        [partner, provider, payment_method, network, spread, affiliate]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::decimal::parse;
    use super::*;

    fn decimal(text: &str) -> Decimal {
        parse(text).unwrap()
    }

    fn fees() -> FeeBreakdown {
        FeeBreakdown {
            partner: decimal("1"),
            provider: decimal("2.5"),
            payment_method: decimal("0.35"),
            network: decimal("0.99"),
            spread: decimal("0.16"),
            affiliate: Decimal::ZERO,
        }
    }

    #[test]
    fn an_amount_is_a_plain_number_and_a_code() {
        let amount = Amount::new(Decimal::new(1250, 2), "EUR".parse().unwrap());
        let text = r#"{"amount":12.5,"currencyCode":"EUR"}"#;
        assert_eq!(serde_json::to_string(&amount).unwrap(), text);
        assert_eq!(serde_json::from_str::<Amount>(text).unwrap(), amount);
        for bad in [
            r#"{"amount":"12.5","currencyCode":"EUR"}"#,
            r#"{"amount":1e400,"currencyCode":"EUR"}"#,
            r#"{"amount":12.5,"currencyCode":"euro"}"#,
        ] {
            assert!(serde_json::from_str::<Amount>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn fiat_rounds_half_up() {
        assert_eq!(round_fiat(decimal("1.005"), 2), decimal("1.01"));
        assert_eq!(round_fiat(decimal("1.0049"), 2), decimal("1"));
        assert_eq!(round_fiat(decimal("1.5"), 0), decimal("2"));
    }

    #[test]
    fn the_identity_holds_to_the_cent_and_not_beside_it() {
        // 0.00190000 × 50000.00 = 95.00, plus 5.00 of fees.
        let (crypto, price) = (decimal("0.0019"), decimal("50000"));
        assert_eq!(fees().total(), Some(decimal("5")));
        assert!(fees().holds(decimal("100"), crypto, price, 2));
        assert!(!fees().holds(decimal("100.01"), crypto, price, 2));
        assert!(!fees().holds(decimal("99.99"), crypto, price, 2));
        assert!(!fees().holds(decimal("100"), crypto, decimal("50003"), 2));
    }

    #[test]
    fn a_fraction_of_a_cent_breaks_the_identity_even_when_the_sums_agree() {
        let finer = FeeBreakdown { partner: decimal("1.001"), spread: decimal("0.159"), ..fees() };
        assert_eq!(finer.total(), fees().total());
        assert!(!finer.holds(decimal("100"), decimal("0.0019"), decimal("50000"), 2));
    }

    #[test]
    fn numbers_beyond_the_range_break_the_identity_without_a_panic() {
        let huge = FeeBreakdown { partner: Decimal::MAX, provider: Decimal::MAX, ..fees() };
        assert_eq!(huge.total(), None);
        assert!(!huge.holds(Decimal::MAX, Decimal::MAX, Decimal::MAX, 2));
        assert_eq!(huge.with_residue_in_spread(Decimal::MAX, Decimal::MAX, Decimal::MAX, 2), None);
    }

    proptest! {
        #[test]
        fn the_residue_in_the_spread_always_closes_the_identity(
            fiat in 1_i64..1_000_000_000,
            crypto in 1_i64..10_000_000_000,
            price in 1_i64..1_000_000_000_000,
            cents in prop::array::uniform5(0_i64..1_000_000),
        ) {
            let [partner, provider, payment_method, network, affiliate] =
                cents.map(|value| Decimal::new(value, 2));
            let spread = Decimal::ZERO;
            let open =
                FeeBreakdown { partner, provider, payment_method, network, spread, affiliate };
            let (fiat, crypto, price) =
                (Decimal::new(fiat, 2), Decimal::new(crypto, 8), Decimal::new(price, 6));
            let closed = open.with_residue_in_spread(fiat, crypto, price, 2).unwrap();
            prop_assert!(closed.holds(fiat, crypto, price, 2));
            prop_assert_eq!(FeeBreakdown { spread, ..closed }, open);
            let sum = round_fiat(crypto * price, 2) + closed.total().unwrap();
            prop_assert_eq!(sum, fiat);
        }

        #[test]
        fn rounding_moves_less_than_one_unit(mantissa: i64, scale in 0_u32..=18, decimals in 0_u32..=8) {
            let value = Decimal::new(mantissa, scale);
            let unit = Decimal::new(1, decimals);
            let rounded = round_fiat(value, decimals);
            prop_assert!((rounded - value).abs() * Decimal::TWO <= unit);
            prop_assert!(fits_decimals(rounded, decimals));
        }
    }
}
