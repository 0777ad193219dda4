//! Countries by ISO 3166-1 alpha-2.

use std::fmt;
use std::str::FromStr;

use isocountry::CountryCode;

use super::checked_text::{refusal, text_form};

refusal!(
    /// The text is not an ISO 3166-1 alpha-2 code.
    InvalidCountry,
    "not an ISO 3166-1 alpha-2 country code"
);

/// Values of `countryCode` on the payment methods endpoint, as the API document lists them. The
/// list holds `sl` and not `si`; it is the contract and is not corrected here.
pub const PAYMENT_METHOD_COUNTRIES: [&str; 30] = [
    "at", "be", "bg", "ch", "cy", "cz", "de", "dk", "ee", "es", "fi", "fr", "gb", "gr", "hr", "hu",
    "ie", "it", "lt", "lu", "lv", "mt", "nl", "no", "pl", "pt", "ro", "se", "sk", "sl",
];

/// A country. Parsed in either case, formatted in capitals.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Country(CountryCode);

impl Country {
    /// The alpha-2 code in capitals.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.0.alpha2()
    }

    /// The English short name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }
}

impl FromStr for Country {
    type Err = InvalidCountry;

    fn from_str(text: &str) -> Result<Self, InvalidCountry> {
        if text.len() != 2 {
            return Err(InvalidCountry);
        }
        CountryCode::for_alpha2(&text.to_ascii_uppercase()).map(Self).map_err(|_| InvalidCountry)
    }
}

impl fmt::Display for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Country({self})")
    }
}

text_form!(Country);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn alpha_2_is_read_in_either_case_and_written_in_capitals() {
        for text in ["NL", "nl", "Nl"] {
            assert_eq!(text.parse::<Country>().unwrap().to_string(), "NL");
        }
        for text in ["", "N", "NLD", "XX", "EU", "528", " NL", "N\u{130}", "é"] {
            assert!(text.parse::<Country>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn every_payment_method_country_is_a_country() {
        for code in PAYMENT_METHOD_COUNTRIES {
            assert_eq!(code.parse::<Country>().unwrap().as_str().to_ascii_lowercase(), code);
        }
        assert!(PAYMENT_METHOD_COUNTRIES.is_sorted());
        assert!(PAYMENT_METHOD_COUNTRIES.contains(&"sl"));
        assert!(!PAYMENT_METHOD_COUNTRIES.contains(&"si"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,4}") {
            let _ = text.parse::<Country>();
        }
    }
}
