//! Decimals in JSON, and arithmetic that is exact or fails.
//!
//! `rust_decimal` rounds a product silently once it needs more than 96 bits. Nothing here does:
//! a result that cannot be held exactly is `None`. No number passes through a float.
//! The functions [`serialize`] and [`deserialize`] serve `#[serde(with = "…::types::decimal")]`.

use std::str::FromStr;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value};

/// Longest text of a number that is read, in bytes.
pub const NUMBER_BYTES_MAX: usize = 64;

/// Digits of the largest [`Decimal`], 2^96 - 1.
const DIGITS_MAX: i64 = 29;
/// Digits that a [`Decimal`] can hold after the point.
const SCALE_MAX: i64 = 28;

/// A decimal whose JSON form is a plain number: no trailing zero, no exponent, no negative zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JsonDecimal(pub Decimal);

impl From<Decimal> for JsonDecimal {
    fn from(value: Decimal) -> Self {
        Self(value)
    }
}

impl From<JsonDecimal> for Decimal {
    fn from(value: JsonDecimal) -> Self {
        value.0
    }
}

crate::inline_schema!(JsonDecimal, {"type": "number"});

impl Serialize for JsonDecimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for JsonDecimal {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        deserialize(source).map(Self)
    }
}

/// Writes a decimal as a plain JSON number.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(value: &Decimal, serializer: S) -> Result<S::Ok, S::Error> {
    let (mantissa, scale) = parts(*value);
    // Most fees are whole or zero, and a whole number needs no allocation.
    if scale == 0
        && let Ok(whole) = i64::try_from(mantissa)
    {
        return serializer.serialize_i64(whole);
    }
    let shortest = Decimal::from_i128_with_scale(mantissa, scale).to_string();
    Number::from_str(&shortest).map_err(serde::ser::Error::custom)?.serialize(serializer)
}

/// Reads a decimal from a JSON number, exactly.
///
/// # Errors
/// When the value is no number, or one that does not fit.
pub fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Decimal, D::Error> {
    let number = Number::deserialize(source)?;
    parse(number.as_str()).ok_or_else(|| serde::de::Error::custom("number out of range"))
}

/// A JSON number as an exact decimal; `None` for any other value or a number that does not fit.
#[must_use]
pub fn from_number(value: &Value) -> Option<Decimal> {
    value.as_number().and_then(|number| parse(number.as_str()))
}

/// Like [`from_number`], but also accepts a string that spells a JSON number (contract, section 1.1:
/// the quote endpoints only).
#[must_use]
pub fn from_number_or_text(value: &Value) -> Option<Decimal> {
    match value {
        Value::String(text) => parse(text),
        other => from_number(other),
    }
}

/// Reads a number in the grammar of RFC 8259, section 6 (exponents too) without rounding.
///
/// `None` when the text is anything else, is longer than [`NUMBER_BYTES_MAX`], or does not fit: a
/// [`Decimal`] has 96 bits and at most 28 decimals. The caller checks the sign.
#[must_use]
pub fn parse(text: &str) -> Option<Decimal> {
    if text.len() > NUMBER_BYTES_MAX {
        return None;
    }
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
        None => (unsigned, 0),
    };
    let digits = mantissa_digits(mantissa)?;
    let decimals = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());

    let shortest = digits.trim_end_matches('0');
    let dropped = digits.len() - shortest.len();
    let significant = shortest.trim_start_matches('0');
    if significant.is_empty() {
        return Some(Decimal::ZERO);
    }
    let length = i64::try_from(significant.len()).ok()?;
    let shift = i64::try_from(dropped).ok()? - i64::try_from(decimals).ok()?;
    let power = exponent.checked_add(shift)?;
    if length > DIGITS_MAX || power < -SCALE_MAX || power > DIGITS_MAX - length {
        return None;
    }
    let mut coefficient: i128 = significant.parse().ok()?;
    if power > 0 {
        coefficient *= power_of_ten(u32::try_from(power).ok()?)?;
    }
    let signed = if negative { -coefficient } else { coefficient };
    Decimal::try_from_i128_with_scale(signed, u32::try_from((-power).max(0)).ok()?).ok()
}

/// The digits of `12.50` as `1250`; `None` unless it is digits with no redundant leading zero and,
/// after a point, at least one digit.
fn mantissa_digits(mantissa: &str) -> Option<String> {
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (mantissa, ""),
    };
    let leading_zero = whole.len() > 1 && whole.starts_with('0');
    if whole.is_empty() || leading_zero || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    Some([whole, fraction].concat())
}

fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !are_digits(digits) {
        return None;
    }
    text.parse().ok()
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// True if the value needs at most this many decimals; trailing zeros do not count.
#[must_use]
pub fn fits_decimals(value: Decimal, decimals: u32) -> bool {
    parts(value).1 <= decimals
}

/// The product rounded once, half away from zero, to this many decimals; `None` when it does not
/// fit. The product itself is held exactly up to 38 digits before rounding.
#[must_use]
pub fn multiply_rounded(left: Decimal, right: Decimal, decimals: u32) -> Option<Decimal> {
    let (mantissa, scale) = product(left, right)?;
    let Some(excess) = scale.checked_sub(decimals).filter(|excess| *excess > 0) else {
        return assemble(mantissa, scale);
    };
    let Some(divisor) = power_of_ten(excess) else {
        // The divisor is beyond 10^38 and the mantissa below half of it.
        return Some(Decimal::ZERO);
    };
    let (quotient, remainder) = (mantissa / divisor, mantissa % divisor);
    let up = remainder.abs() >= divisor - remainder.abs();
    assemble(if up { quotient + mantissa.signum() } else { quotient }, decimals)
}

/// The product rounded up: the least number of this many decimals that is not below it. `None` when
/// it does not fit, or the exact product has more than 38 digits.
#[must_use]
pub fn multiply_up(left: Decimal, right: Decimal, decimals: u32) -> Option<Decimal> {
    let (mantissa, scale) = product(left, right)?;
    let Some(excess) = scale.checked_sub(decimals).filter(|excess| *excess > 0) else {
        return assemble(mantissa, scale);
    };
    let divisor = power_of_ten(excess)?;
    let up = i128::from(mantissa.rem_euclid(divisor) > 0);
    assemble(mantissa.div_euclid(divisor) + up, decimals)
}

/// The quotient rounded down: the largest number of this many decimals that is not above it. `None`
/// when `right` is not positive, or the result or a step towards it does not fit.
#[must_use]
pub fn divide_down(left: Decimal, right: Decimal, decimals: u32) -> Option<Decimal> {
    let (dividend, divisor) = ratio(left, right, decimals)?;
    assemble(dividend.div_euclid(divisor), decimals)
}

/// The quotient rounded up; otherwise as [`divide_down`].
#[must_use]
pub fn divide_up(left: Decimal, right: Decimal, decimals: u32) -> Option<Decimal> {
    let (dividend, divisor) = ratio(left, right, decimals)?;
    let up = i128::from(dividend.rem_euclid(divisor) > 0);
    assemble(dividend.div_euclid(divisor) + up, decimals)
}

/// Two integers whose quotient is `left` / `right` in units of 10^-`decimals`.
fn ratio(left: Decimal, right: Decimal, decimals: u32) -> Option<(i128, i128)> {
    let ((left, left_scale), (right, right_scale)) = (parts(left), parts(right));
    let raised = decimals + right_scale;
    let common = raised.min(left_scale);
    let dividend = left.checked_mul(power_of_ten(raised - common)?)?;
    let divisor = right.checked_mul(power_of_ten(left_scale - common)?)?;
    (divisor > 0).then_some((dividend, divisor))
}

/// The exact sum; `None` when it does not fit.
#[must_use]
pub fn sum(values: impl IntoIterator<Item = Decimal>) -> Option<Decimal> {
    let (mut total, mut total_scale) = (0_i128, 0_u32);
    for value in values {
        let (mantissa, scale) = parts(value);
        let common = scale.max(total_scale);
        let (left, right) =
            (shifted(total, common - total_scale)?, shifted(mantissa, common - scale)?);
        total = left.checked_add(right)?;
        total_scale = common;
    }
    assemble(total, total_scale)
}

/// A hundredth of `amount` × `percent`, exact and unrounded; `None` when it does not fit.
#[must_use]
pub fn percent_of(amount: Decimal, percent: Decimal) -> Option<Decimal> {
    let (mantissa, scale) = product(amount, percent)?;
    assemble(mantissa, scale + 2)
}

fn product(left: Decimal, right: Decimal) -> Option<(i128, u32)> {
    let ((left, left_scale), (right, right_scale)) = (parts(left), parts(right));
    Some((left.checked_mul(right)?, left_scale + right_scale))
}

fn parts(value: Decimal) -> (i128, u32) {
    shortest(value.mantissa(), value.scale())
}

/// The decimal `mantissa` × 10^-`scale`, or `None` when even its shortest form does not fit.
fn assemble(mantissa: i128, scale: u32) -> Option<Decimal> {
    let (mantissa, scale) = shortest(mantissa, scale);
    Decimal::try_from_i128_with_scale(mantissa, scale).ok()
}

/// The same number without trailing zeros.
fn shortest(mut mantissa: i128, mut scale: u32) -> (i128, u32) {
    // A quote does this some hundred times, and dividing 128 bits takes ten times as long as 64.
    if let Ok(mut small) = i64::try_from(mantissa) {
        while scale > 0 && small % 10 == 0 {
            small /= 10;
            scale -= 1;
        }
        return (small.into(), scale);
    }
    while scale > 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        scale -= 1;
    }
    (mantissa, scale)
}

/// The mantissa multiplied by 10^`zeros`.
fn shifted(mantissa: i128, zeros: u32) -> Option<i128> {
    // Amounts of one currency mostly have one scale.
    if zeros == 0 { Some(mantissa) } else { mantissa.checked_mul(power_of_ten(zeros)?) }
}

fn power_of_ten(power: u32) -> Option<i128> {
    POWERS_OF_TEN.get(usize::try_from(power).ok()?).copied()
}

/// Every power of ten that fits.
const POWERS_OF_TEN: [i128; 39] = {
    let mut powers = [1; 39];
    let mut power = 1;
    while power < powers.len() {
        powers[power] = powers[power - 1] * 10;
        power += 1;
    }
    powers
};

#[cfg(test)]
mod tests;
