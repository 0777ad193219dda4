//! Checks of texts and numbers in a policy's output that the types of `wit/` cannot state. Output
//! that fails one breaks the contract: `FailureKind::InvalidOutput`.

use rust_decimal::Decimal;

const RULE_CHARS_MAX: usize = 64;
const DECIMAL_CHARS_MAX: usize = 40;

/// `-?(0|[1-9][0-9]*)(\.[0-9]+)?`, at most 40 characters. Decimals beyond the precision of
/// `Decimal` (28 digits) are cut toward zero: an amount is rounded to far fewer later. A whole part
/// beyond it is refused.
pub(crate) fn parse_decimal(text: &str) -> Result<Decimal, String> {
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
        return Err("a decimal is not plain decimal text of at most 40 characters".into());
    }
    let value = Decimal::from_str_exact(text).ok().or_else(|| cut(text));
    value.ok_or_else(|| "the whole part of a decimal is too large".to_owned())
}

/// A well-formed decimal with as many of its decimals as fit; `None` when its whole part does not.
fn cut(text: &str) -> Option<Decimal> {
    let point = text.find('.')?;
    let mut ends = (point..text.len()).rev();
    ends.find_map(|end| Decimal::from_str_exact(text.get(..end)?).ok())
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
    fn a_decimal_is_plain_text_of_at_most_40_characters() {
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
            "79228162514264337593543950336",
            "79228162514264337593543950336.5",
        ] {
            assert!(parse_decimal(text).is_err(), "{text}");
        }
        let thirds = |count: usize| format!("0.{}", "3".repeat(count));
        assert!(parse_decimal(&thirds(38)).is_ok() && parse_decimal(&thirds(39)).is_err());
    }

    #[test]
    fn decimals_that_do_not_fit_are_cut_toward_zero() {
        for (text, held) in [
            ("0.33333333333333333333333333333333", "0.3333333333333333333333333333"),
            ("-0.99999999999999999999999999999999", "-0.9999999999999999999999999999"),
            ("0.00000000000000000000000000001", "0.0000000000000000000000000000"),
            ("8000000000000000000000000000.1", "8000000000000000000000000000"),
            ("79228162514264337593543950335.9", "79228162514264337593543950335"),
        ] {
            assert_eq!(parse_decimal(text).map(|d| d.to_string()), Ok(held.to_owned()), "{text}");
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
