//! Exact comparison of decimal text. Arithmetic is the host's.

use std::cmp::Ordering;

/// A decimal number of the contract.
#[derive(Clone, Copy, Debug)]
pub struct Decimal<'a> {
    negative: bool,
    /// Without leading zeros.
    whole: &'a str,
    /// Without trailing zeros.
    fraction: &'a str,
}

impl<'a> Decimal<'a> {
    /// Reads `-?[0-9]+(\.[0-9]+)?`; `None` for anything else.
    pub fn parse(text: &'a str) -> Option<Self> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return None;
        }
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let zero = whole.is_empty() && fraction.is_empty();
        Some(Self { negative: text.starts_with('-') && !zero, whole, fraction })
    }

    fn cmp_size(&self, other: &Self) -> Ordering {
        self.whole
            .len()
            .cmp(&other.whole.len())
            .then_with(|| self.whole.cmp(other.whole))
            .then_with(|| self.fraction.cmp(other.fraction))
    }
}

impl Ord for Decimal<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.cmp_size(other),
            (true, true) => other.cmp_size(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_by_value_not_by_text() {
        let ascending = ["-10", "-9.5", "-0.1", "0", "0.05", "0.5", "9", "10", "10.01"];
        for pair in ascending.windows(2) {
            assert!(Decimal::parse(pair[0]) < Decimal::parse(pair[1]), "{pair:?}");
        }
        assert_eq!(Decimal::parse("-0.00"), Decimal::parse("0"));
        assert_eq!(Decimal::parse("100.50"), Decimal::parse("100.5"));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", "-", ".5", "5.", "1e3", "+1", "1,5", "1.2.3", "--1"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }
}
