//! Checks of texts and numbers in a policy's output that the types of `wit/` cannot state. Output
//! that fails one breaks the contract: `FailureKind::InvalidOutput`.

use rust_decimal::Decimal;

const RULE_CHARS_MAX: usize = 64;
const DECIMAL_CHARS_MAX: usize = 40;

/// `-?(0|[1-9][0-9]*)(\.[0-9]+)?`, at most 40 characters, and within the precision of `Decimal`
/// (28 digits): money is never rounded on its way in.
pub(crate) fn parse_decimal(text: &str) -> Result<Decimal, String> {
    let wrong = || "a decimal is not plain decimal text of at most 28 digits".to_owned();
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (unsigned, None),
    };
    let well_formed = text.len() <= DECIMAL_CHARS_MAX
        && digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits);
    if !well_formed {
        return Err(wrong());
    }
    Decimal::from_str_exact(text).map_err(|_| wrong())
}

/// Name of a rule.
pub(crate) fn check_rule(rule: String) -> Result<String, String> {
    match is_slug(&rule, RULE_CHARS_MAX) {
        true => Ok(rule),
        false => Err("a rule is not [a-z0-9-]{0,64}".into()),
    }
}

/// True for at most `chars_max` of a-z, 0-9 and hyphens.
pub(crate) fn is_slug(text: &str, chars_max: usize) -> bool {
    text.len() <= chars_max && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_decimal_is_plain_text_of_at_most_28_digits() {
        for text in ["0", "-0", "0.00", "-12.5", "100", "7922816251426433759354395033.5"] {
            assert_eq!(
                parse_decimal(text),
                Ok(text.parse().expect("rust_decimal reads it")),
                "{text}"
            );
        }
        for text in [
            "",
            "-",
            "+1",
            "01",
            "00",
            ".5",
            "5.",
            "1e3",
            "1 ",
            " 1",
            "1,5",
            "0x1",
            "NaN",
            "1_000",
            "--1",
            "1.2.3",
            "١",
            "99999999999999999999999999999999",
            "0.00000000000000000000000000001",
        ] {
            assert!(parse_decimal(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_decimal_keeps_its_value_to_the_last_digit(mantissa in any::<i64>(), scale in 0_u32..=18) {
            let value = Decimal::new(mantissa, scale);
            prop_assert_eq!(parse_decimal(&value.to_string()), Ok(value));
        }

        #[test]
        fn accepted_text_matches_the_grammar(text in "[-+0-9.e]{0,45}") {
            if parse_decimal(&text).is_ok() {
                let unsigned = text.strip_prefix('-').unwrap_or(&text);
                prop_assert!(text.len() <= DECIMAL_CHARS_MAX);
                prop_assert!(unsigned.starts_with(|c: char| c.is_ascii_digit()));
                prop_assert!(unsigned.ends_with(|c: char| c.is_ascii_digit()));
                prop_assert!(unsigned == "0" || unsigned.starts_with("0.") || !unsigned.starts_with('0'));
            }
        }
    }
}
