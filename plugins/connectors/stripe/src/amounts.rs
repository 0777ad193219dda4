//! Amounts in the units that Stripe counts in: the smallest one of each currency.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

/// Currencies that are counted in whole units.
const WHOLE: [&str; 15] = [
    "BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF",
    "XOF", "XPF",
];
/// Currencies that are counted in thousandths.
const THOUSANDTHS: [&str; 5] = ["BHD", "JOD", "KWD", "OMR", "TND"];

/// Decimal places of the smallest unit of a currency, by its code in capitals.
fn places(currency: &str) -> u32 {
    if WHOLE.contains(&currency) {
        return 0;
    }
    if THOUSANDTHS.contains(&currency) { 3 } else { 2 }
}

/// An amount above zero in the smallest unit; `None` if it has a part that is smaller, or is too
/// large.
pub(crate) fn to_smallest(amount: Decimal, currency: &str) -> Option<i64> {
    let scaled = amount.checked_mul(Decimal::from(10_i64.checked_pow(places(currency))?))?;
    let whole = scaled.is_integer().then(|| scaled.to_i64()).flatten()?;
    (whole > 0).then_some(whole)
}

/// The amount of so many smallest units, without zeros at its end.
pub(crate) fn from_smallest(count: i64, currency: &str) -> Decimal {
    Decimal::new(count, places(currency)).normalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    #[test]
    fn amounts_round_trip_in_each_unit() {
        for (text, currency, count) in [
            ("250", "EUR", 25_000),
            ("0.01", "EUR", 1),
            ("19.99", "USD", 1_999),
            ("500", "JPY", 500),
            ("1.234", "KWD", 1_234),
        ] {
            assert_eq!(to_smallest(amount(text), currency), Some(count), "{text} {currency}");
            assert_eq!(from_smallest(count, currency), amount(text), "{text} {currency}");
        }
        assert_eq!(from_smallest(25_000, "EUR").to_string(), "250");
    }

    #[test]
    fn what_cannot_be_charged_exactly_is_not_charged() {
        for (text, currency) in [
            ("0.001", "EUR"),
            ("1.5", "JPY"),
            ("0", "EUR"),
            ("-1", "EUR"),
            ("79228162514264337593543950335", "EUR"),
            ("92233720368547758.08", "EUR"),
        ] {
            assert_eq!(to_smallest(amount(text), currency), None, "{text} {currency}");
        }
    }
}
