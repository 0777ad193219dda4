//! Registration numbers of businesses.

use rampart_types::Country;

use super::personal_data::PersonalData;

/// Length of a number in a country without a known format.
const CHARS: std::ops::RangeInclusive<usize> = 3..=32;

/// Normalizes a number by removing blanks and dots; `None` when it is invalid in the country: eight
/// digits in the Netherlands (KvK), ten with a checksum in Belgium (KBO), nine with a checksum in
/// France (SIREN), letters and digits elsewhere.
pub(super) fn read(text: &str, country: Option<Country>) -> Option<String> {
    let number: String = text.chars().filter(|c| !matches!(c, ' ' | '.')).collect();
    let digits =
        |count: usize| number.len() == count && number.bytes().all(|byte| byte.is_ascii_digit());
    let valid = match country.map(Country::as_str) {
        Some("NL") => digits(8),
        Some("BE") => digits(10) && is_belgian(&number),
        Some("FR") => digits(9) && is_luhn(&number),
        _ => CHARS.contains(&number.len()) && number.bytes().all(|b| b.is_ascii_alphanumeric()),
    };
    valid.then_some(number)
}

/// True if the user's number, if any, is valid in the business's country, for any order of updates.
/// Without one it is the country of residence that is `named`, else the `known` one.
pub(super) fn is_valid(
    personal: &PersonalData,
    named: Option<Country>,
    known: Option<&str>,
) -> bool {
    let country = personal.business_country.or(named).or_else(|| known?.parse().ok());
    personal.chamber_of_commerce.as_deref().is_none_or(|number| read(number, country).is_some())
}

/// The last two digits are 97 less the rest of the first eight by 97.
fn is_belgian(number: &str) -> bool {
    let (body, check) = number.split_at(8);
    let parsed = body.parse::<u32>().ok().zip(check.parse::<u32>().ok());
    parsed.is_some_and(|(body, check)| 97 - body % 97 == check)
}

/// ISO/IEC 7812-1, annex B: every second digit from the right counts twice.
fn is_luhn(number: &str) -> bool {
    let sum: u32 = number
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, byte)| {
            let digit = u32::from(byte - b'0');
            if at % 2 == 0 { digit } else { digit * 2 / 10 + digit * 2 % 10 }
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_country_has_its_format() {
        let valid = |text, country: &str| read(text, country.parse().ok()).is_some();
        assert!(valid("12345678", "NL") && !valid("1234567", "NL") && !valid("1234567A", "NL"));
        assert!(valid("0202.239.951", "BE") && !valid("0202.239.952", "BE"));
        assert!(valid("732 829 320", "FR") && !valid("732829321", "FR"));
        assert!(valid("HRB86891", "DE") && !valid("HR", "DE") && !valid("HRB-86891", "DE"));
        assert!(!valid("", "NL") && !valid("", "DE"));
        assert!(read("12345678", None).is_some() && read(&"1".repeat(33), None).is_none());
        assert_eq!(read("0202.239.951", "BE".parse().ok()).as_deref(), Some("0202239951"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".*", near in "[0-9. ]{0,12}") {
            for country in ["NL", "BE", "FR", "DE"] {
                let _ = (read(&text, country.parse().ok()), read(&near, country.parse().ok()));
            }
        }
    }
}
