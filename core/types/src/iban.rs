//! International bank account numbers (ISO 13616).

use std::str::FromStr;

use iban::IbanLike as _;

use super::checked_text::refusal;

refusal!(
    /// The text is no IBAN: country, length, form or check digits are wrong.
    InvalidIban,
    "not an IBAN"
);

/// Longest text that is parsed, in bytes: 34 characters, each followed by a blank.
const IBAN_BYTES_MAX: usize = 68;

/// An IBAN in its electronic form: upper case, no blanks. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Iban(String);

impl Iban {
    /// The electronic form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Iban {
    type Err = InvalidIban;

    /// Reads either case, with or without blanks.
    fn from_str(text: &str) -> Result<Self, InvalidIban> {
        if text.len() > IBAN_BYTES_MAX {
            return Err(InvalidIban);
        }
        let letters = text.chars().filter(|c| *c != ' ').map(|c| c.to_ascii_uppercase());
        let iban: iban::Iban = letters.collect::<String>().parse().map_err(|_| InvalidIban)?;
        Ok(Self(iban.electronic_str().to_owned()))
    }
}

crate::opaque_debug!(Iban);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_iban_has_one_form_however_it_is_written() {
        for text in ["NL91ABNA0417164300", "nl91 abna 0417 1643 00", "NL91 ABNA0417164300 "] {
            assert_eq!(text.parse::<Iban>().unwrap().as_str(), "NL91ABNA0417164300");
        }
        for text in ["", "NL91ABNA0417164301", "NL91ABNA041716430", "XX91ABNA0417164300", "Ada"] {
            assert!(text.parse::<Iban>().is_err(), "{text}");
        }
        assert!(format!("{:?}", "NL91ABNA0417164300".parse::<Iban>()).contains("Iban(…)"));
    }

    proptest! {
        #[test]
        fn one_wrong_digit_is_found(at in 8_usize..18, digit in 0_u8..10) {
            let right = "NL91ABNA0417164300";
            let mut wrong = right.as_bytes().to_vec();
            wrong[at] = b'0' + digit;
            let wrong = String::from_utf8(wrong).unwrap();
            prop_assert_eq!(wrong.parse::<Iban>().is_ok(), wrong == right);
        }

        /// Check digits by the rule itself (ISO 7064, MOD 97-10): a number at most has one pair.
        #[test]
        fn of_all_check_digits_one_pair_is_right(account in "[0-9]{10}") {
            let right: Vec<_> = (2..=98)
                .map(|check| format!("NL{check:02}ABNA{account}"))
                .filter(|text| text.parse::<Iban>().is_ok())
                .collect();
            prop_assert_eq!(right.len(), 1, "{:?}", right);
            let rotated = format!("{}{}", &right[0][4..], &right[0][..4]);
            let rest = rotated.chars().fold(0, |rest, c| {
                let value = c.to_digit(36).unwrap();
                (rest * if value < 10 { 10 } else { 100 } + value) % 97
            });
            prop_assert_eq!(rest, 1);
        }

        #[test]
        fn case_and_blanks_change_nothing(blanks in proptest::collection::vec(0_usize..18, 0..16), lower: bool) {
            let mut text = "NL91ABNA0417164300".to_owned();
            for at in blanks {
                text.insert(at, ' ');
            }
            let text = if lower { text.to_lowercase() } else { text };
            let iban: Iban = text.parse().unwrap();
            prop_assert_eq!(iban.as_str(), "NL91ABNA0417164300");
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in ".*") {
            let _ = text.parse::<Iban>();
        }
    }
}
