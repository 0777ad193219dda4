//! Amounts: decimals in the API, whole numbers of the smallest unit on the chain.

use alloy::primitives::U256;
use rust_decimal::Decimal;

/// Most decimals of an asset.
pub(crate) const DECIMALS_MAX: u8 = 24;

/// Largest amount of the API, in whole units.
const AMOUNT_MAX: i64 = 1_000_000_000_000_000;

/// An amount in smallest units; `None` if it is negative or finer than a unit.
pub(crate) fn to_units(amount: Decimal, decimals: u8) -> Option<U256> {
    let amount = amount.normalize();
    let missing = u32::from(decimals).checked_sub(amount.scale())?;
    let mantissa = u128::try_from(amount.mantissa()).ok()?;
    U256::from(mantissa).checked_mul(U256::from(10).pow(U256::from(missing)))
}

/// An amount of smallest units; `None` beyond the digits of a decimal and the bound of the API.
pub(crate) fn from_units(units: U256, decimals: u8) -> Option<Decimal> {
    let (mut units, mut scale) = (units, u32::from(decimals));
    let ten = U256::from(10);
    while scale > 0 && (units % ten).is_zero() {
        (units, scale) = (units / ten, scale - 1);
    }
    let mantissa = i128::try_from(u128::try_from(units).ok()?).ok()?;
    let amount = Decimal::try_from_i128_with_scale(mantissa, scale).ok()?;
    (amount <= Decimal::from(AMOUNT_MAX)).then_some(amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    #[test]
    fn amounts_round_trip() {
        for (text, decimals, units) in [
            ("0.0026", 18, "2600000000000000"),
            ("0.123456789012345678", 18, "123456789012345678"),
            ("250.00", 6, "250000000"),
            ("79000000000", 18, "79000000000000000000000000000"),
            ("7", 0, "7"),
        ] {
            let units: U256 = units.parse().unwrap();
            assert_eq!(to_units(decimal(text), decimals), Some(units), "{text}");
            assert_eq!(from_units(units, decimals), Some(decimal(text)), "{text}");
        }
    }

    #[test]
    fn an_amount_in_json_is_a_number_with_all_of_its_digits() {
        let text = r#"{"amount":0.123456789012345678}"#;
        let read: std::collections::BTreeMap<String, Decimal> = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::json!({ "amount": read["amount"] }).to_string(), text);
    }

    #[test]
    fn more_than_the_api_takes_is_no_amount() {
        let most = U256::from(1_000_000_000_000_000_u64);
        assert_eq!(from_units(most, 0), Some(decimal("1000000000000000")));
        assert_eq!(from_units(most + U256::from(1), 0), None);
    }

    #[test]
    fn what_is_finer_than_a_unit_is_no_amount() {
        assert_eq!(to_units(decimal("0.0000001"), 6), None);
        assert_eq!(to_units(decimal("1.5"), 0), None);
        assert_eq!(to_units(decimal("-1"), 18), None);
        assert_eq!(from_units(U256::MAX, 18), None);
    }
}
